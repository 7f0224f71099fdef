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

fn put_escaped(out: &mut Vec<u8>, text: &[u8]) {
    let clean = text.len() - skip_clean(text).len();
    out.extend_from_slice(&text[..clean]);
    if clean < text.len() {
        put_staged(out, &text[clean..]);
    }
}

/// Bytes of the staging buffer. Chosen: long enough that the copies out of it don't count, short enough to clear.
const STAGE_BYTES: usize = 256;

/// Bytes that an eight-byte word may become: all of them `\u00xx`.
const WORD_ESCAPED_MAX: usize = 8 * 6;

/// Writes text that has something to escape, as JSON inside a JSON string has every few bytes: too often for a copy of
/// its own for each stretch between two escapes. So it goes through a buffer on the stack in which a word is one store.
fn put_staged(out: &mut Vec<u8>, text: &[u8]) {
    let mut stage = [0; STAGE_BYTES];
    let mut len = 0;
    let (words, tail) = text.as_chunks::<8>();
    for word in words {
        if len > STAGE_BYTES - WORD_ESCAPED_MAX {
            out.extend_from_slice(&stage[..len]);
            len = 0;
        }
        if is_clean(*word) {
            stage[len..len + 8].copy_from_slice(word);
            len += 8;
        } else {
            for &byte in word {
                len += escape(byte, &mut stage[len..]);
            }
        }
    }
    out.extend_from_slice(&stage[..len]);
    len = 0;
    for &byte in tail {
        len += escape(byte, &mut stage[len..]);
    }
    out.extend_from_slice(&stage[..len]);
}

/// What is left of `text` after the words in which nothing needs an escape.
fn skip_clean(text: &[u8]) -> &[u8] {
    let (words, tail) = text.as_chunks::<8>();
    match words.iter().position(|word| !is_clean(*word)) {
        Some(index) => &text[index * 8..],
        None if tail.iter().all(|&byte| ESCAPES[usize::from(byte)] == 0) => &[],
        None => tail,
    }
}

/// No byte of the word is a quote, a backslash or a control character (RFC 8259 §7).
///
/// Each byte's high bit says whether its other seven bits reach a bound; the sums don't carry into the next byte.
/// Bytes from 0x80 on are parts of longer characters, and clean.
fn is_clean(word: [u8; 8]) -> bool {
    const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);
    const LOWS: u64 = !HIGHS;
    const TO_SPACE: u64 = u64::from_ne_bytes([0x80 - 0x20; 8]);
    const QUOTES: u64 = u64::from_ne_bytes([b'"'; 8]);
    const BACKSLASHES: u64 = u64::from_ne_bytes([b'\\'; 8]);
    let word = u64::from_ne_bytes(word);
    let from_space = (word & LOWS) + TO_SPACE;
    let not_quote = ((word ^ QUOTES) & LOWS) + LOWS;
    let not_backslash = ((word ^ BACKSLASHES) & LOWS) + LOWS;
    (word | from_space & not_quote & not_backslash) & HIGHS == HIGHS
}

/// For each byte what stands behind the backslash in its escape, 0 where it needs none.
const ESCAPES: [u8; 256] = {
    let mut escapes = [0; 256];
    let mut control = 0;
    while control < 0x20 {
        escapes[control] = b'u';
        control += 1;
    }
    escapes[0x08] = b'b';
    escapes[b'\t' as usize] = b't';
    escapes[b'\n' as usize] = b'n';
    escapes[0x0c] = b'f';
    escapes[b'\r' as usize] = b'r';
    escapes[b'"' as usize] = b'"';
    escapes[b'\\' as usize] = b'\\';
    escapes
};

/// Writes one byte as it stands in a string; how many bytes that took.
fn escape(byte: u8, out: &mut [u8]) -> usize {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    match ESCAPES[usize::from(byte)] {
        0 => {
            out[0] = byte;
            1
        }
        b'u' => {
            out[..4].copy_from_slice(b"\\u00");
            out[4] = HEX[usize::from(byte >> 4)];
            out[5] = HEX[usize::from(byte & 15)];
            6
        }
        short => {
            out[..2].copy_from_slice(&[b'\\', short]);
            2
        }
    }
}
