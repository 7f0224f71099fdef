//! Classes of bytes, as a table of all 256.

/// A byte of a token (RFC 9110 §5.6.2): method, field name, transfer coding.
pub(crate) const TOKEN: u8 = 1;
/// A byte of a field value (RFC 9110 §5.5): HTAB, SP, VCHAR or obs-text.
pub(crate) const VALUE: u8 = 2;
/// A byte of a request target: VCHAR but `#`. Wider than RFC 3986, whose excluded characters
/// (`"<>[\]^{|}` and the backtick) browsers and curl send as they are; none of them can move a
/// boundary in the head.
pub(crate) const TARGET: u8 = 4;
/// A byte of a registered name (RFC 3986 §3.2.2): unreserved, sub-delims; `%` is checked apart.
pub(crate) const REG_NAME: u8 = 8;
/// A byte of a quoted string (RFC 9110 §5.6.4): qdtext, that is VALUE but `"` and `\`.
pub(crate) const QDTEXT: u8 = 16;

static CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = class(byte as u8);
        byte += 1;
    }
    table
}

const fn class(byte: u8) -> u8 {
    let mut class = 0;
    let alnum = byte.is_ascii_alphanumeric();
    if alnum || contains(b"!#$%&'*+-.^_`|~", byte) {
        class |= TOKEN;
    }
    if byte == b'\t' || (byte >= b' ' && byte != 0x7f) {
        class |= VALUE;
        if byte != b'"' && byte != b'\\' {
            class |= QDTEXT;
        }
    }
    if byte.is_ascii_graphic() && byte != b'#' {
        class |= TARGET;
    }
    if alnum || contains(b"-._~!$&'()*+,;=", byte) {
        class |= REG_NAME;
    }
    class
}

const fn contains(set: &[u8], byte: u8) -> bool {
    let mut at = 0;
    while at < set.len() {
        if set[at] == byte {
            return true;
        }
        at += 1;
    }
    false
}

pub(crate) fn is(byte: u8, class: u8) -> bool {
    CLASSES[usize::from(byte)] & class != 0
}

/// The first position from `from` on whose byte isn't of `class`, or the end.
pub(crate) fn skip(buf: &[u8], from: usize, class: u8) -> usize {
    let rest = &buf[from..];
    let run = rest.iter().position(|&byte| !is(byte, class));
    from + run.unwrap_or(rest.len())
}

/// The range without optional whitespace (RFC 9110 §5.6.3) at both ends.
pub(crate) fn trim(buf: &[u8], mut start: usize, mut end: usize) -> (usize, usize) {
    let is_space = |byte: u8| byte == b' ' || byte == b'\t';
    while start < end && is_space(buf[start]) {
        start += 1;
    }
    while end > start && is_space(buf[end - 1]) {
        end -= 1;
    }
    (start, end)
}

/// The elements of a comma-separated list, without the whitespace around them.
pub(crate) fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(|element| {
        let (start, end) = trim(element, 0, element.len());
        &element[start..end]
    })
}
