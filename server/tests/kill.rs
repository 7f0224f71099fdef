//! What a store keeps when its process ends, by `kill -9` in the middle of appends or in order, and who may open it.

#![cfg(feature = "store")]

mod support;
mod wire_support;

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::mpsc::{self, Sender};
use std::thread;

use pumice_frame_proto::tephra::proto::Event;
use serde_json::{Value, json};
use tempfile::TempDir;

use support::Binary;
use wire_support::{Answer, Client, all, append, event, matching, read, unless};

/// Appends that a writer has on their way at a time.
const IN_FLIGHT: u64 = 8;

/// What became of an append, by its name: the first position if it was acknowledged.
type Outcomes = BTreeMap<String, Option<u64>>;

/// The events of the append `name`: one to three, each of which names it.
fn events_of(name: &str) -> Vec<Event> {
    let count = 1 + name.len() % 3;
    (0..count)
        .map(|part| event("Kept", &[name], format!("{name}/{part}/{count}")))
        .collect()
}

/// Appends over the wire until the connection breaks, some of it conditionally.
fn write_frames(addr: SocketAddr, by: &str, acked: &Sender<()>) -> Outcomes {
    let mut outcomes = Outcomes::new();
    // The others may have seen enough before this one has begun.
    let Some(mut client) = Client::try_hello(addr) else {
        return outcomes;
    };
    let mut sent: BTreeMap<u64, String> = BTreeMap::new();
    let mut id = 0;
    loop {
        while sent.len() < IN_FLIGHT as usize {
            id += 1;
            let name = format!("{by}:{id}");
            let request = if id % 2 == 0 {
                append(id, events_of(&name))
            } else {
                let absent = unless(matching(&[], &[&name]), 0);
                wire_support::append_if(id, events_of(&name), absent)
            };
            outcomes.insert(name.clone(), None);
            sent.insert(id, name);
            if client.try_send(&request).is_err() {
                return outcomes;
            }
        }
        match client.try_next() {
            Some(response) => match wire_support::answer(response) {
                (id, Answer::Appended { first, .. }) => {
                    let name = sent.remove(&id).expect("each append is answered once");
                    outcomes.insert(name, Some(first));
                    // The test may have seen enough.
                    let _ = acked.send(());
                }
                other => panic!("not an acknowledgement: {other:?}"),
            },
            None => return outcomes,
        }
    }
}

/// Appends over HTTP, one after another, until the connection breaks.
fn write_http(addr: SocketAddr, by: &str, acked: &Sender<()>) -> Outcomes {
    let mut outcomes = Outcomes::new();
    let Ok(stream) = TcpStream::connect(addr) else {
        return outcomes;
    };
    for id in 0.. {
        let name = format!("{by}:{id}");
        let to_json = |event: &Event| {
            let data = String::from_utf8_lossy(&event.payload);
            json!({"type": event.r#type, "tags": event.tags, "data": data})
        };
        let events: Vec<Value> = events_of(&name).iter().map(to_json).collect();
        outcomes.insert(name.clone(), None);
        let body = json!({ "events": events }).to_string();
        let Some(answer) = http_post(&stream, &body) else {
            break;
        };
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        outcomes.insert(name, Some(answer["first"].as_u64().expect("a position")));
        // The test may have seen enough.
        let _ = acked.send(());
    }
    outcomes
}

/// The body of the answer to an append; `None` when the connection broke before it was whole.
fn http_post(mut stream: &TcpStream, body: &str) -> Option<String> {
    use std::io::{Read, Write};
    stream.write_all(&support::post("/v1/append", body)).ok()?;
    let mut answer = Vec::new();
    let mut buf = [0; 4_096];
    loop {
        let n = stream.read(&mut buf).ok().filter(|&n| n > 0)?;
        answer.extend_from_slice(&buf[..n]);
        let text = String::from_utf8_lossy(&answer);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        assert!(head.starts_with("HTTP/1.1 200 "), "{text}");
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length")
                .then(|| value.trim().parse::<usize>())
        });
        if body.len() == length?.ok()? {
            return Some(body.to_owned());
        }
    }
}

/// Every position from the first one on, with its event.
fn whole_log(addr: SocketAddr) -> Vec<Event> {
    let mut client = Client::hello(addr);
    client.send(&read(1, 0));
    let (events, watermark) = client.take_read(1);
    let positions = events.iter().map(|&(position, _)| position);
    assert!(positions.eq(1..=watermark), "positions are not dense");
    events.into_iter().map(|(_, event)| event).collect()
}

/// Each append is in the log whole and once, or not at all; those that were acknowledged are where that said.
fn check(log: &[Event], outcomes: &Outcomes) {
    let mut found: BTreeMap<&str, u64> = BTreeMap::new();
    let mut position = 0;
    while let Some(event) = log.get(position) {
        let name = &event.tags[0];
        let expected = events_of(name);
        assert_eq!(
            log.get(position..position + expected.len()),
            Some(&expected[..])
        );
        assert!(outcomes.contains_key(name), "nobody appended {name}");
        let before = found.insert(name, position as u64 + 1);
        assert_eq!(before, None, "{name} is there twice");
        position += expected.len();
    }
    for (name, acked) in outcomes {
        if let Some(first) = acked {
            assert_eq!(
                found.get(name.as_str()),
                Some(first),
                "{name} was acknowledged"
            );
        }
    }
}

#[test]
fn after_kill_9_every_acknowledged_append_is_there_once_and_whole() {
    const ROUNDS: usize = 4;
    let mut dir = TempDir::new().expect("a temporary directory");
    let mut outcomes = Outcomes::new();
    for round in 0..ROUNDS {
        let binary = Binary::start_in(dir, &["--workers", "2"]);
        let addr = binary.addr();
        check(&whole_log(addr), &outcomes);
        let (acked, acks) = mpsc::channel();
        let writers: Vec<_> = (0..5)
            .map(|index| {
                let (acked, by) = (acked.clone(), format!("{round}-{index}"));
                thread::spawn(move || match index {
                    0..3 => write_frames(addr, &by, &acked),
                    _ => write_http(addr, &by, &acked),
                })
            })
            .collect();
        // At another place of the stream in each round; where that falls between write and fsync is chance.
        for _ in 0..[1, 300, 57, 150][round % 4] {
            acks.recv().expect("the writers go on");
        }
        dir = binary.kill();
        for writer in writers {
            outcomes.append(&mut writer.join().expect("the writer did not panic"));
        }
    }
    let binary = Binary::start_in(dir, &[]);
    check(&whole_log(binary.addr()), &outcomes);
    // The store goes on where it was.
    let mut client = Client::hello(binary.addr());
    let tip = client.stats().event_count;
    let next = client.append(vec![event("After", &[], "")]);
    assert_eq!(next, (tip + 1, tip + 1));
}

#[test]
fn a_stop_in_order_answers_every_append_and_keeps_what_it_acknowledged() {
    let mut binary = Binary::start_in(TempDir::new().expect("a temporary directory"), &[]);
    let mut client = Client::hello(binary.addr());
    client.append(events_of("before"));
    client.send_all((1..=2_000).map(|id| append(id, events_of(&format!("{id}")))));
    let (first_id, Answer::Appended { first, .. }) = client.expect() else {
        panic!("not an acknowledgement");
    };
    binary.terminate();
    let mut outcomes = Outcomes::from([
        ("before".to_owned(), Some(1)),
        (format!("{first_id}"), Some(first)),
    ]);
    let mut answered = 1;
    while let Some(response) = client.next() {
        answered += 1;
        match wire_support::answer(response) {
            (id, Answer::Appended { first, .. }) => outcomes.insert(format!("{id}"), Some(first)),
            other => panic!("not an acknowledgement: {other:?}"),
        };
    }
    assert!(binary.wait().success());
    // They had all been received when the signal came.
    assert_eq!(answered, 2_000);
    let binary = Binary::start_in(binary.kill(), &[]);
    check(&whole_log(binary.addr()), &outcomes);
}

#[test]
fn a_second_process_on_the_same_directory_is_refused_by_name() {
    let binary = Binary::start();
    let dir = binary.data_dir();
    let output = Command::new(env!("CARGO_BIN_EXE_pumice"))
        .args(["--listen", "127.0.0.1:0", "--data-dir"])
        .arg(&dir)
        .output()
        .expect("the binary can be started");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(&dir.display().to_string()), "{said}");
    assert!(said.contains("lock"), "{said}");
    assert_eq!(output.stdout, b"");
    // The first one doesn't notice.
    let mut client = Client::hello(binary.addr());
    client.append(vec![event("A", &[], "")]);
    client.send(&wire_support::subscribe(1, all(), 0));
    assert_eq!(client.take_to_edge(1).1, 1);
}
