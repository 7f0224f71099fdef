//! What holds for every stream of frames, however it is cut.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use pumice_frame_proto::{Decoder, FrameError, PREFIX_BYTES, decode, encode};

const FRAME_BYTES_MAX: u32 = 300;

#[derive(Clone, PartialEq, prost::Message)]
struct Note {
    #[prost(string, tag = "1")]
    text: String,
    #[prost(uint64, repeated, tag = "2")]
    numbers: Vec<u64>,
    #[prost(message, optional, boxed, tag = "3")]
    inner: Option<Box<Self>>,
}

fn note() -> impl Strategy<Value = Note> {
    let flat = (".{0,8}", vec(any::<u64>(), 0..4)).prop_map(|(text, numbers)| Note {
        text,
        numbers,
        inner: None,
    });
    flat.prop_recursive(3, 4, 1, |inner| {
        (".{0,8}", inner).prop_map(|(text, inner)| Note {
            text,
            numbers: Vec::new(),
            inner: Some(Box::new(inner)),
        })
    })
}

/// What a receiver makes of bytes that come in these pieces: the payloads, and how it ended.
fn receive<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Vec<u8>>, Result<(), FrameError>) {
    let decoder = Decoder::new(FRAME_BYTES_MAX);
    let mut buf = Vec::new();
    let mut payloads = Vec::new();
    for piece in pieces {
        buf.extend_from_slice(piece);
        loop {
            match decoder.next(&buf) {
                Ok(Some(range)) => {
                    payloads.push(buf[range.clone()].to_vec());
                    buf.drain(..range.end);
                }
                Ok(None) => break,
                Err(error) => return (payloads, Err(error)),
            }
        }
    }
    (payloads, decoder.end(&buf))
}

/// The bytes between neighbouring cuts.
fn pieces<'a>(bytes: &'a [u8], cuts: &[Index]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    cuts.windows(2)
        .map(|ends| &bytes[ends[0]..ends[1]])
        .collect()
}

proptest! {
    #[test]
    fn any_split_of_the_bytes_gives_the_same_frames(
        frames in vec(vec(any::<u8>(), 0..310), 0..5),
        tail in vec(any::<u8>(), 0..8),
        cuts in vec(any::<Index>(), 0..8),
    ) {
        let mut bytes = Vec::new();
        for frame in &frames {
            bytes.extend((frame.len() as u32).to_be_bytes());
            bytes.extend(frame);
        }
        bytes.extend(tail);

        let whole = receive([&bytes[..]].into_iter());
        prop_assert_eq!(receive(pieces(&bytes, &cuts).into_iter()), whole.clone());
        prop_assert_eq!(receive(bytes.chunks(1)), whole.clone());
        // All before the first one that is too long are there, whatever the tail adds.
        let good: Vec<_> = frames
            .into_iter()
            .take_while(|frame| frame.len() <= FRAME_BYTES_MAX as usize)
            .collect();
        prop_assert!(whole.0.starts_with(&good));
    }

    #[test]
    fn what_is_needed_is_neither_too_much_nor_too_little(
        payload in vec(any::<u8>(), 0..300),
        cut in any::<Index>(),
    ) {
        let mut bytes = (payload.len() as u32).to_be_bytes().to_vec();
        bytes.extend(&payload);
        let decoder = Decoder::new(FRAME_BYTES_MAX);
        let mut have = cut.index(bytes.len() + 1);
        let mut asked = 0;
        while decoder.next(&bytes[..have]).expect("in bounds").is_none() {
            let needed = decoder.needed(&bytes[..have]);
            prop_assert!(needed > 0);
            prop_assert!(needed <= bytes.len() - have, "it would wait for the next frame");
            have += needed;
            asked += 1;
        }
        prop_assert!(asked <= 2, "once for the prefix, once for the rest");
        prop_assert_eq!(decoder.needed(&bytes[..have]), 0);
    }

    #[test]
    fn what_was_encoded_is_decoded(notes in vec(note(), 0..5)) {
        let mut bytes = Vec::new();
        for note in &notes {
            encode(note, FRAME_BYTES_MAX, &mut bytes).expect("a short note");
        }
        let (payloads, end) = receive(bytes.chunks(7));
        prop_assert_eq!(end, Ok(()));
        let decoded: Result<Vec<Note>, _> = payloads.iter().map(|bytes| decode(bytes)).collect();
        prop_assert_eq!(decoded, Ok(notes));
    }

    #[test]
    fn a_frame_is_written_whole_or_not_at_all(note in note(), max in 0_u32..80) {
        let mut out = vec![7; 3];
        let payload = prost::Message::encode_to_vec(&note);
        let outcome = encode(&note, max, &mut out);
        let len = payload.len() as u32;
        if len <= max {
            prop_assert_eq!(outcome, Ok(()));
            let (prefix, written) = out[3..].split_at(PREFIX_BYTES);
            prop_assert_eq!(prefix, len.to_be_bytes());
            prop_assert_eq!(written, payload);
        } else {
            prop_assert_eq!(outcome, Err(FrameError::TooLarge { len, max }));
            prop_assert_eq!(out, [7; 3]);
        }
    }
}
