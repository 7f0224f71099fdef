//! Methods and versions.

/// A request's method.
///
/// Methods are compared with case (RFC 9110 §9.1): `get` is [`Method::Other`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Method {
    /// `GET`.
    #[default]
    Get,
    /// `HEAD`.
    Head,
    /// `POST`.
    Post,
    /// `PUT`.
    Put,
    /// `DELETE`.
    Delete,
    /// `CONNECT`, the only one whose target is an authority.
    Connect,
    /// `OPTIONS`, the only one whose target may be `*`.
    Options,
    /// `TRACE`.
    Trace,
    /// `PATCH` (RFC 5789).
    Patch,
    /// Any other token; [`RequestHead::method_str`](crate::RequestHead::method_str) has it.
    Other,
}

impl Method {
    pub(crate) fn of(token: &[u8]) -> Self {
        match token {
            b"GET" => Self::Get,
            b"HEAD" => Self::Head,
            b"POST" => Self::Post,
            b"PUT" => Self::Put,
            b"DELETE" => Self::Delete,
            b"CONNECT" => Self::Connect,
            b"OPTIONS" => Self::Options,
            b"TRACE" => Self::Trace,
            b"PATCH" => Self::Patch,
            _ => Self::Other,
        }
    }
}

/// The version of HTTP that a request is to be treated as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1, and 1.2 to 1.9, which RFC 9110 §2.5 has read as the highest known minor version.
    #[default]
    Http11,
}
