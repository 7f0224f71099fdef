//! The shortest way through the crate.

use pumice_http_parse::{BodyDecoder, Decoded, Framing, Head, HeadParser, Known, Limits, Method};

#[test]
fn a_head_that_comes_byte_by_byte_is_the_same_head() {
    let bytes: &[u8] = b"\r\nPOST /a/b?c=d HTTP/1.1\r\nhost: x \r\nTransfer-Encoding:\tchunked\r\n\r\n3;a=\"b\"\r\nabc\r\n0\r\nx: y\r\n\r\nGET";
    let limits = Limits::default();
    for cut in 1..bytes.len() {
        let mut parser = HeadParser::default();
        let mut head = Head::default();
        let mut end = cut.min(bytes.len());
        let len = loop {
            match parser.parse(&bytes[..end], &limits, &mut head).unwrap() {
                Some(len) => break len,
                None => end = (end + cut).min(bytes.len()),
            }
        };
        let view = head.view(bytes);
        assert_eq!(view.method(), Method::Post);
        assert_eq!(view.path(), "/a/b");
        assert_eq!(view.query(), Some("c=d"));
        assert_eq!(view.field(Known::Host), Some(&b"x"[..]));
        assert_eq!(head.body(), Framing::Chunked);
        let mut decoder = BodyDecoder::new(head.body());
        let mut rest = &bytes[len..];
        let mut body = Vec::new();
        loop {
            match decoder.decode(rest, &limits).unwrap() {
                Decoded::Data { data, consumed } => {
                    body.extend_from_slice(&rest[data]);
                    rest = &rest[consumed..];
                }
                Decoded::More { .. } => panic!("complete"),
                Decoded::End { consumed } => {
                    rest = &rest[consumed..];
                    break;
                }
            }
        }
        assert_eq!(body, b"abc");
        assert_eq!(rest, b"GET");
    }
}
