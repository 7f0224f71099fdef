//! Each error's status, code and facts.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use tephra::Position;
use tephra::event::DecodeError;
use tephra::log::set::LogError;

use super::*;

fn json(error: &ApiError) -> Value {
    let mut out = Vec::new();
    error.put_json(&mut out);
    let mut value: Value = serde_json::from_slice(&out).unwrap();
    let fields = value["error"].as_object_mut().unwrap();
    let message = fields.remove("message").unwrap();
    assert_eq!(message, json!(error.message));
    value["error"].take()
}

#[test]
fn a_refused_append_keeps_its_facts() {
    use ConflictClause::{Boundary, Existence};
    let durable = ConflictSite::Durable(Position::new(u64::MAX));
    let beyond = AppendError::AfterBeyondTip {
        after: Position::new(12),
        tip: Position::new(9),
    };
    for (error, status, expected) in [
        (
            AppendError::Conflict {
                clause: Boundary,
                at: durable,
            },
            409,
            json!({"code": "conflict", "position": u64::MAX, "retryable": false}),
        ),
        (
            AppendError::Conflict {
                clause: Boundary,
                at: ConflictSite::SameBatch,
            },
            409,
            json!({"code": "conflict", "retryable": true}),
        ),
        (
            AppendError::Conflict {
                clause: Existence,
                at: durable,
            },
            409,
            json!({"code": "already_exists", "position": u64::MAX, "retryable": false}),
        ),
        (
            AppendError::Conflict {
                clause: Existence,
                at: ConflictSite::SameBatch,
            },
            409,
            json!({"code": "already_exists", "retryable": true}),
        ),
        (
            beyond,
            409,
            json!({"code": "after_beyond_tip", "position": 9, "retryable": false}),
        ),
        (
            AppendError::Empty,
            400,
            json!({"code": "empty", "retryable": false}),
        ),
        (
            AppendError::TooLarge { size: 7 },
            413,
            json!({"code": "too_large", "retryable": false}),
        ),
    ] {
        let answer = ApiError::from_append(&error);
        assert_eq!(answer.status, status, "{error}");
        assert_eq!(json(&answer), expected, "{error}");
    }
}

#[test]
fn certainly_not_appended_and_unknown_are_never_mixed() {
    let not_appended = json!({"code": "not_appended", "retryable": true, "retry_after_secs": 1});
    let unknown = json!({"code": "unknown", "retryable": false});
    let failed = AppendError::Log(Arc::new(LogError::Io {
        path: PathBuf::from("segment"),
        source: io::Error::other("fsync"),
    }));
    for (error, status, expected) in [
        (AppendError::Shutdown, 503, &not_appended),
        (failed, 504, &unknown),
        (AppendError::Corrupt(DecodeError::Truncated), 504, &unknown),
    ] {
        let answer = ApiError::from_append(&error);
        assert_eq!(answer.status, status, "{error}");
        assert_eq!(json(&answer), *expected, "{error}");
    }
}

#[test]
fn each_other_error_has_its_status_code_and_facts() {
    let plain = |code: &str| json!({"code": code, "retryable": false});
    for (error, status, expected) in [
        (ApiError::bad_request("\"\n"), 400, plain("bad_request")),
        (ApiError::forbidden("no"), 403, plain("forbidden")),
        (ApiError::not_found(), 404, plain("not_found")),
        (
            ApiError::method_not_allowed(),
            405,
            plain("method_not_allowed"),
        ),
        (ApiError::not_acceptable(), 406, plain("not_acceptable")),
        (
            ApiError::payload_too_large(1 << 60),
            413,
            json!({"code": "too_large", "retryable": false, "limit": 1_u64 << 60}),
        ),
        (
            ApiError::unsupported_media_type(),
            415,
            plain("unsupported_media_type"),
        ),
    ] {
        assert_eq!(error.status, status);
        assert_eq!(json(&error), expected);
    }
}

#[test]
fn the_json_is_one_line_with_its_keys_in_order() {
    let mut out = b">".to_vec();
    let error = ApiError {
        position: Some(8),
        limit: Some(9),
        retry_after_secs: Some(10),
        ..ApiError::bad_request("a \"b\"\n")
    };
    error.put_json(&mut out);
    let expected = r#">{"error":{"code":"bad_request","message":"a \"b\"\n","position":8,"retryable":false,"limit":9,"retry_after_secs":10}}"#;
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}
