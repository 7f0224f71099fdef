//! A reader of server-sent events, by the WHATWG's HTML standard §9.2.

use super::Client;

/// One thing that an event stream said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sse {
    Event {
        id: Option<String>,
        event: String,
        data: String,
    },
    /// A block of comments.
    Comment,
}

/// An event stream whose head has been read.
#[derive(Debug)]
pub(crate) struct EventStream {
    client: Client,
    text: Vec<u8>,
    has_ended: bool,
}

impl EventStream {
    /// Subscribes with `GET target` and further fields, each with its CRLF.
    #[track_caller]
    pub(crate) fn open(mut client: Client, target: &str, fields: &str) -> Self {
        client.send(format!(
            "GET {target} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"
        ));
        Self::begin(client)
    }

    /// Reads the head of the answer to a subscription that was asked for.
    #[track_caller]
    pub(crate) fn begin(mut client: Client) -> Self {
        let head = client.read_head().to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 200 ok\r\n"), "{head}");
        for line in [
            "content-type: text/event-stream",
            "transfer-encoding: chunked",
            "cache-control: no-store",
        ] {
            assert!(head.contains(line), "no {line:?} in {head}");
        }
        Self {
            client,
            text: Vec::new(),
            has_ended: false,
        }
    }

    /// The connection, to be closed or to write to.
    pub(crate) fn into_client(self) -> Client {
        self.client
    }

    pub(crate) fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    /// The next event or comment; `None` when the stream ended in order.
    #[track_caller]
    pub(crate) fn next(&mut self) -> Option<Sse> {
        loop {
            if let Some(end) = memchr::memmem::find(&self.text, b"\n\n") {
                let rest = self.text.split_off(end + 2);
                let block = std::mem::replace(&mut self.text, rest);
                return Some(parse(std::str::from_utf8(&block).expect("text")));
            }
            if self.has_ended {
                assert!(self.text.is_empty(), "an event was cut short");
                return None;
            }
            let chunk = self.client.read_chunk();
            self.has_ended = chunk.is_empty();
            self.text.extend_from_slice(&chunk);
        }
    }

    /// The next event, comments skipped: its id, its name and its data.
    #[track_caller]
    pub(crate) fn next_event(&mut self) -> (Option<String>, String, String) {
        loop {
            match self.next() {
                Some(Sse::Event { id, event, data }) => return (id, event, data),
                Some(Sse::Comment) => {}
                None => panic!("the stream ended"),
            }
        }
    }

    /// The position of the next stored event; anything but a comment or a caught-up before it fails.
    #[track_caller]
    pub(crate) fn next_position(&mut self) -> u64 {
        loop {
            let (id, event, data) = self.next_event();
            match event.as_str() {
                "event" => {
                    let id = id.expect("an event has its position as its id");
                    assert!(
                        data.starts_with(&format!("{{\"position\":{id},")),
                        "{id} and {data}"
                    );
                    return id.parse().expect("a position");
                }
                "caught-up" => assert_eq!(id, None, "only events move the client's place"),
                other => panic!("an unknown event {other:?}"),
            }
        }
    }

    /// Takes a `caught-up`, which must be the next event, and returns its watermark's data.
    #[track_caller]
    pub(crate) fn expect_caught_up(&mut self, watermark: u64) {
        let (id, event, data) = self.next_event();
        assert_eq!(
            (id, event.as_str(), data),
            (None, "caught-up", format!("{{\"watermark\":{watermark}}}"))
        );
    }
}

#[track_caller]
fn parse(block: &str) -> Sse {
    let (mut id, mut event, mut data) = (None, None, Vec::new());
    for line in block.lines().filter(|line| !line.is_empty()) {
        match line.split_once(':') {
            Some(("", _)) => {}
            Some(("id", value)) => id = Some(value.trim_start().to_owned()),
            Some(("event", value)) => event = Some(value.trim_start().to_owned()),
            Some(("data", value)) => data.push(value.strip_prefix(' ').unwrap_or(value)),
            _ => panic!("a line that is none of an event stream: {line:?}"),
        }
    }
    match event {
        Some(event) => Sse::Event {
            id,
            event,
            data: data.join("\n"),
        },
        None => {
            assert_eq!((id, data.len()), (None, 0), "an event without a name");
            Sse::Comment
        }
    }
}
