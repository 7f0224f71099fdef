//! Requests: `decode_request` beside prost's decoder, on bytes of every degree of oddness.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use prost::encoding::encode_varint;

use super::harness::reference::{Comparable, Verdict, fast, slow};

type Bytes = BoxedStrategy<Vec<u8>>;

fn varint(value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    encode_varint(value, &mut out);
    out
}

fn field(number: u64, wire_type: u64, value: &[u8]) -> Vec<u8> {
    let mut out = varint(number << 3 | wire_type);
    out.extend_from_slice(value);
    out
}

fn len_field(number: u64, content: &[u8]) -> Vec<u8> {
    let mut value = varint(content.len() as u64);
    value.extend_from_slice(content);
    field(number, 2, &value)
}

fn uint(number: u64) -> Bytes {
    let value = prop_oneof![Just(0), Just(1), 0..300_u64, Just(u64::MAX), any::<u64>()];
    value
        .prop_map(move |value| field(number, 0, &varint(value)))
        .boxed()
}

/// A name: mostly good and from so few that duplicates are frequent, sometimes empty or not UTF-8.
fn name(number: u64) -> Bytes {
    let name = prop_oneof![
        20 => "[abcd]{1,2}".prop_map(String::into_bytes),
        4 => "\\PC{1,4}".prop_map(String::into_bytes),
        2 => Just(Vec::new()),
        1 => Just(vec![b'a', 0xff]),
    ];
    name.prop_map(move |name| len_field(number, &name)).boxed()
}

fn bytes(number: u64) -> Bytes {
    vec(any::<u8>(), 0..6)
        .prop_map(move |bytes| len_field(number, &bytes))
        .boxed()
}

/// A message field with these fields in it, each any number of times in any order.
fn message(number: u64, fields: impl Strategy<Value = Vec<u8>> + 'static) -> Bytes {
    vec(fields, 0..4)
        .prop_map(move |fields| len_field(number, &fields.concat()))
        .boxed()
}

/// What a message of a later version may hold: fields of unknown number and any type, nested groups.
fn unknown() -> Bytes {
    let number = 8..40_u64;
    let flat = prop_oneof![
        (number.clone(), any::<u64>()).prop_map(|(n, value)| field(n, 0, &varint(value))),
        number.clone().prop_map(|n| field(n, 1, &[1; 8])),
        number.clone().prop_map(|n| field(n, 5, &[0xff; 4])),
        number.clone().prop_map(|n| len_field(n, b"\xff\x01")),
    ];
    flat.prop_recursive(4, 8, 3, move |inner| {
        (number.clone(), vec(inner, 0..3))
            .prop_map(|(n, inner)| [field(n, 3, &inner.concat()), field(n, 4, &[])].concat())
    })
    .boxed()
}

/// What no encoder sends: wrong wire types, groups that don't match, too long varints, field 0, junk.
fn wrong() -> Bytes {
    prop_oneof![
        (1..8_u64, 0..8_u64).prop_map(|(number, wire_type)| field(number, wire_type, &[1, 1])),
        (1..40_u64).prop_map(|number| field(number, 4, &[])),
        (8..40_u64).prop_map(|number| [field(number, 3, &[]), field(number + 1, 4, &[])].concat()),
        (0..12_usize, 0..3_u8).prop_map(|(len, last)| {
            let mut value = vec![0xff; len];
            value.push(last);
            field(1, 0, &value)
        }),
        (0..5_u64).prop_map(|wire_type| field(0, wire_type, &[0])),
        (0..u64::MAX).prop_map(varint),
        (90..110_usize, 90..110_usize, any::<bool>()).prop_map(|(opened, closed, filled)| {
            let leaf = if filled {
                field(9, 0, &[1])
            } else {
                Vec::new()
            };
            let opening = field(9, 3, &[]).repeat(opened);
            [opening, leaf, field(9, 4, &[]).repeat(closed)].concat()
        }),
        vec(any::<u8>(), 0..6),
    ]
    .boxed()
}

/// Any of `fields`, now and then something unknown, seldom something wrong.
fn mixed(fields: Bytes) -> Bytes {
    prop_oneof![60 => fields, 4 => unknown(), 1 => wrong()].boxed()
}

fn item(number: u64) -> Bytes {
    let good = message(number, mixed(prop_oneof![name(1), name(2)].boxed()));
    // Several things wrong at once: the first one is to be told, types before tags.
    let empty = prop_oneof![
        Just(len_field(1, b"")),
        Just(len_field(2, b"")),
        name(1),
        name(2),
    ];
    prop_oneof![12 => good, 1 => message(number, empty)].boxed()
}

fn query(number: u64) -> Bytes {
    message(
        number,
        mixed(prop_oneof![1 => uint(1), 6 => item(2)].boxed()),
    )
}

fn event(number: u64) -> Bytes {
    // A type in front, so that most events are good; it may come again.
    let fields = mixed(prop_oneof![1 => name(1), 4 => name(2), 2 => bytes(3)].boxed());
    (name(1), vec(fields, 0..4))
        .prop_map(move |(first, rest)| len_field(number, &[first, rest.concat()].concat()))
        .boxed()
}

fn append() -> Bytes {
    let condition = prop_oneof![query(1), uint(2), query(3)].boxed();
    let condition = message(2, mixed(condition));
    message(2, mixed(prop_oneof![3 => event(1), 1 => condition].boxed()))
}

fn request() -> Bytes {
    let read = prop_oneof![2 => query(1), 1 => uint(2), 1 => uint(3), 1 => uint(4)].boxed();
    let subscribe = prop_oneof![2 => query(1), 1 => uint(2)].boxed();
    let hello = prop_oneof![uint(1), name(2)].boxed();
    // Runs of one kind, since only those are merged.
    let run = |kind: Bytes| vec(mixed(kind), 1..4).prop_map(|fields| fields.concat());
    let kinds = prop_oneof![
        4 => run(append()),
        2 => run(message(3, mixed(read))),
        1 => run(message(4, mixed(subscribe))),
        1 => run(message(5, mixed(uint(1)))),
        1 => run(message(6, mixed(unknown()))),
        1 => run(message(7, mixed(hello))),
    ]
    .boxed();
    vec(mixed(prop_oneof![1 => uint(1), 4 => kinds].boxed()), 1..4)
        .prop_map(|fields| fields.concat())
        .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_request_is_what_prost_makes_of_it(payload in request()) {
        prop_assert_eq!(fast(&payload), slow(&payload));
    }

    #[test]
    fn a_damaged_request_is_what_prost_makes_of_it(
        payload in request(),
        damage in vec((any::<Index>(), any::<u8>()), 1..3),
        end in any::<Index>(),
        cut in any::<bool>(),
    ) {
        let mut payload = payload;
        for (at, byte) in damage {
            if !payload.is_empty() {
                let at = at.index(payload.len());
                payload[at] = byte;
            }
        }
        if cut {
            payload.truncate(end.index(payload.len() + 1));
        }
        prop_assert_eq!(fast(&payload), slow(&payload));
    }

    #[test]
    fn two_requests_in_a_row_are_merged_as_prost_merges_them(
        first in request(),
        second in request(),
    ) {
        let payload = [first, second].concat();
        prop_assert_eq!(fast(&payload), slow(&payload));
    }
}

/// The laws above are worth nothing if the strategies hardly ever reach a verdict.
#[test]
fn the_strategies_reach_every_verdict() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let strategy = request();
    let mut counts = [0; 9];
    for _ in 0..1_000 {
        let payload = strategy.new_tree(&mut runner).expect("a request").current();
        let kind = match slow(&payload) {
            Verdict::Malformed => 0,
            Verdict::Invalid { .. } => 1,
            Verdict::Request { kind, .. } => match kind {
                Comparable::Append(..) => 2,
                Comparable::Read(..) => 3,
                Comparable::Subscribe(..) => 4,
                Comparable::Cancel(..) => 5,
                Comparable::Stats => 6,
                Comparable::Hello(..) => 7,
                Comparable::Unknown => 8,
            },
        };
        counts[kind] += 1;
    }
    assert!(counts.iter().all(|&count| count >= 20), "{counts:?}");
}
