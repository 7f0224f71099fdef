//! What vectors, laws, corpora and the fuzz targets share: a stand-in for a connection that feeds
//! the parsers in pieces and notes what comes out, and the checks that any bytes must pass.
//!
//! The fuzz targets in the repository's `fuzz/` include this file, so it depends on nothing but
//! the crate and httparse.

// Each of them uses a part of it.
#![allow(dead_code)]

use pumice_http_parse::{
    BodyDecoder, Decoded, Error, Framing, Head, HeadParser, Limits, RequestHead, Version,
};

/// What one request came to.
#[derive(Debug, PartialEq)]
pub(crate) struct Exchange {
    pub(crate) head: Head,
    /// The head's bytes.
    pub(crate) bytes: Vec<u8>,
    pub(crate) data: Vec<u8>,
    /// Whether the body came to its end.
    pub(crate) is_done: bool,
    /// Where it ended in the whole input; meaningful when done.
    pub(crate) end: usize,
}

impl Exchange {
    pub(crate) fn view(&self) -> RequestHead<'_> {
        self.head.view(&self.bytes)
    }
}

/// What a connection came to.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Trace {
    pub(crate) exchanges: Vec<Exchange>,
    pub(crate) error: Option<Error>,
    /// Whether some of a head is there, but not all of it.
    pub(crate) is_within_head: bool,
}

/// Feeds `input` as a connection would get it: `sizes` are the lengths of the pieces, and what is
/// left after the last comes at once. Also gives how many bytes had been fed when the trace ended.
pub(crate) fn run(
    input: &[u8],
    limits: &Limits,
    sizes: impl IntoIterator<Item = usize>,
) -> (Trace, usize) {
    let mut connection = Connection::new(input, limits);
    for size in sizes {
        connection.feed(size.max(1));
        if connection.is_over() {
            return (connection.trace, connection.fed);
        }
    }
    connection.feed(input.len());
    (connection.trace, connection.fed)
}

struct Connection<'a> {
    input: &'a [u8],
    limits: &'a Limits,
    /// Bytes that have arrived.
    fed: usize,
    /// Bytes that have been used up.
    used: usize,
    parser: HeadParser,
    head: Head,
    body: Option<BodyDecoder>,
    trace: Trace,
}

impl<'a> Connection<'a> {
    fn new(input: &'a [u8], limits: &'a Limits) -> Self {
        Self {
            input,
            limits,
            fed: 0,
            used: 0,
            parser: HeadParser::default(),
            head: Head::default(),
            body: None,
            trace: Trace::default(),
        }
    }

    fn is_over(&self) -> bool {
        self.trace.error.is_some() || self.fed == self.input.len()
    }

    fn feed(&mut self, size: usize) {
        self.fed = self.fed.saturating_add(size).min(self.input.len());
        self.trace.error = self.take().err();
        self.trace.is_within_head = self.trace.error.is_none() && self.parser.is_within_head();
    }

    fn take(&mut self) -> Result<(), Error> {
        loop {
            let buf = &self.input[self.used..self.fed];
            let is_stuck = match &mut self.body {
                None => self.take_head(buf)?,
                Some(_) => self.take_body(buf)?,
            };
            if is_stuck {
                return Ok(());
            }
        }
    }

    fn take_head(&mut self, buf: &[u8]) -> Result<bool, Error> {
        let parsed = self.parser.parse(buf, self.limits, &mut self.head);
        if let Err(error) = parsed {
            let again = self.parser.parse(buf, self.limits, &mut self.head);
            assert_eq!(again, Err(error), "an error is final");
        }
        let Some(len) = parsed? else {
            return Ok(true);
        };
        assert!(len <= buf.len());
        assert_eq!(len, self.head.len());
        self.used += len;
        self.body = Some(BodyDecoder::new(self.head.body()));
        self.trace.exchanges.push(Exchange {
            head: self.head.clone(),
            bytes: buf[..len].to_vec(),
            data: Vec::new(),
            is_done: false,
            end: 0,
        });
        Ok(false)
    }

    fn take_body(&mut self, buf: &[u8]) -> Result<bool, Error> {
        let (Some(decoder), Some(exchange)) = (self.body.as_mut(), self.trace.exchanges.last_mut())
        else {
            return Ok(true);
        };
        let decoded = decoder.decode(buf, self.limits);
        if let Err(error) = decoded {
            assert_eq!(
                decoder.decode(buf, self.limits),
                Err(error),
                "an error is final"
            );
        }
        match decoded? {
            Decoded::Data { data, consumed } => {
                assert!(!data.is_empty());
                assert!(data.end <= consumed);
                exchange.data.extend_from_slice(&buf[data]);
                assert!(exchange.data.len() as u64 <= self.limits.body_bytes_max);
                self.used += consumed;
                Ok(false)
            }
            Decoded::More { consumed } => {
                assert_eq!(consumed, buf.len(), "more means that all is used up");
                assert!(!decoder.is_done());
                self.used += consumed;
                Ok(true)
            }
            Decoded::End { consumed } => {
                assert!(decoder.is_done());
                self.used += consumed;
                exchange.is_done = true;
                exchange.end = self.used;
                self.body = None;
                Ok(false)
            }
        }
    }
}

/// Limits small enough for short inputs to reach each of them.
pub(crate) fn tight_limits() -> Limits {
    Limits {
        request_line_bytes_max: 48,
        target_bytes_max: 24,
        fields_max: 4,
        field_bytes_max: 40,
        head_bytes_max: 128,
        chunk_extension_bytes_max: 12,
        trailer_bytes_max: 40,
        trailers_max: 2,
        body_bytes_max: 32,
    }
}

/// The first byte of a fuzz input chooses the limits and the cut, the rest is what a client sends.
fn split_input(data: &[u8]) -> Option<(Limits, usize, &[u8])> {
    let (&choice, input) = data.split_first()?;
    let limits = match choice & 0x80 {
        0 => Limits::default(),
        _ => tight_limits(),
    };
    Some((limits, usize::from(choice & 0x7f), input))
}

/// Holds for any bytes: however they are cut, the same comes out, and each request that passes is
/// sound.
pub(crate) fn check_stream(data: &[u8]) {
    let Some((limits, step, input)) = split_input(data) else {
        return;
    };
    let (whole, _) = run(input, &limits, []);
    let pieces = std::iter::repeat(step);
    assert_eq!(
        run(input, &limits, pieces.take(input.len())).0,
        whole,
        "in pieces of {step}"
    );
    let (bytewise, fed) = run(input, &limits, std::iter::repeat_n(1, input.len()));
    assert_eq!(bytewise, whole, "byte by byte");
    if whole.error.is_some() {
        let (before, _) = run(&input[..fed - 1], &limits, []);
        assert_eq!(
            before.error, None,
            "the error shows at its byte and not before"
        );
    }
    for exchange in &whole.exchanges {
        check_exchange(exchange, &limits);
    }
}

/// The same for input that is a head and nothing else, which spares the fuzzer the way there.
pub(crate) fn check_head(data: &[u8]) {
    let Some((limits, step, input)) = split_input(data) else {
        return;
    };
    let mut whole = Head::default();
    let expected = HeadParser::default().parse(input, &limits, &mut whole);
    let mut head = Head::default();
    let mut parser = HeadParser::default();
    let mut end = 0;
    let result = loop {
        end = (end + step.max(1)).min(input.len());
        match parser.parse(&input[..end], &limits, &mut head) {
            Ok(None) if end < input.len() => {}
            other => break other,
        }
    };
    assert_eq!(result, expected);
    if let Ok(Some(len)) = expected {
        assert_eq!(head, whole);
        check_against_httparse(&input[..len], &whole);
    }
}

/// The same for input that is a chunked body.
pub(crate) fn check_body(data: &[u8]) {
    let Some((limits, step, input)) = split_input(data) else {
        return;
    };
    let whole = decode(input, &limits, input.len());
    assert_eq!(decode(input, &limits, step.max(1)), whole);
    if let Ok((data, Some(end))) = &whole {
        assert_eq!(naive_chunks(&input[..*end]).as_ref(), Some(data));
    }
}

type Body = Result<(Vec<u8>, Option<usize>), Error>;

/// Decodes a chunked body that comes in pieces; gives its data, and where it ended if it did.
fn decode(input: &[u8], limits: &Limits, step: usize) -> Body {
    let mut decoder = BodyDecoder::new(Framing::Chunked);
    let mut body = Vec::new();
    let (mut used, mut fed) = (0, 0);
    loop {
        match decoder.decode(&input[used..fed], limits)? {
            Decoded::Data { data, consumed } => {
                body.extend_from_slice(&input[used..][data]);
                used += consumed;
            }
            Decoded::More { consumed } => {
                used += consumed;
                if fed == input.len() {
                    return Ok((body, None));
                }
                fed = (fed + step).min(input.len());
            }
            Decoded::End { consumed } => return Ok((body, Some(used + consumed))),
        }
    }
}

/// Another way to read a chunked body that is known to be complete, with httparse's chunk sizes.
fn naive_chunks(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let Ok(httparse::Status::Complete((start, size))) = httparse::parse_chunk_size(rest) else {
            return None;
        };
        rest = &rest[start..];
        if size == 0 {
            // Trailers and the empty line: nothing but lines, the last one empty.
            return rest.ends_with(b"\r\n").then_some(body);
        }
        let (data, behind) = rest.split_at_checked(usize::try_from(size).ok()?)?;
        body.extend_from_slice(data);
        rest = behind.strip_prefix(b"\r\n")?;
    }
}

/// What must be true of each request that passes.
fn check_exchange(exchange: &Exchange, limits: &Limits) {
    let view = exchange.view();
    assert!(exchange.bytes.len() <= limits.head_bytes_max);
    assert!(view.target().len() <= limits.target_bytes_max);
    assert!(view.fields().len() <= limits.fields_max);
    let count = |name| view.get_all(name).count();
    assert!(count("host") <= 1);
    assert!(count("host") == 1 || view.version() == Version::Http10);
    match view.body() {
        Framing::None => assert_eq!(count("content-length") + count("transfer-encoding"), 0),
        Framing::Length(length) => {
            assert_eq!(count("transfer-encoding"), 0);
            assert_eq!(count("content-length"), 1);
            assert!(!exchange.is_done || exchange.data.len() as u64 == length);
        }
        Framing::Chunked => {
            assert_eq!(count("content-length"), 0);
            assert_eq!(view.version(), Version::Http11);
        }
    }
    check_against_httparse(&exchange.bytes, &exchange.head);
}

/// httparse takes every head that this crate takes, and finds the same in it.
pub(crate) fn check_against_httparse(bytes: &[u8], head: &Head) {
    let view = head.view(bytes);
    let mut headers = vec![httparse::EMPTY_HEADER; view.fields().len()];
    let mut request = httparse::Request::new(&mut headers);
    let version = match request.parse(bytes) {
        Ok(httparse::Status::Complete(len)) => {
            assert_eq!(len, bytes.len());
            request.version
        }
        // It knows no minor version but 0 and 1.
        Err(httparse::Error::Version) => return,
        other => panic!("httparse says {other:?}"),
    };
    assert_eq!(
        version,
        Some(if view.version() == Version::Http10 {
            0
        } else {
            1
        })
    );
    assert_eq!(request.method, Some(view.method_str()));
    assert_eq!(request.path, Some(view.target()));
    let theirs = request
        .headers
        .iter()
        .map(|header| (header.name, header.value));
    assert!(view.fields().eq(theirs), "fields differ");
}
