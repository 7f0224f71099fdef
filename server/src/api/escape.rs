//! JSON strings and numbers, written without an allocation of their own.

/// Writes `text` as a JSON string, quotes included.
pub(super) fn put_string(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    put_escaped(out, text.as_bytes());
    out.push(b'"');
}

/// Writes a number in decimal; all 64 bits of it, whatever a reader makes of them.
pub(super) fn put_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn put_escaped(out: &mut Vec<u8>, mut rest: &[u8]) {
    while let Some(at) = find_special(rest) {
        out.extend_from_slice(&rest[..at]);
        put_escape(out, rest[at]);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

/// The first byte that can't stand in a JSON string as itself (RFC 8259 §7): a quote, a backslash, a control character.
fn find_special(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);
    // The high bit of each byte that is below `n`; a borrow may also set it in bytes above the first hit, which is why
    // only the lowest is used. Bytes from 0x80 on are masked out: they are parts of longer characters.
    let below = |word: u64, n: u8| word.wrapping_sub(ONES * u64::from(n)) & !word & HIGHS;
    let (words, tail) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let hits = below(word, 0x20)
            | below(word ^ (ONES * u64::from(b'"')), 1)
            | below(word ^ (ONES * u64::from(b'\\')), 1);
        if hits != 0 {
            return Some(index * 8 + (hits.trailing_zeros() / 8) as usize);
        }
    }
    let start = words.len() * 8;
    tail.iter()
        .position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\')
        .map(|at| start + at)
}

fn put_escape(out: &mut Vec<u8>, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        _ => {
            out.extend_from_slice(b"\\u00");
            out.push(HEX[usize::from(byte >> 4)]);
            out.push(HEX[usize::from(byte & 15)]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}
