//! The tail beside an engine: what it reads, and what it leaves out.

use std::thread;
use std::time::{Duration, Instant};

use tephra::{EventType, SegmentConfig, SegmentSet, Tags, WriteCoordinator, WriterConfig};

use super::*;

/// Far beyond what a busy machine needs.
const PATIENCE: Duration = Duration::from_secs(60);

struct Outlet(flume::Sender<Arc<Batch>>);

impl Deliver for Outlet {
    fn deliver(&self, batch: Arc<Batch>) {
        self.0.send(batch).expect("the test takes all batches");
    }
}

#[test]
fn what_was_committed_while_nobody_subscribed_is_not_gone_through() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let set = SegmentSet::open(dir.path(), SegmentConfig::new(16 * 1024 * 1024)).expect("a log");
    let (coordinator, handle) =
        WriteCoordinator::start(set, WriterConfig::default()).expect("a writer");
    let kind = EventType::new("A").expect("a type");
    let append = || {
        let event = Event::new(&kind, &Tags::empty(), b"").expect("an event");
        handle
            .append(vec![event], None)
            .expect("it is appended")
            .last
    };
    let (interest, feed) = (Arc::<Interest>::default(), Arc::<Feed>::default());
    let (outlet, batches) = flume::unbounded();
    let workers: Vec<(Box<dyn Deliver>, _)> = vec![(Box::new(Outlet(outlet)), Arc::clone(&feed))];
    let tail = Tail::new(handle.reader(), Arc::clone(&interest), workers);
    let tail = thread::spawn(move || tail.run());
    let next = || {
        let batch = batches.recv_timeout(PATIENCE).expect("a batch");
        feed.taken();
        batch
    };
    interest.add();
    assert!(next().events.is_empty());
    let started = Instant::now();
    // Whether the tail sees in time that nobody subscribes is chance, and nothing depends on it.
    let mut has_rested = false;
    while !has_rested {
        assert!(started.elapsed() < PATIENCE, "it went on where it was");
        interest.remove();
        for _ in 0..3 {
            append();
        }
        interest.add();
        let tip = append();
        let mut last = Position::ZERO;
        while last < tip {
            let batch = next();
            // Batches touch one another, but for the one that tells where the tail starts anew.
            has_rested |= batch.events.is_empty();
            last = batch.last;
        }
    }
    interest.stop();
    drop(coordinator.shutdown());
    tail.join().expect("the tail doesn't panic");
}
