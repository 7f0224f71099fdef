//! The bound of everything that a client may make long.

/// How much of everything a request may have.
///
/// Lengths are in bytes and count what stands on the wire, line ends included. A request that is
/// exactly as long as a limit passes; one byte more is refused with the status that each field
/// names, as soon as that byte is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The request line with its CRLF. Default 16 384; beyond it 414.
    pub request_line_bytes_max: usize,
    /// The request target. Default 8 192; beyond it 414. RFC 9112 §3 asks for request lines of
    /// 8 000 bytes at least.
    pub target_bytes_max: usize,
    /// Field lines in a head. Default 100, as most servers have it; beyond it 431. At most 65 535
    /// are taken however high this is.
    pub fields_max: usize,
    /// One field line with its CRLF. Default 16 384, which holds the largest cookies and tokens
    /// in use; beyond it 431.
    pub field_bytes_max: usize,
    /// The whole head: a leading CRLF, the request line, all fields, the empty line. Default
    /// 32 768; beyond it 431, or 414 while the request line isn't complete. At most 1 GiB is
    /// taken however high this is.
    pub head_bytes_max: usize,
    /// The chunk extensions of one body together, whitespace and semicolons included. Default
    /// 1 024, since nobody uses them; beyond it 400. Without a total, each byte of data could
    /// carry a line's worth of extension (CVE-2023-39326).
    pub chunk_extension_bytes_max: usize,
    /// The trailer lines of one body together, with their CRLFs. Default 8 192; beyond it 431.
    pub trailer_bytes_max: usize,
    /// Trailer lines of one body. Default 32; beyond it 431.
    pub trailers_max: usize,
    /// The body's data, without its framing. Default 1 MiB; beyond it 413: at the Content-Length
    /// that announces it, or at the size of the chunk that would pass it.
    pub body_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request_line_bytes_max: 16 * 1024,
            target_bytes_max: 8 * 1024,
            fields_max: 100,
            field_bytes_max: 16 * 1024,
            head_bytes_max: 32 * 1024,
            chunk_extension_bytes_max: 1024,
            trailer_bytes_max: 8 * 1024,
            trailers_max: 32,
            body_bytes_max: 1024 * 1024,
        }
    }
}

/// Positions are kept in 32 bits; this keeps their sums far from the end of that range.
const HEAD_BYTES_CEILING: usize = 1 << 30;

/// Fields are counted in 16 bits, where 0 means none.
const FIELDS_CEILING: usize = u16::MAX as usize;

impl Limits {
    pub(crate) fn head_bytes(&self) -> usize {
        self.head_bytes_max.min(HEAD_BYTES_CEILING)
    }

    pub(crate) fn fields(&self) -> usize {
        self.fields_max.min(FIELDS_CEILING)
    }
}
