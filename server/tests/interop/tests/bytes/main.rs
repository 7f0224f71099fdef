//! Bytes made by the published tephra-proto are read here, and the reverse, for every kind of message.

mod arbitrary;
mod requests;
mod responses;
mod theirs;
mod verdicts;

use proptest::prelude::*;
use prost::Message;
use protobuf::{Parse, Serialize};
use pumice_frame_proto::tephra::proto;
use tephra_proto::tephra as pb;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn their_requests_are_read_here(request in arbitrary::request()) {
        let bytes = theirs::build_request(&request).serialize().expect("a message");
        prop_assert_eq!(proto::Request::decode(&bytes[..]), Ok(request));
    }

    #[test]
    fn requests_made_here_are_read_by_them(request in arbitrary::request()) {
        let bytes = request.encode_to_vec();
        let read = pb::Request::parse(&bytes).expect("a message");
        prop_assert_eq!(theirs::read_request(read.as_view()), request);
    }

    #[test]
    fn their_responses_are_read_here(response in arbitrary::response()) {
        let bytes = theirs::build_response(&response).serialize().expect("a message");
        prop_assert_eq!(proto::Response::decode(&bytes[..]), Ok(response));
    }

    #[test]
    fn responses_made_here_are_read_by_them(response in arbitrary::response()) {
        let bytes = response.encode_to_vec();
        let read = pb::Response::parse(&bytes).expect("a message");
        prop_assert_eq!(theirs::read_response(read.as_view()), response);
    }
}
