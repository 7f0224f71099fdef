//! Laws that hold for any request and any bytes.

use std::iter;

use proptest::{collection::vec, prelude::*, sample::select};
use pumice_http_parse::{
    Framing, Known, Limits, Method, Version, percent_decode, percent_decode_strict,
};

use crate::harness::{check_body, check_head, check_stream, run};

mod harness;

const TOKEN: &str = "[!#$%&'*+.^_`|~0-9A-Za-z-]{1,12}";

/// Fields that the parser reads itself; the generated ones have other names.
const READ: [&str; 6] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "transfer-encoding",
    "upgrade",
];

#[derive(Clone, Debug)]
struct Field {
    name: String,
    value: Vec<u8>,
    before: String,
    behind: String,
}

#[derive(Clone, Debug)]
struct Chunk {
    data: Vec<u8>,
    size_prefix: &'static str,
    extension: &'static str,
}

#[derive(Clone, Debug)]
enum Body {
    None,
    Length(Vec<u8>),
    Chunks(Vec<Chunk>, Vec<Field>),
}

#[derive(Clone, Debug)]
struct Request {
    leading: &'static str,
    method: String,
    target: String,
    version: &'static str,
    fields: Vec<Field>,
    /// Where Host stands among them.
    host_place: usize,
    body: Body,
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..40).prop_map(|bytes| {
        let is_value = |byte: &u8| *byte == b'\t' || (*byte >= b' ' && *byte != 0x7f);
        let bytes: Vec<u8> = bytes.into_iter().filter(is_value).collect();
        bytes.trim_ascii().to_vec()
    })
}

fn field() -> impl Strategy<Value = Field> {
    let name = TOKEN.prop_filter("read by the parser", |name| {
        !READ.iter().any(|read| name.eq_ignore_ascii_case(read))
    });
    (name, value(), "[ \t]{0,2}", "[ \t]{0,2}").prop_map(|(name, value, before, behind)| Field {
        name,
        value,
        before,
        behind,
    })
}

fn chunk() -> impl Strategy<Value = Chunk> {
    let extension = select(&["", ";a", ";a=b", " ; a = \"b;\\\"\\r\\n\"", ";a=\"\";b"][..]);
    let size_prefix = select(&["", "0", "0000"][..]);
    (vec(any::<u8>(), 1..40), size_prefix, extension).prop_map(|(data, size_prefix, extension)| {
        Chunk {
            data,
            size_prefix,
            extension,
        }
    })
}

fn body() -> impl Strategy<Value = Body> {
    prop_oneof![
        Just(Body::None),
        vec(any::<u8>(), 0..60).prop_map(Body::Length),
        (vec(chunk(), 0..6), vec(field(), 0..3))
            .prop_map(|(chunks, trailers)| Body::Chunks(chunks, trailers)),
    ]
}

fn request() -> impl Strategy<Value = Request> {
    let leading = select(&["", "\r\n"][..]);
    let method = prop_oneof![
        select(&["GET", "HEAD", "POST", "PUT", "DELETE", "TRACE", "PATCH"][..])
            .prop_map(String::from),
        TOKEN.prop_filter("its targets differ", |method| method != "CONNECT"),
    ];
    let target = prop_oneof![
        "/[!-\"$-~]{0,30}",
        "http://[a-z.]{1,9}(:[0-9]{0,4})?/[!-\"$-~]{0,9}"
    ];
    let version = select(&["HTTP/1.0", "HTTP/1.1", "HTTP/1.7"][..]);
    (
        leading,
        method,
        target,
        version,
        vec(field(), 0..6),
        any::<usize>(),
        body(),
    )
        .prop_map(
            |(leading, method, target, version, fields, host_place, body)| Request {
                leading,
                method,
                target,
                version,
                host_place: host_place % (fields.len() + 1),
                fields,
                // HTTP/1.0 has no chunks.
                body: match body {
                    Body::Chunks(..) if version == "HTTP/1.0" => Body::None,
                    body => body,
                },
            },
        )
}

fn put_field(out: &mut Vec<u8>, field: &Field) {
    out.extend_from_slice(format!("{}:{}", field.name, field.before).as_bytes());
    out.extend_from_slice(&field.value);
    out.extend_from_slice(format!("{}\r\n", field.behind).as_bytes());
}

impl Request {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.leading.as_bytes());
        let line = format!("{} {} {}\r\n", self.method, self.target, self.version);
        out.extend_from_slice(line.as_bytes());
        for (place, field) in self.fields.iter().enumerate() {
            if place == self.host_place {
                out.extend_from_slice(b"Host: h.example\r\n");
            }
            put_field(out, field);
        }
        if self.host_place == self.fields.len() {
            out.extend_from_slice(b"hOST:h.example \r\n");
        }
        match &self.body {
            Body::None => out.extend_from_slice(b"\r\n"),
            Body::Length(data) => {
                let line = format!("Content-Length: {}\r\n\r\n", data.len());
                out.extend_from_slice(line.as_bytes());
                out.extend_from_slice(data);
            }
            Body::Chunks(chunks, trailers) => {
                out.extend_from_slice(b"Transfer-Encoding: Chunked\r\n\r\n");
                for chunk in chunks {
                    let Chunk {
                        data,
                        size_prefix,
                        extension,
                    } = chunk;
                    let line = format!("{size_prefix}{:X}{extension}\r\n", data.len());
                    out.extend_from_slice(line.as_bytes());
                    out.extend_from_slice(data);
                    out.extend_from_slice(b"\r\n");
                }
                out.extend_from_slice(b"0\r\n");
                trailers.iter().for_each(|field| put_field(out, field));
                out.extend_from_slice(b"\r\n");
            }
        }
    }

    fn data(&self) -> Vec<u8> {
        match &self.body {
            Body::None => Vec::new(),
            Body::Length(data) => data.clone(),
            Body::Chunks(chunks, _) => chunks.iter().flat_map(|chunk| chunk.data.clone()).collect(),
        }
    }

    fn framing(&self) -> Framing {
        match &self.body {
            Body::None => Framing::None,
            Body::Length(data) => Framing::Length(data.len() as u64),
            Body::Chunks(..) => Framing::Chunked,
        }
    }
}

/// Pieces of requests, right and wrong ones: soup of these comes further than random bytes do.
fn soup() -> impl Strategy<Value = Vec<u8>> {
    let words: &[&[u8]] = &[
        b"GET / HTTP/1.1\r\n",
        b"POST /a?b HTTP/1.1\r\nHost: x\r\n",
        b"OPTIONS * HTTP/1.0\r\n",
        b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n",
        b"GET http://[::1]:8/%41 HTTP/1.1\r\n",
        b"GET /\0 HTTP/2.0",
        b"Host: a\r\n",
        b"Host: a b\r\n",
        b"Content-Length: 5\r\n",
        b"Content-Length: 5, 5\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: gzip, chunked\r\n",
        b"Connection: close, upgrade\r\n",
        b"Upgrade: a\r\n",
        b"Expect: 100-continue\r\n",
        b"X: y \t\r\n",
        b" folded\r\n",
        b"X : y\r\n",
        b"X: y\n",
        b"X: y\r",
        b"\r\n",
        b"\n",
        b"\r",
        b"\0",
        b"\xff",
        b" ",
        b":",
        b"5\r\nhello\r\n",
        b"5;a=\"b\"\r\nhello\r\n",
        b"5 ;a\nhello\r\n",
        b"10000000000000005\r\n",
        b"0\r\n\r\n",
        b"0;a\r\nX: y\r\n\r\n",
        b"hello",
    ];
    let word = prop_oneof![
        8 => select(words).prop_map(<[u8]>::to_vec),
        1 => vec(any::<u8>(), 0..9),
    ];
    vec(word, 0..24).prop_map(|words| words.concat())
}

const CHUNK_WORDS: &[&[u8]] = &[
    b"5\r\nhello\r\n",
    b"1;a=b\r\nx\r\n",
    b"A ; b = \"c\\\"\" \t;d\r\n0123456789\r\n",
    b"0\r\n\r\n",
    b"0\r\n",
    b"X: y\r\n",
    b"\r\n",
    b"5",
    b";",
    b"a",
    b"=",
    b"\"",
    b"\\",
    b" ",
    b"\t",
    b"\r",
    b"\n",
    b"g",
    b"ffffffffffffffff",
    b"hello",
    b"\0",
];

/// Any byte, but mostly one on an edge of what is allowed.
fn damaging_byte() -> impl Strategy<Value = u8> {
    prop_oneof![
        3 => select(&b"\0\t\n\x0b\r\x1f !#%,:;=\\\x7e\x7f\x80\xff"[..]),
        1 => any::<u8>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_is_written_is_read(requests in vec(request(), 1..4), step in 1_usize..70) {
        let mut bytes = Vec::new();
        let mut ends = Vec::new();
        for request in &requests {
            request.put(&mut bytes);
            ends.push(bytes.len());
        }
        let (trace, _) = run(&bytes, &Limits::default(), iter::repeat_n(step, bytes.len() / step));
        prop_assert_eq!(trace.error, None);
        prop_assert!(!trace.is_within_head);
        prop_assert_eq!(trace.exchanges.len(), requests.len());
        for ((exchange, request), end) in trace.exchanges.iter().zip(&requests).zip(ends) {
            let view = exchange.view();
            prop_assert_eq!(view.method_str(), &request.method);
            prop_assert_eq!(view.target(), &request.target);
            prop_assert_eq!(view.version() == Version::Http10, request.version == "HTTP/1.0");
            prop_assert_eq!(view.field(Known::Host), Some(&b"h.example"[..]));
            let fields: Vec<_> = view
                .fields()
                .filter(|(name, _)| !READ.contains(&name.to_ascii_lowercase().as_str()))
                .collect();
            let expected: Vec<_> =
                request.fields.iter().map(|field| (&*field.name, &*field.value)).collect();
            prop_assert_eq!(fields, expected);
            for field in &request.fields {
                let first = request.fields.iter().find(|other| other.name.eq_ignore_ascii_case(&field.name));
                prop_assert_eq!(view.get(&field.name), first.map(|field| &*field.value));
            }
            prop_assert_eq!(exchange.head.body(), request.framing());
            prop_assert_eq!(&exchange.data, &request.data());
            prop_assert!(exchange.is_done);
            prop_assert_eq!(exchange.end, end);
        }
    }

    #[test]
    fn a_target_is_its_parts(request in request()) {
        let mut bytes = Vec::new();
        request.put(&mut bytes);
        let (trace, _) = run(&bytes, &Limits::default(), []);
        let view = trace.exchanges[0].view();
        let (rest, query) = match request.target.split_once('?') {
            Some((rest, query)) => (rest, Some(query)),
            None => (&*request.target, None),
        };
        let (authority, path) = match rest.strip_prefix("http://") {
            Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
            None => ("h.example", rest),
        };
        prop_assert_eq!(view.query(), query);
        prop_assert_eq!(view.path(), path);
        prop_assert_eq!(view.authority(), Some(authority));
    }

    #[test]
    fn any_cut_of_soup_comes_out_the_same(control in any::<u8>(), soup in soup()) {
        check_stream(&[&[control][..], &soup].concat());
    }

    #[test]
    fn any_cut_of_damaged_requests_comes_out_the_same(
        control in any::<u8>(),
        requests in vec(request(), 1..3),
        damage in vec((any::<prop::sample::Index>(), damaging_byte()), 1..3),
    ) {
        let mut bytes = vec![control];
        requests.iter().for_each(|request| request.put(&mut bytes));
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        check_stream(&bytes);
    }

    #[test]
    fn any_bytes_come_out_somehow(bytes in vec(any::<u8>(), 0..300)) {
        check_stream(&bytes);
        check_head(&bytes);
        check_body(&bytes);
    }

    #[test]
    fn any_cut_of_chunks_comes_out_the_same(
        control in any::<u8>(),
        words in vec(select(CHUNK_WORDS), 0..16),
    ) {
        check_body(&[&[control][..], &words.concat()].concat());
    }

    #[test]
    fn decoding_undoes_encoding(text in ".{0,40}") {
        let encoded: String = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
        prop_assert_eq!(&*percent_decode(&encoded), text.as_bytes());
        let strict = percent_decode_strict(&encoded);
        prop_assert_eq!(strict.as_deref(), Some(&*text));
        // Text without a percent sign is its own decoding, and so costs nothing.
        let plain = text.replace('%', "");
        prop_assert!(matches!(percent_decode(&plain), std::borrow::Cow::Borrowed(_)));
        prop_assert_eq!(&*percent_decode(&plain), plain.as_bytes());
    }
}

/// What a line of the model's heads does.
#[derive(Clone, Copy, Debug)]
enum Effect {
    Plain,
    Refused(u16),
    Host,
    Length(u64),
    Chunked,
    Close,
    KeepAlive,
    Continue,
}

const REQUEST_LINES: &[(&str, Version, Option<u16>)] = &[
    ("GET / HTTP/1.1", Version::Http11, None),
    ("PATCH /?a HTTP/1.0", Version::Http10, None),
    ("OPTIONS * HTTP/1.3", Version::Http11, None),
    ("GET http://a HTTP/1.1", Version::Http11, None),
    ("GET * HTTP/1.1", Version::Http11, Some(400)),
    ("GET / HTTP/3.1", Version::Http11, Some(505)),
    ("GET / HTTP/1.1\r", Version::Http11, Some(400)),
];

const LINES: &[(&str, Effect)] = &[
    ("A: b", Effect::Plain),
    ("Content-Type: text/plain", Effect::Plain),
    ("Content-Lengths: 7", Effect::Plain),
    ("Connection: foo", Effect::Plain),
    ("Host: a", Effect::Host),
    ("host:[::1]:80 ", Effect::Host),
    ("Content-Length: 3", Effect::Length(3)),
    ("CONTENT-LENGTH:03", Effect::Length(3)),
    ("Transfer-Encoding: chunked", Effect::Chunked),
    ("transfer-encoding:\tCHUNKED\t", Effect::Chunked),
    ("Connection: Close", Effect::Close),
    ("Connection: a,keep-alive ,b", Effect::KeepAlive),
    ("Expect: 100-Continue", Effect::Continue),
    ("Host: a/b", Effect::Refused(400)),
    ("Content-Length: -3", Effect::Refused(400)),
    ("Content-Length: 9999999999", Effect::Refused(413)),
    ("Expect: 200", Effect::Refused(417)),
    ("A : b", Effect::Refused(400)),
    (" a: b", Effect::Refused(400)),
    ("A: b\nC: d", Effect::Refused(400)),
];

/// What the lines together should come to: a status, or framing, keep-alive and 100-continue.
fn model(
    (_, version, refused): (&str, Version, Option<u16>),
    effects: &[Effect],
) -> Result<(Framing, bool, bool), u16> {
    if let Some(status) = refused {
        return Err(status);
    }
    let is_new = version == Version::Http11;
    let (mut hosts, mut framing) = (0, Framing::None);
    let (mut has_close, mut has_keep_alive, mut has_continue) = (false, false, false);
    for &effect in effects {
        match (effect, framing) {
            (Effect::Refused(status), _) => return Err(refusal(status, framing)),
            (Effect::Host, _) if hosts > 0 => return Err(400),
            (Effect::Host, _) => hosts += 1,
            (Effect::Length(length), Framing::None) => framing = Framing::Length(length),
            (Effect::Chunked, Framing::None) if is_new => framing = Framing::Chunked,
            (Effect::Length(_) | Effect::Chunked, _) => return Err(400),
            (Effect::Close, _) => has_close = true,
            (Effect::KeepAlive, _) => has_keep_alive = true,
            (Effect::Continue, _) => has_continue = true,
            (Effect::Plain, _) => {}
        }
    }
    if hosts == 0 && is_new {
        return Err(400);
    }
    let keep_alive = !has_close && (is_new || has_keep_alive);
    Ok((
        framing,
        keep_alive,
        has_continue && is_new && framing != Framing::None,
    ))
}

/// A length that is too large is no longer the question once there is another one.
fn refusal(status: u16, framing: Framing) -> u16 {
    match (status, framing) {
        (413, Framing::Length(_) | Framing::Chunked) => 400,
        _ => status,
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: 1_000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_head_means_what_its_lines_mean(
        request_line in select(REQUEST_LINES),
        lines in vec(prop_oneof![9 => select(&LINES[..13]), 1 => select(LINES)], 0..5),
    ) {
        let mut bytes = format!("{}\r\n", request_line.0);
        for (line, _) in &lines {
            bytes += &format!("{line}\r\n");
        }
        bytes += "\r\n";
        let effects: Vec<Effect> = lines.iter().map(|(_, effect)| *effect).collect();
        let (trace, _) = run(bytes.as_bytes(), &Limits::default(), []);
        let actual = match (trace.error, trace.exchanges.first()) {
            (Some(error), None) => Err(error.status()),
            (None, Some(exchange)) => {
                let head = &exchange.head;
                prop_assert_ne!(head.method(), Method::Other);
                Ok((head.body(), head.keep_alive(), head.expects_continue()))
            }
            other => panic!("{other:?}"),
        };
        prop_assert_eq!(actual, model(request_line, &effects));
    }
}
