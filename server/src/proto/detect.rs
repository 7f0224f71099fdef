//! Which protocol a connection speaks, told by its first byte.
//!
//! A frame starts with the high byte of its length, which is 0 for every frame below 16 MiB; a request starts with a
//! token character, or with the CR of an empty line that RFC 9112 §2.2 lets a server skip.

/// What a first byte says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detected {
    Http,
    Frames,
    /// A TLS handshake record; plaintext listeners close at once.
    Tls,
}

/// The record type of a TLS handshake (RFC 8446 §5.1). Frames of 0x16000000 bytes (352 MiB) and more would start so
/// too, which is why `auto` needs a frame limit below it.
pub(crate) const TLS_HANDSHAKE: u8 = 0x16;

pub(crate) fn detect(first: u8) -> Detected {
    match first {
        TLS_HANDSHAKE => Detected::Tls,
        b'\r' => Detected::Http,
        byte if super::http::is_token_byte(byte) => Detected::Http,
        _ => Detected::Frames,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_tells_the_protocol() {
        for byte in 0..=255_u8 {
            let expected = match byte {
                0x16 => Detected::Tls,
                b'\r' | b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'0'..=b'9' => {
                    Detected::Http
                }
                b'A'..=b'Z' | b'^'..=b'z' | b'|' | b'~' => Detected::Http,
                _ => Detected::Frames,
            };
            assert_eq!(detect(byte), expected, "{byte:#04x}");
        }
    }
}
