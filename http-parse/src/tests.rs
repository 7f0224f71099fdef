//! Work that stays linear however the bytes are cut, and what the types promise.

use crate::{
    BodyDecoder, Decoded, Error, Framing, Head, HeadParser, Known, Limits, Method, bytes::WORK,
};

/// A head with a long target, a long value and many short fields.
fn long_head(bytes: usize) -> Vec<u8> {
    let mut head = format!("GET /{} HTTP/1.1\r\nHost: x\r\n", "a".repeat(bytes / 3));
    head += &format!("Cookie: {}\r\n", "b\t".repeat(bytes / 6));
    while head.len() < bytes {
        head += "A: b\r\n";
    }
    (head + "\r\n").into_bytes()
}

/// Bytes that are looked at for this head in pieces of `step` bytes.
fn head_work(buf: &[u8], step: usize) -> usize {
    let limits = Limits {
        request_line_bytes_max: usize::MAX,
        target_bytes_max: usize::MAX,
        field_bytes_max: usize::MAX,
        head_bytes_max: usize::MAX,
        fields_max: usize::MAX,
        ..Limits::default()
    };
    let (mut parser, mut head) = (HeadParser::default(), Head::default());
    WORK.set(0);
    let mut end = 0;
    loop {
        end = (end + step).min(buf.len());
        match parser.parse(&buf[..end], &limits, &mut head) {
            Ok(Some(len)) => {
                assert_eq!(len, buf.len());
                return WORK.get();
            }
            Ok(None) => assert!(end < buf.len()),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn no_cut_makes_a_head_be_looked_at_again() {
    for bytes in [300, 3_000, 30_000] {
        let head = long_head(bytes);
        for step in [usize::MAX / 2, 1_000, 64, 16, 3, 1] {
            let calls = head.len().div_ceil(step);
            let work = head_work(&head, step);
            // Each byte once, those of the first call once more by httparse; Host once more; a stop
            // for each part of a line and for each call.
            let stops = 2 * head.iter().filter(|&&byte| byte == b'\n').count() + 3;
            let most = head.len() + step.min(head.len()) + stops + calls;
            assert!(work <= most, "{work} of {most} for {bytes} by {step}");
        }
    }
}

#[test]
fn a_body_of_one_byte_chunks_is_looked_at_once() {
    let limits = Limits::default();
    for chunks in [100, 1_000, 10_000] {
        let body = ["1\r\nx\r\n".repeat(chunks), "0\r\n\r\n".into()].concat();
        for step in [1, 7, body.len()] {
            let mut decoder = BodyDecoder::new(Framing::Chunked);
            let (mut at, mut end, mut calls) = (0, 0, 0);
            WORK.set(0);
            while !decoder.is_done() {
                calls += 1;
                match decoder.decode(&body.as_bytes()[at..end], &limits) {
                    Ok(Decoded::Data { consumed, .. } | Decoded::End { consumed }) => {
                        at += consumed;
                    }
                    Ok(Decoded::More { consumed }) => {
                        at += consumed;
                        end = (end + step).min(body.len());
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            // The data itself is never looked at.
            assert_eq!(WORK.get(), body.len() - chunks);
            assert!(calls <= chunks + body.len() / step + 2);
        }
    }
}

#[test]
fn a_length_is_handed_out_without_a_look_at_the_data() {
    let mut decoder = BodyDecoder::new(Framing::Length(10_000));
    WORK.set(0);
    let decoded = decoder.decode(&[0; 20_000], &Limits::default());
    let data = 0..10_000;
    let consumed = 10_000;
    assert_eq!(decoded, Ok(Decoded::Data { data, consumed }));
    assert_eq!(WORK.get(), 0);
    let end = Decoded::End { consumed: 0 };
    assert_eq!(decoder.decode(b"GET", &Limits::default()), Ok(end));
}

#[test]
fn a_body_by_length_is_held_to_the_limit_given_with_its_bytes() {
    let limits = Limits {
        body_bytes_max: 5,
        ..Limits::default()
    };
    let mut decoder = BodyDecoder::new(Framing::Length(6));
    assert_eq!(decoder.decode(b"", &limits), Err(Error::BodyTooLarge));
    let mut decoder = BodyDecoder::new(Framing::Length(5));
    assert_eq!(
        decoder.decode(b"", &limits),
        Ok(Decoded::More { consumed: 0 })
    );
}

#[test]
fn a_reused_head_allocates_no_more() {
    let (mut parser, mut head, limits) = Default::default();
    let long = long_head(600);
    let long_len = HeadParser::parse(&mut parser, &long, &limits, &mut head);
    assert_eq!(long_len, Ok(Some(long.len())));
    let capacity = head.fields.capacity();
    let short = b"PUT / HTTP/1.0\r\n\r\n";
    assert_eq!(
        parser.parse(short, &limits, &mut head),
        Ok(Some(short.len()))
    );
    assert_eq!(head.fields.capacity(), capacity);
    let view = head.view(short);
    assert_eq!(
        (view.method(), view.field(Known::Host)),
        (Method::Put, None)
    );
    assert_eq!(view.fields().len(), 0);
}

#[test]
fn an_error_repeats_itself() {
    let (mut parser, mut head, limits) =
        (HeadParser::default(), Head::default(), Limits::default());
    for bytes in [&b"\n"[..], b"", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"] {
        assert_eq!(parser.parse(bytes, &limits, &mut head), Err(Error::BareLf));
    }
}

#[test]
fn a_parser_says_whether_it_is_within_a_head() {
    let (mut parser, mut head, limits) =
        (HeadParser::default(), Head::default(), Limits::default());
    assert!(!parser.is_within_head());
    assert_eq!(parser.parse(b"", &limits, &mut head), Ok(None));
    assert!(!parser.is_within_head());
    assert_eq!(parser.parse(b"\r", &limits, &mut head), Ok(None));
    assert!(parser.is_within_head());
    let request = b"\r\nGET / HTTP/1.0\r\n\r\n";
    assert_eq!(
        parser.parse(request, &limits, &mut head),
        Ok(Some(request.len()))
    );
    assert!(!parser.is_within_head());
    assert_eq!((head.len(), head.is_empty()), (request.len(), false));
    head.clear();
    assert!(head.is_empty());
}

#[test]
#[should_panic(expected = "out of range")]
fn a_view_of_fewer_bytes_than_the_head_has_panics() {
    let (mut parser, mut head) = (HeadParser::default(), Head::default());
    let request = b"GET / HTTP/1.0\r\n\r\n";
    let parsed = parser.parse(request, &Limits::default(), &mut head);
    assert_eq!(parsed, Ok(Some(request.len())));
    let _ = head.view(&request[1..]);
}

#[test]
fn every_status_is_one_that_a_server_may_send() {
    let errors = [
        (Error::BareLf, 400),
        (Error::BodyTooLarge, 413),
        (Error::TargetTooLong, 414),
        (Error::RequestLineTooLong, 414),
        (Error::UnknownExpectation, 417),
        (Error::HeadTooLong, 431),
        (Error::MethodTooLong, 501),
        (Error::UnknownTransferCoding, 501),
        (Error::UnsupportedVersion, 505),
    ];
    for (error, status) in errors {
        assert_eq!(error.status(), status, "{error}");
        assert_eq!(error.to_string(), error.reason());
    }
}
