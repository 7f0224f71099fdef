//! Laws: random operations against a simple model.

mod common;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use pumice_event_loop::sim::{Faults, Flow, World};
use pumice_event_loop::{EventLoop, Mailbox, Ready, Wake};

use common::Echo;

const BITS: [Ready; 5] = [
    Ready::READABLE,
    Ready::WRITABLE,
    Ready::READ_CLOSED,
    Ready::WRITE_CLOSED,
    Ready::ERROR,
];

/// The set of the bits with these numbers.
fn ready_of(model: &BTreeSet<usize>) -> Ready {
    let bits = model.iter().map(|bit| BITS[*bit]);
    bits.fold(Ready::EMPTY, Ready::union)
}

fn any_set() -> impl Strategy<Value = BTreeSet<usize>> {
    prop::collection::btree_set(0..BITS.len(), 0..=BITS.len())
}

proptest! {
    #[test]
    fn ready_is_a_set(left in any_set(), right in any_set()) {
        let (a, b) = (ready_of(&left), ready_of(&right));
        prop_assert_eq!(a | b, ready_of(&(&left | &right)));
        let mut rest = a;
        rest.remove(b);
        prop_assert_eq!(rest, ready_of(&(&left - &right)));
        let mut sum = a;
        sum.insert(b);
        prop_assert_eq!(sum, a.union(b));
        prop_assert_eq!(a.contains(b), left.is_superset(&right));
        prop_assert_eq!(a.intersects(b), !left.is_disjoint(&right));
        prop_assert_eq!(a.is_empty(), left.is_empty());
        let asked = [
            a.is_readable(),
            a.is_writable(),
            a.is_read_closed(),
            a.is_write_closed(),
            a.is_error(),
        ];
        for (bit, is_set) in asked.into_iter().enumerate() {
            prop_assert_eq!(is_set, left.contains(&bit));
        }
    }

    #[test]
    fn a_normalised_set_only_grows_and_only_once(model in any_set()) {
        let set = ready_of(&model);
        let closed = set.normalised();
        prop_assert!(closed.contains(set));
        prop_assert_eq!(closed.normalised(), closed);
        prop_assert!(!closed.is_read_closed() || closed.is_readable());
        prop_assert!(!closed.is_error() || closed.is_readable() && closed.is_writable());
        prop_assert!(!closed.is_write_closed() || closed.is_readable() && closed.is_writable());
        prop_assert!(!set.is_empty() || closed.is_empty());
    }
}

/// What can be done with a mailbox.
#[derive(Clone, Debug)]
enum Deed {
    Send(u8),
    SendAll(Vec<u8>),
    Drain { is_fresh: bool },
    Close,
}

fn any_deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        4 => any::<u8>().prop_map(Deed::Send),
        3 => prop::collection::vec(any::<u8>(), 0..5).prop_map(Deed::SendAll),
        3 => any::<bool>().prop_map(|is_fresh| Deed::Drain { is_fresh }),
        1 => Just(Deed::Close),
    ]
}

#[derive(Clone, Debug, Default)]
struct Count(Arc<AtomicUsize>);

impl Wake for Count {
    fn wake(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

proptest! {
    #[test]
    fn a_mailbox_is_a_queue_that_wakes_once_per_batch(
        deeds in prop::collection::vec(any_deed(), 0..60),
    ) {
        let count = Count::default();
        let mut mailbox = Some(Mailbox::new(count.clone()));
        let sender = mailbox.as_ref().map(Mailbox::sender).unwrap();
        let mut model = VecDeque::new();
        let mut wakes = 0;
        let mut out = Vec::new();
        let mut expected = Vec::new();
        for deed in deeds {
            let is_open = mailbox.is_some();
            match deed {
                Deed::Send(message) => {
                    wakes += usize::from(is_open && model.is_empty());
                    let sent = sender.send(message);
                    prop_assert_eq!(sent, if is_open { Ok(()) } else { Err(message) });
                    if is_open {
                        model.push_back(message);
                    }
                }
                Deed::SendAll(messages) => {
                    wakes += usize::from(is_open && model.is_empty() && !messages.is_empty());
                    let mut pack = messages.clone();
                    prop_assert_eq!(sender.send_all(&mut pack).is_ok(), is_open);
                    if is_open {
                        prop_assert!(pack.is_empty());
                        model.extend(messages);
                    } else {
                        prop_assert_eq!(pack, messages);
                    }
                }
                Deed::Drain { is_fresh } => {
                    if is_fresh {
                        out.clear();
                        expected.clear();
                    }
                    if let Some(mailbox) = &mut mailbox {
                        mailbox.drain(&mut out);
                        expected.extend(model.drain(..));
                    }
                    prop_assert_eq!(&out, &expected);
                }
                Deed::Close => {
                    if let Some(mailbox) = mailbox.take() {
                        mailbox.close(&mut out);
                        expected.extend(model.drain(..));
                        prop_assert_eq!(&out, &expected);
                    }
                }
            }
            prop_assert_eq!(sender.is_closed(), mailbox.is_none());
            prop_assert_eq!(count.0.load(Ordering::SeqCst), wakes);
        }
    }
}

fn any_faults() -> impl Strategy<Value = Faults> {
    let shares = prop::array::uniform9(0..=600u32);
    let sizes = (1..5_000usize, 1..5_000usize, 0..1_000u64);
    (shares, sizes).prop_map(|(shares, (piece, buffer, latency))| {
        let [
            cut,
            deny,
            meanwhile,
            delay,
            hold,
            spurious,
            stale,
            split,
            interrupt,
        ] = shares;
        Faults {
            cut,
            deny,
            meanwhile,
            delay,
            hold,
            spurious,
            stale,
            split,
            interrupt,
            abort: 0,
            piece_bytes_max: piece,
            buffer_bytes_max: buffer,
            latency_max: Duration::from_micros(latency),
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_is_cut_and_held_the_bytes_arrive_whole_and_in_order(
        seed: u64,
        faults in any_faults(),
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..3_000), 1..5),
        buf_bytes in 1..2_000usize,
    ) {
        let world = World::with_faults(seed, faults);
        let addr = "10.0.0.1:80".parse().unwrap();
        let mut event_loop = EventLoop::with_platform(world.platform()).unwrap();
        event_loop.listen(world.listener(addr)).unwrap();
        let mut server = Echo::new(event_loop, buf_bytes);
        let mut clients: Vec<_> = messages
            .iter()
            .map(|message| {
                let mut client = world.connect(addr).unwrap();
                client.send(message).unwrap();
                client.finish();
                (client, Vec::new())
            })
            .collect();
        let mut turns = 0;
        let mut open = clients.len();
        while open > 0 {
            turns += 1;
            prop_assert!(turns < 200_000, "a client waits for ever");
            server.turn(Some(server.event_loop.now() + Duration::from_secs(1)));
            open = 0;
            for (client, echo) in &mut clients {
                open += usize::from(client.receive(echo).unwrap() == Flow::Open);
            }
        }
        for ((_, echo), message) in clients.iter().zip(&messages) {
            prop_assert_eq!(echo, message);
        }
        drop(clients);
        while server.len() > 0 {
            server.turn(None);
        }
        world.settle();
        prop_assert_eq!(world.connections(), 0);
        prop_assert_eq!(world.descriptors(), 1);
    }
}
