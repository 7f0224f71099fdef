//! Bare frames: requests made and answers read by tephra-proto, without a client between.

use std::io::{BufReader, BufWriter, Write};
use std::net::TcpStream;
use std::time::Duration;

use tephra_proto::tephra::{self as pb, response::KindOneof};
use tephra_proto::{
    DEFAULT_MAX_FRAME_LEN, PROTOCOL_VERSION, hello_request, read_frame, write_frame,
};

use crate::Server;

/// A connection of bare frames.
#[derive(Debug)]
pub struct Wire {
    /// What the server sends.
    pub reader: BufReader<TcpStream>,
    /// What goes to the server.
    pub writer: BufWriter<TcpStream>,
}

impl Wire {
    /// A connection on which nothing has been said yet.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn open(server: &Server) -> Self {
        let stream = TcpStream::connect(server.addr()).expect("a connection");
        stream.set_nodelay(true).expect("an option");
        // A server that never answers fails the test, instead of hanging it.
        let patience = Duration::from_secs(20);
        stream.set_read_timeout(Some(patience)).expect("an option");
        Self {
            reader: BufReader::new(stream.try_clone().expect("a handle")),
            writer: BufWriter::new(stream),
        }
    }

    /// A connection after a good hello.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn connect(server: &Server) -> Self {
        let mut wire = Self::open(server);
        wire.send(&hello_request(1, None));
        let ack = wire.receive().expect("an answer");
        let KindOneof::HelloAck(ack) = ack.kind() else {
            panic!("{ack:?}")
        };
        assert_eq!(ack.protocol_version(), PROTOCOL_VERSION);
        wire
    }

    /// Puts a request behind those that wait to be sent.
    ///
    /// # Panics
    /// If the connection is broken.
    pub fn queue(&mut self, request: &pb::Request) {
        write_frame(&mut self.writer, request, DEFAULT_MAX_FRAME_LEN).expect("a frame");
    }

    /// Sends a request, and all that wait.
    ///
    /// # Panics
    /// If the connection is broken.
    pub fn send(&mut self, request: &pb::Request) {
        self.queue(request);
        self.writer.flush().expect("an open connection");
    }

    /// Sends these bytes, whatever they are.
    ///
    /// # Panics
    /// If the connection is broken.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.writer.write_all(bytes).expect("an open connection");
        self.writer.flush().expect("an open connection");
    }

    /// The next answer; `None` after the server has closed in good order.
    ///
    /// # Panics
    /// If the connection breaks, or nothing comes for 20 s.
    pub fn receive(&mut self) -> Option<pb::Response> {
        read_frame(&mut self.reader, DEFAULT_MAX_FRAME_LEN).expect("a frame or the end")
    }

    /// The next answer, which is an error: its request id, code and message.
    ///
    /// # Panics
    /// If it is none.
    pub fn receive_error(&mut self) -> (u64, pb::ErrorCode, String) {
        let response = self.receive().expect("an answer");
        let KindOneof::Error(error) = response.kind() else {
            panic!("{response:?}")
        };
        (
            response.request_id(),
            error.code(),
            error.message().to_string(),
        )
    }
}

/// A request of no kind yet.
#[must_use]
pub fn request(request_id: u64) -> pb::Request {
    let mut request = pb::Request::new();
    request.set_request_id(request_id);
    request
}

/// An append of one event.
#[must_use]
pub fn append(request_id: u64, event_type: &str, payload: &[u8]) -> pb::Request {
    let mut event = pb::Event::new();
    event.set_type(event_type);
    event.tags_mut().push("t");
    event.set_payload(payload);
    let mut append = pb::AppendRequest::new();
    append.events_mut().push(event);
    let mut request = request(request_id);
    request.set_append(append);
    request
}

/// The query for all events.
#[must_use]
pub fn all() -> pb::Query {
    let mut query = pb::Query::new();
    query.set_all(true);
    query
}

/// A read of all events after a position.
#[must_use]
pub fn read(request_id: u64, after: u64) -> pb::Request {
    let mut read = pb::ReadRequest::new();
    read.set_query(all());
    read.set_after(after);
    let mut request = request(request_id);
    request.set_read(read);
    request
}

/// A subscription to all events after a position.
#[must_use]
pub fn subscribe(request_id: u64, after: u64) -> pb::Request {
    let mut subscribe = pb::SubscribeRequest::new();
    subscribe.set_query(all());
    subscribe.set_after(after);
    let mut request = request(request_id);
    request.set_subscribe(subscribe);
    request
}

/// A cancel of that request, under the id 99.
#[must_use]
pub fn cancel(target: u64) -> pb::Request {
    let mut cancel = pb::CancelRequest::new();
    cancel.set_target(target);
    let mut request = request(99);
    request.set_cancel(cancel);
    request
}

/// A request for the server's state.
#[must_use]
pub fn stats(request_id: u64) -> pb::Request {
    let mut request = request(request_id);
    request.set_stats(pb::StatsRequest::new());
    request
}
