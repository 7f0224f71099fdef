//! Why a request is refused, with the status that says so to the client.

/// Why a request was refused.
///
/// Each error is final for its connection: answer with [`status`](Self::status) and close, since
/// nobody can tell any more where the next request starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{}", self.reason())]
#[non_exhaustive]
pub enum Error {
    /// A line ends with LF alone: answered 400 (RFC 9112 §2.2).
    BareLf,
    /// A CR isn't followed by LF: answered 400 (RFC 9112 §2.2).
    BareCr,
    /// The method is empty or holds a byte that isn't a token's: answered 400 (RFC 9110 §9.1).
    InvalidMethod,
    /// The method is longer than any known one (32 bytes): answered 501 (RFC 9112 §3).
    MethodTooLong,
    /// The target is in none of the four forms, or in one that its method may not use: answered
    /// 400 (RFC 9112 §3.2).
    InvalidTarget,
    /// The target is longer than [`Limits::target_bytes_max`](crate::Limits): answered 414.
    TargetTooLong,
    /// The request line is longer than [`Limits::request_line_bytes_max`](crate::Limits):
    /// answered 414.
    RequestLineTooLong,
    /// The version is missing or misspelt: answered 400 (RFC 9112 §2.3).
    InvalidVersion,
    /// The major version isn't 1: answered 505 (RFC 9110 §15.6.6).
    UnsupportedVersion,
    /// A field's name is empty, holds a byte that isn't a token's, or has no colon: answered 400
    /// (RFC 9112 §5).
    InvalidFieldName,
    /// Whitespace stands between a field's name and its colon: answered 400 (RFC 9112 §5.1).
    SpaceBeforeColon,
    /// A line starts with whitespace, as a folded field's second line does: answered 400
    /// (RFC 9112 §2.2 and §5.2).
    LineFolding,
    /// A field's value holds a control byte: answered 400 (RFC 9110 §5.5).
    InvalidFieldValue,
    /// A field line is longer than [`Limits::field_bytes_max`](crate::Limits): answered 431.
    FieldTooLong,
    /// There are more field lines than [`Limits::fields_max`](crate::Limits): answered 431.
    TooManyFields,
    /// The head is longer than [`Limits::head_bytes_max`](crate::Limits): answered 431.
    HeadTooLong,
    /// An HTTP/1.1 request has no Host: answered 400 (RFC 9112 §3.2).
    MissingHost,
    /// Host stands there twice: answered 400 (RFC 9112 §3.2).
    RepeatedHost,
    /// Host is empty or no `uri-host [":" port]`: answered 400 (RFC 9112 §3.2).
    InvalidHost,
    /// Content-Length isn't a decimal number below 2^64: answered 400 (RFC 9112 §6.3).
    InvalidLength,
    /// Content-Length stands there twice, with equal values or not: answered 400 (RFC 9112 §6.3).
    RepeatedLength,
    /// Content-Length and Transfer-Encoding together: answered 400 (RFC 9112 §6.3).
    AmbiguousLength,
    /// Transfer-Encoding isn't a list that ends in its only `chunked`: answered 400 (RFC 9112
    /// §6.1 and §7).
    InvalidTransferEncoding,
    /// Transfer-Encoding in an HTTP/1.0 request: answered 400 (RFC 9112 §6.1).
    TransferEncodingInHttp10,
    /// A transfer coding other than `chunked`: answered 501 (RFC 9112 §6.1).
    UnknownTransferCoding,
    /// An expectation other than `100-continue`: answered 417 (RFC 9110 §10.1.1).
    UnknownExpectation,
    /// The body is, or is announced to be, longer than [`Limits::body_bytes_max`](crate::Limits):
    /// answered 413.
    BodyTooLarge,
    /// A chunk's size isn't 1 to 16 hexadecimal digits: answered 400 (RFC 9112 §7.1).
    InvalidChunkSize,
    /// A chunk extension is misspelt: answered 400 (RFC 9112 §7.1.1).
    InvalidChunkExtension,
    /// All chunk extensions of a body together are longer than
    /// [`Limits::chunk_extension_bytes_max`](crate::Limits): answered 400.
    ChunkExtensionsTooLong,
    /// A chunk's data isn't followed by CRLF: answered 400 (RFC 9112 §7.1).
    InvalidChunkEnd,
    /// All trailer lines of a body together are longer than
    /// [`Limits::trailer_bytes_max`](crate::Limits): answered 431.
    TrailersTooLong,
    /// There are more trailer lines than [`Limits::trailers_max`](crate::Limits): answered 431.
    TooManyTrailers,
}

impl Error {
    /// The status code of the answer: 400, 413, 414, 417, 431, 501 or 505.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::BodyTooLarge => 413,
            Self::TargetTooLong | Self::RequestLineTooLong => 414,
            Self::UnknownExpectation => 417,
            Self::FieldTooLong
            | Self::TooManyFields
            | Self::HeadTooLong
            | Self::TrailersTooLong
            | Self::TooManyTrailers => 431,
            Self::MethodTooLong | Self::UnknownTransferCoding => 501,
            Self::UnsupportedVersion => 505,
            _ => 400,
        }
    }

    /// A few words for the log, fixed for each variant; `Display` writes the same.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::BareLf => "line ended by a bare LF",
            Self::BareCr => "CR without LF",
            Self::InvalidMethod => "invalid method",
            Self::MethodTooLong => "method too long",
            Self::InvalidTarget => "invalid request target",
            Self::TargetTooLong => "request target too long",
            Self::RequestLineTooLong => "request line too long",
            Self::InvalidVersion => "invalid HTTP version",
            Self::UnsupportedVersion => "unsupported HTTP version",
            Self::InvalidFieldName => "invalid field name",
            Self::SpaceBeforeColon => "whitespace before a colon",
            Self::LineFolding => "line folding",
            Self::InvalidFieldValue => "control byte in a field value",
            Self::FieldTooLong => "field line too long",
            Self::TooManyFields => "too many fields",
            Self::HeadTooLong => "head too long",
            Self::MissingHost => "no host",
            Self::RepeatedHost => "repeated host",
            Self::InvalidHost => "invalid host",
            Self::InvalidLength => "invalid content length",
            Self::RepeatedLength => "repeated content length",
            Self::AmbiguousLength => "content length and transfer encoding",
            Self::InvalidTransferEncoding => "invalid transfer encoding",
            Self::TransferEncodingInHttp10 => "transfer encoding in HTTP/1.0",
            Self::UnknownTransferCoding => "unknown transfer coding",
            Self::UnknownExpectation => "unknown expectation",
            Self::BodyTooLarge => "body too large",
            Self::InvalidChunkSize => "invalid chunk size",
            Self::InvalidChunkExtension => "invalid chunk extension",
            Self::ChunkExtensionsTooLong => "chunk extensions too long",
            Self::InvalidChunkEnd => "no line end after chunk data",
            Self::TrailersTooLong => "trailers too long",
            Self::TooManyTrailers => "too many trailers",
        }
    }
}
