//! Known bytes: each `vectors/*.http` is what a client sends, and the `.txt` beside it says where
//! it comes from and what is to come out.
//!
//! The text's first line names the RFC's section or the attack, `limit` lines set single limits,
//! and the rest is the trace: what each request is taken for, and how the input ends. `error at n`
//! says that the n-th byte is the one that makes it an error. With `BLESS=1` the traces are written
//! anew, to be read before they are committed.

use std::{collections::BTreeSet, env, fmt::Write, fs, iter, path::Path};

use pumice_http_parse::{Framing, Limits};

use crate::harness::{Exchange, Trace, run};

mod harness;

/// A longer input is cut at this many places, and not everywhere.
const CUTS_MAX: usize = 400;

#[test]
fn every_vector_comes_out_as_its_text_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let names: BTreeSet<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "http")
        })
        .collect();
    assert!(names.len() >= 200, "only {} vectors", names.len());
    let mut wrong = Vec::new();
    for path in names {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let input = fs::read(&path).unwrap();
        let text_path = path.with_extension("txt");
        let text = fs::read_to_string(&text_path).unwrap();
        let (start, limits) = read_start(&text);
        let sources = ["RFC ", "CVE-", "smuggling", "(B", "H1", "H2", "TLS "];
        assert!(
            start.starts_with("# ") && sources.iter().any(|source| start.contains(source)),
            "{name}: the first line says where it comes from"
        );
        let (trace, fed) = run(&input, &limits, iter::repeat_n(1, input.len()));
        let actual = start + &render(&trace, fed);
        if env::var_os("BLESS").is_some() {
            fs::write(&text_path, &actual).unwrap();
        } else if actual != text {
            wrong.push(format!("{name}: expected\n{text}\nbut got\n{actual}"));
        }
        check_cuts(&name, &input, &limits, &trace);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// All at once, in two pieces at any byte, and in pieces of any size: the same comes out.
fn check_cuts(name: &str, input: &[u8], limits: &Limits, expected: &Trace) {
    assert_eq!(run(input, limits, []).0, *expected, "{name} at once");
    let step = input.len() / CUTS_MAX + 1;
    for cut in (1..input.len()).step_by(step) {
        assert_eq!(
            run(input, limits, [cut]).0,
            *expected,
            "{name} cut at {cut}"
        );
    }
    for size in [2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33] {
        let pieces = iter::repeat_n(size, input.len() / size);
        assert_eq!(run(input, limits, pieces).0, *expected, "{name} by {size}");
    }
}

/// The lines that say what the input is, and the limits that they set.
fn read_start(text: &str) -> (String, Limits) {
    let mut limits = Limits::default();
    let mut start = String::new();
    for line in text.lines() {
        if let Some(limit) = line.strip_prefix("limit ") {
            let (name, value) = limit.split_once(' ').unwrap();
            set(&mut limits, name, value.parse().unwrap());
        } else if !line.starts_with("# ") {
            break;
        }
        start += line;
        start.push('\n');
    }
    (start, limits)
}

fn set(limits: &mut Limits, name: &str, value: usize) {
    let field = match name {
        "request_line_bytes_max" => &mut limits.request_line_bytes_max,
        "target_bytes_max" => &mut limits.target_bytes_max,
        "fields_max" => &mut limits.fields_max,
        "field_bytes_max" => &mut limits.field_bytes_max,
        "head_bytes_max" => &mut limits.head_bytes_max,
        "chunk_extension_bytes_max" => &mut limits.chunk_extension_bytes_max,
        "trailer_bytes_max" => &mut limits.trailer_bytes_max,
        "trailers_max" => &mut limits.trailers_max,
        "body_bytes_max" => {
            limits.body_bytes_max = value as u64;
            return;
        }
        _ => panic!("no limit {name}"),
    };
    *field = value;
}

fn render(trace: &Trace, fed: usize) -> String {
    let mut text: String = trace.exchanges.iter().map(render_exchange).collect();
    let is_done = trace
        .exchanges
        .last()
        .is_none_or(|exchange| exchange.is_done);
    let end = match trace.error {
        Some(error) => format!("error at {fed}: {} {error}", error.status()),
        None if trace.is_within_head => "waits in a head".into(),
        None if !is_done => "waits in a body".into(),
        None => "idle".into(),
    };
    text += &end;
    text.push('\n');
    text
}

fn render_exchange(exchange: &Exchange) -> String {
    let head = &exchange.head;
    let view = exchange.view();
    let mut text = format!(
        "request {} ({:?}) {} {:?}\n",
        view.method_str(),
        view.method(),
        view.target(),
        view.version()
    );
    let authority = view.authority().unwrap_or("-");
    let query = view.query().map(|query| format!(" query \"{query}\""));
    let _ = writeln!(
        text,
        "  authority {authority} path {}{}",
        Some(view.path())
            .filter(|path| !path.is_empty())
            .unwrap_or("-"),
        query.unwrap_or_default()
    );
    // Long runs of the same fields say nothing after the first few.
    for (name, value) in view.fields().take(8) {
        let _ = writeln!(text, "  field {name} = \"{}\"", value.escape_ascii());
    }
    let body = match head.body() {
        Framing::None => "no body".into(),
        Framing::Length(length) => format!("body of {length}"),
        Framing::Chunked => "body in chunks".into(),
    };
    let words = [
        (head.keep_alive(), ", keep-alive"),
        (head.expects_continue(), ", expects continue"),
        (head.is_upgrade(), ", upgrade"),
    ];
    let words: String = words
        .iter()
        .filter(|(is, _)| *is)
        .map(|(_, word)| *word)
        .collect();
    let _ = writeln!(text, "  {} fields, {body}{words}", view.fields().len());
    if !exchange.data.is_empty() {
        let _ = writeln!(text, "  data \"{}\"", exchange.data.escape_ascii());
    }
    if exchange.is_done {
        let _ = writeln!(text, "  ends at {}", exchange.end);
    }
    text
}
