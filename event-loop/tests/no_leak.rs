//! No descriptor and no thread is left over. Alone in its binary, since it counts those of the whole process.

mod common;

use pumice_event_loop::{Accept, EventLoop};

use common::{Client, Echo, MioRig, Rig, State, UnixRig};

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

/// Connections that end in each of the ways they can.
fn serve<R: Rig>(mut rig: R) {
    let mut event_loop = rig.event_loop();
    let id = event_loop.listen(rig.listener()).unwrap();
    let _mailbox = event_loop.mailbox::<u8>().unwrap();
    let mut server = Echo::new(event_loop, 64);
    for round in 0..300 {
        let mut client = rig.connect();
        client.send(b"hello");
        match round % 3 {
            0 => client.reset(),
            1 => drop(client),
            _ => {
                client.finish();
                while client.receive(&mut Vec::new()) == State::Open {
                    server.turn(Some(server.event_loop.now()));
                }
            }
        }
    }
    while server.accepted < 300 || server.len() > 0 {
        server.turn(None);
    }
    // One that is dropped without a word, one that is never accepted.
    let _first = rig.connect();
    let _second = rig.connect();
    loop {
        server.event_loop.poll(None).unwrap();
        if let Accept::Stream(stream) = server.event_loop.accept(id).unwrap() {
            drop(stream);
            break;
        }
    }
}

#[test]
fn three_hundred_connections_and_a_loop_leave_nothing_behind() {
    // Once, so that what the process opens for itself is open.
    drop(EventLoop::new().unwrap());
    serve(MioRig::new());
    let before = (descriptors(), threads());
    for _ in 0..3 {
        serve(MioRig::new());
        serve(UnixRig::new());
    }
    assert_eq!((descriptors(), threads()), before);
}
