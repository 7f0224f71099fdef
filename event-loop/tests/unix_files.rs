//! The files of Unix sockets: left behind, in use, and who may use them.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use pumice_event_loop::{Accept, Event, EventLoop, Mio, Peer, Stream, bind_unix};
use socket2::SockRef;

/// A path that is gone after the test.
struct Path(PathBuf);

impl Path {
    fn new(name: &str) -> Self {
        let name = format!("pumice-files-{}-{name}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn a_file_left_behind_is_replaced() {
    let path = Path::new("stale");
    drop(UnixListener::bind(&path.0).unwrap());
    assert!(path.0.exists(), "std leaves the file");
    let listener = bind_unix(&path.0, 0o600).unwrap();
    UnixStream::connect(&path.0).unwrap();
    assert!(SockRef::from(&listener).nonblocking().unwrap());
    let flags = rustix::io::fcntl_getfd(&listener).unwrap();
    assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
}

#[test]
fn a_file_in_use_is_left_alone() {
    let path = Path::new("live");
    let first = bind_unix(&path.0, 0o600).unwrap();
    let error = bind_unix(&path.0, 0o600).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    assert!(
        error.to_string().contains("-live: another process"),
        "{error}"
    );
    UnixStream::connect(&path.0).unwrap();
    drop(first);
}

#[test]
fn a_file_that_is_no_socket_is_left_alone() {
    let path = Path::new("data");
    fs::write(&path.0, "precious").unwrap();
    let error = bind_unix(&path.0, 0o600).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    assert_eq!(fs::read(&path.0).unwrap(), b"precious");
    // Nor is what a link points to replaced by way of the link.
    let link = Path::new("link");
    std::os::unix::fs::symlink(&path.0, &link.0).unwrap();
    let error = bind_unix(&link.0, 0o600).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
}

#[test]
fn the_file_has_the_permissions_asked_for() {
    for mode in [0o600, 0o660, 0o666] {
        let path = Path::new(&format!("mode-{mode:o}"));
        let _listener = bind_unix(&path.0, mode).unwrap();
        let permissions = fs::metadata(&path.0).unwrap().permissions();
        assert_eq!(permissions.mode() & 0o777, mode);
    }
}

#[test]
fn a_path_that_cannot_be_is_named() {
    let missing = std::env::temp_dir().join("pumice-no-such-folder/x.sock");
    let error = bind_unix(&missing, 0o600).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(
        error.to_string().contains("pumice-no-such-folder"),
        "{error}"
    );
    let long = std::env::temp_dir().join("x".repeat(200));
    assert!(bind_unix(&long, 0o600).is_err());
}

#[test]
fn a_unix_peer_is_told_from_a_tcp_one() {
    let path = Path::new("peer");
    let mut event_loop = EventLoop::new().unwrap();
    let listener = bind_unix(&path.0, 0o600).unwrap();
    event_loop
        .listen(Mio::unix_listener(listener).unwrap())
        .unwrap();
    let _client = UnixStream::connect(&path.0).unwrap();
    event_loop.poll(None).unwrap();
    let [Event::Listener { id }] = *event_loop.events() else {
        panic!("{:?}", event_loop.events());
    };
    let Accept::Stream(stream) = event_loop.accept(id).unwrap() else {
        panic!("somebody waits");
    };
    assert_eq!(stream.peer(), Peer::Unix);
    assert_eq!(stream.peer().to_string(), "unix");
    assert_eq!(stream.local_addr(), None);
    // What only TCP has is no error here.
    stream.set_nodelay(true).unwrap();
    stream.set_reset_on_drop().unwrap();
}
