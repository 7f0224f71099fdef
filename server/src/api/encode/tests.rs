//! The exact text of what is written.

use tephra::{Event, EventType, Tag, Tags};

use super::*;

fn event(event_type: &str, tags: &[&str], data: &[u8]) -> Event {
    let tags = tags.iter().map(|name| Tag::new(*name).unwrap());
    Event::new(
        &EventType::new(event_type).unwrap(),
        &Tags::new(tags).unwrap(),
        data,
    )
    .unwrap()
}

fn written(put: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    put(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn an_event_is_written_with_its_position_first() {
    let event = event("T", &["b", "a:1"], b"{\"x\":1}");
    assert_eq!(
        written(|out| put_event(out, 7, event.as_ref())),
        r#"{"position":7,"type":"T","tags":["a:1","b"],"data":"{\"x\":1}"}"#
    );
    assert_eq!(
        written(|out| put_dcb_event(out, u64::MAX, event.as_ref())),
        r#"{"type":"T","tags":["a:1","b"],"data":"{\"x\":1}","position":18446744073709551615}"#
    );
}

#[test]
fn an_empty_payload_is_an_empty_string() {
    let event = event("T", &[], b"");
    assert_eq!(
        written(|out| put_event(out, 0, event.as_ref())),
        r#"{"position":0,"type":"T","tags":[],"data":""}"#
    );
}

#[test]
fn bytes_that_are_no_text_are_base64() {
    for (data, text) in [
        (&b"\xff"[..], "/w=="),
        (b"\xff\xfe", "//4="),
        (b"\xff\xfe\xfd", "//79"),
        (b"abc\xc3", "YWJjww=="),
        (b"\xed\xa0\x80", "7aCA"),
    ] {
        let event = event("T", &["t"], data);
        assert_eq!(
            written(|out| put_event(out, 1, event.as_ref())),
            format!(r#"{{"position":1,"type":"T","tags":["t"],"data_base64":"{text}"}}"#)
        );
    }
}

#[test]
fn what_a_string_cannot_hold_is_escaped_wherever_it_stands() {
    for code in (0..=0x300).chain([0x2028, 0x2029, 0xfeff, 0x1f600]) {
        let Some(character) = char::from_u32(code) else {
            continue;
        };
        for before in 0..20 {
            let text = format!("{}{character}{character}ä", "x".repeat(before));
            let json = written(|out| put_string(out, &text));
            assert_eq!(
                json,
                serde_json::to_string(&text).unwrap(),
                "{code:x} after {before}"
            );
        }
    }
}

#[test]
fn an_acknowledgement_has_the_first_and_the_last() {
    assert_eq!(
        written(|out| put_append_ok(out, 8, u64::MAX)),
        r#"{"first":8,"last":18446744073709551615}"#
    );
}

#[test]
fn statistics_have_the_wire_protocol_s_names() {
    let stats = StatsFields {
        event_count: 1,
        segment_count: 2,
        disk_bytes: 3,
        uptime_seconds: 4,
        active_connections: 5,
        active_subscriptions: 6,
        version: "0.1.0",
        connections_refused: 8,
        max_connections: 9,
        connections_reaped: u64::MAX,
    };
    assert_eq!(
        written(|out| put_stats(out, &stats)),
        "{\"event_count\":1,\"segment_count\":2,\"disk_bytes\":3,\"uptime_seconds\":4,\"active_connections\":5,\
         \"active_subscriptions\":6,\"version\":\"0.1.0\",\"connections_refused\":8,\"max_connections\":9,\
         \"connections_reaped\":18446744073709551615}"
    );
}
