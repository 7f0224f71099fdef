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
    let end = skip_blocks(buf, from, class);
    note_work(end - from);
    end
}

fn skip_blocks(buf: &[u8], from: usize, class: u8) -> usize {
    let mut at = from;
    // Whole arrays need one check of bounds for all their bytes.
    while let Some(block) = buf[at..].first_chunk::<8>() {
        if let Some(run) = block.iter().position(|&byte| !is(byte, class)) {
            return at + run;
        }
        at += 8;
    }
    skip_bytes(buf, at, class)
}

fn skip_bytes(buf: &[u8], from: usize, class: u8) -> usize {
    let mut at = from;
    while at < buf.len() && is(buf[at], class) {
        at += 1;
    }
    at
}

/// [`skip`] over bytes of class VALUE, first sixteen, then eight at a time.
pub(crate) fn skip_value(buf: &[u8], from: usize) -> usize {
    let end = skip_value_blocks(buf, from);
    note_work(end - from);
    end
}

fn skip_value_blocks(buf: &[u8], from: usize) -> usize {
    let is_control = |byte: u8| (byte < b' ' && byte != b'\t') || byte == 0x7f;
    let mut at = from;
    // A head that comes in small pieces shouldn't pay for the large steps.
    if buf.len() - from < 8 {
        return skip_bytes(buf, from, VALUE);
    }
    loop {
        // Without a way out in the middle, this loop becomes vector instructions.
        while let Some(block) = buf[at..].first_chunk::<16>() {
            if block
                .iter()
                .fold(false, |any, &byte| any | is_control(byte))
            {
                break;
            }
            at += 16;
        }
        at = skip_words(buf, at, VALUE, |word| below(word, b' ') | equal(word, 0x7f));
        // The only control byte that a value may hold.
        if buf.get(at) != Some(&b'\t') {
            return at;
        }
        at += 1;
    }
}

/// [`skip`] over bytes of class TARGET, eight at a time.
pub(crate) fn skip_target(buf: &[u8], from: usize) -> usize {
    let end = skip_words(buf, from, TARGET, |word| {
        below(word, 0x21) | equal(word, 0x7f) | equal(word, b'#') | (word & HIGHS)
    });
    note_work(end - from);
    end
}

#[cfg(test)]
thread_local! {
    /// Bytes looked at by this thread, for the tests that hold work linear.
    pub(crate) static WORK: core::cell::Cell<usize> = const { core::cell::Cell::new(0) };
}

/// Counts bytes looked at, and the one that was stopped at; only in tests.
#[inline]
pub(crate) fn note_work(_len: usize) {
    #[cfg(test)]
    WORK.set(WORK.get() + _len + 1);
}

/// One in each byte of a word.
const ONES: u64 = 0x0101_0101_0101_0101;
/// The highest bit of each byte of a word.
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Sets the highest bit of each byte that is below `bound`, which is at most 128. A borrow may set
/// bits above the lowest one set, so only that one says something.
fn below(word: u64, bound: u8) -> u64 {
    word.wrapping_sub(ONES * u64::from(bound)) & !word & HIGHS
}

/// The same for each byte that equals `byte`.
fn equal(word: u64, byte: u8) -> u64 {
    below(word ^ (ONES * u64::from(byte)), 1)
}

/// The first position from `from` on whose byte `stops` marks, or the end. `class` says the same
/// for the bytes that don't fill a word.
fn skip_words(buf: &[u8], from: usize, class: u8, stops: impl Fn(u64) -> u64) -> usize {
    let mut at = from;
    while let Some(bytes) = buf[at..].first_chunk() {
        let marks = stops(u64::from_le_bytes(*bytes));
        if marks != 0 {
            return at + marks.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    skip_bytes(buf, at, class)
}

/// Whether `text` is `lower`, a name of letters and hyphens, in any case. `text` is a token, so
/// that setting one bit makes no other byte a letter or a hyphen.
pub(crate) fn is_name(text: &[u8], lower: &[u8]) -> bool {
    if text.len() != lower.len() {
        return false;
    }
    let mut at = 0;
    // The last step may overlap the one before.
    while let (Some(text), Some(lower)) = (text[at..].first_chunk(), lower[at..].first_chunk()) {
        if u64::from_le_bytes(*text) | (ONES * 0x20) != u64::from_le_bytes(*lower) {
            return false;
        }
        at += 8;
    }
    if let (Some(text), Some(lower)) = (text.last_chunk(), lower.last_chunk()) {
        return u64::from_le_bytes(*text) | (ONES * 0x20) == u64::from_le_bytes(*lower);
    }
    if let (Some(text), Some(lower)) = (text.first_chunk(), lower.first_chunk()) {
        if u32::from_le_bytes(*text) | 0x2020_2020 != u32::from_le_bytes(*lower) {
            return false;
        }
        at = 4;
    }
    text[at..]
        .iter()
        .zip(&lower[at..])
        .all(|(byte, lower)| byte | 0x20 == *lower)
}

/// The first place from `from` on that holds neither a space nor a tab.
pub(crate) fn skip_blank(buf: &[u8], mut from: usize) -> usize {
    while let Some(b' ' | b'\t') = buf.get(from) {
        from += 1;
    }
    from
}

/// `value` without optional whitespace (RFC 9110 §5.6.3) at both ends.
pub(crate) fn trim(value: &[u8]) -> &[u8] {
    trim_end(trim_start(value))
}

pub(crate) fn trim_start(mut value: &[u8]) -> &[u8] {
    // Of the bytes in a value, SP and HTAB are the only ones up to SP.
    while let [..=b' ', rest @ ..] = value {
        value = rest;
    }
    value
}

pub(crate) fn trim_end(mut value: &[u8]) -> &[u8] {
    while let [rest @ .., ..=b' '] = value {
        value = rest;
    }
    value
}

/// The elements of a comma-separated list, without the whitespace around them.
pub(crate) fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(trim)
}
