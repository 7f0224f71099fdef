//! Bytes that are no request: which of them the two sides refuse, and the one difference.

use protobuf::Parse;
use pumice_frame_proto::tephra::{RequestError, decode_request};
use tephra_proto::tephra as pb;

fn is_refused_here(bytes: &[u8]) -> bool {
    matches!(decode_request(bytes), Err(RequestError::Malformed { .. }))
}

#[test]
fn both_sides_refuse_the_same_broken_bytes() {
    let nested = |depth| [[0x4B].repeat(depth), [0x4C].repeat(depth)].concat();
    for (name, bytes) in [
        (
            "a varint of 11 bytes",
            [vec![0x08], [0x80].repeat(10), vec![1]].concat(),
        ),
        ("field 0", vec![0x00, 1]),
        ("a wire type that doesn't exist", vec![0x0E, 1]),
        ("an end without a group", vec![0x4C]),
        ("a group without an end", vec![0x4B]),
        ("groups 200 000 deep", nested(200_000)),
        ("a length beyond the end", vec![0x12, 5, 0]),
        (
            "a type that isn't UTF-8",
            vec![0x12, 5, 0x0A, 3, 0x0A, 1, 0xFF],
        ),
        (
            "a tag that isn't UTF-8",
            vec![0x12, 5, 0x0A, 3, 0x12, 1, 0xFF],
        ),
        ("a token that isn't UTF-8", vec![0x3A, 3, 0x12, 1, 0xFF]),
    ] {
        assert!(is_refused_here(&bytes), "here: {name}");
        assert!(pb::Request::parse(&bytes).is_err(), "there: {name}");
    }
}

#[test]
fn both_sides_take_the_same_unusual_bytes() {
    for (name, bytes) in [
        ("nothing", vec![]),
        ("an unknown field", vec![0x4A, 1, 0xFF]),
        ("an unknown group", vec![0x4B, 0x4C]),
        (
            "a varint longer than it need be",
            vec![0x08, 0x87, 0x80, 0x00],
        ),
        ("a kind that replaces another", vec![0x2A, 0, 0x32, 0]),
    ] {
        assert!(decode_request(&bytes).is_ok(), "here: {name}");
        assert!(pb::Request::parse(&bytes).is_ok(), "there: {name}");
    }
}

/// Google's library takes a known field of the wrong type for an unknown one. No encoder sends that, and
/// here, as in prost, it is an error: a request shall not be carried out without what it meant to say.
#[test]
fn a_wrong_wire_type_is_refused_here_only() {
    let limit_as_a_string = [0x1A, 2, 0x1A, 0];
    assert!(is_refused_here(&limit_as_a_string));
    assert!(pb::Request::parse(&limit_as_a_string).is_ok());
}
