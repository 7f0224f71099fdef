//! What the tests of the store's HTTP API share: appends, pages and errors as JSON.

use pumice::StoreConfig;
use serde_json::{Value, json};

use super::{Answer, Client, TestServer, config};

pub(crate) fn store() -> TestServer {
    TestServer::store(config(), StoreConfig::default())
}

#[track_caller]
pub(crate) fn append(client: &mut Client, body: &Value) -> Answer {
    client.post("/v1/append", body.to_string())
}

/// Appends events of these types, each with these tags, and returns the last position.
#[track_caller]
pub(crate) fn append_events(client: &mut Client, events: &[(&str, &[&str])]) -> u64 {
    let events: Vec<_> = events
        .iter()
        .map(|(event_type, tags)| json!({"type": event_type, "tags": tags}))
        .collect();
    let answer = append(client, &json!({"events": events}));
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["last"].as_u64().expect("a position")
}

/// The positions of a page's events.
pub(crate) fn positions(page: &Value) -> Vec<u64> {
    let events = page["events"].as_array().expect("an array of events");
    events
        .iter()
        .map(|event| event["position"].as_u64().expect("a position"))
        .collect()
}

/// An error's status, code, position and whether it may be retried.
#[track_caller]
pub(crate) fn error(answer: &Answer) -> (u16, String, Option<u64>, bool) {
    assert_eq!(answer.field("content-type"), Some("application/json"));
    let body = answer.json();
    let error = &body["error"];
    assert!(!error["message"].as_str().expect("a message").is_empty());
    (
        answer.status,
        error["code"].as_str().expect("a code").to_owned(),
        error["position"].as_u64(),
        error["retryable"].as_bool().expect("a flag"),
    )
}

/// A query value for a URL.
pub(crate) fn escaped(value: &Value) -> String {
    value
        .to_string()
        .bytes()
        .map(|byte| format!("%{byte:02x}"))
        .collect()
}
