//! Random requests over both protocols against a store in memory: whatever is done in whatever order, each answer and
//! each event of each subscription is as the model says.

#![cfg(feature = "store")]

mod support;
mod wire_support;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use proptest::test_runner::Config as Cases;
use pumice::{Config, StoreConfig};
use pumice_frame_proto::tephra::proto::{
    AppendCondition, ErrorCode, ErrorResponse, Event, Query, QueryItem,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use support::{EventStream, TestServer, config};
use wire_support::{Answer, Client, Model, Refusal, append_if, cancel, event, read_of, subscribe};

/// Connections of each protocol.
const CONNECTIONS: usize = 2;
const TYPES: [&str; 3] = ["A", "B", "C"];
const TAGS: [&str; 4] = ["a:1", "a:2", "b:1", "b:2"];

/// Where a read, a subscription or a condition starts, as seen from the tip.
#[derive(Clone, Copy, Debug)]
enum Place {
    Start,
    Back(u64),
    Beyond(u64),
    End,
}

impl Place {
    fn at(self, tip: u64) -> u64 {
        match self {
            Self::Start => 0,
            Self::Back(back) => tip.saturating_sub(back),
            Self::Beyond(further) => tip + further,
            Self::End => u64::MAX,
        }
    }
}

#[derive(Clone, Debug)]
struct Condition {
    fail_if_events_match: Option<Query>,
    after: Place,
    fail_if_exists: Option<Query>,
}

/// One thing that a client does. Connections and subscriptions are named by numbers that wrap around.
#[derive(Clone, Debug)]
enum Op {
    Append {
        by: usize,
        events: Vec<Event>,
        condition: Option<Condition>,
    },
    Read {
        by: usize,
        query: Query,
        after: Place,
        limit: Option<u64>,
        reverse: bool,
    },
    Subscribe {
        by: usize,
        query: Query,
        after: Place,
    },
    Cancel {
        which: usize,
    },
    /// Every subscription must have come as far as the store.
    Check,
    Restart,
}

fn query() -> impl Strategy<Value = Query> {
    let names = |all: &'static [&'static str], most| {
        prop::sample::subsequence(all.to_vec(), 0..=most)
            .prop_map(|names| names.into_iter().map(str::to_owned).collect::<Vec<_>>())
    };
    let item =
        (names(&TYPES, 2), names(&TAGS, 2)).prop_map(|(types, tags)| QueryItem { types, tags });
    prop_oneof![
        2 => Just(wire_support::all()),
        5 => prop::collection::vec(item, 0..3).prop_map(|items| Query { all: false, items }),
    ]
}

fn place() -> impl Strategy<Value = Place> {
    prop_oneof![
        3 => Just(Place::Start),
        4 => (0..12_u64).prop_map(Place::Back),
        1 => (1..4_u64).prop_map(Place::Beyond),
        1 => Just(Place::End),
    ]
}

fn stored() -> impl Strategy<Value = Event> {
    let payload = prop_oneof![
        Just(Vec::new()),
        Just(b"{\"a\":\"\\u00e4\n\"}".to_vec()),
        prop::collection::vec(any::<u8>(), 0..120),
    ];
    let tags = prop::sample::subsequence(TAGS.to_vec(), 0..=3);
    (prop::sample::select(&TYPES[..]), tags, payload)
        .prop_map(|(kind, tags, payload)| event(kind, &tags, payload))
}

fn op() -> impl Strategy<Value = Op> {
    let condition = (
        prop::option::of(query()),
        place(),
        prop::option::weighted(0.2, query()),
    );
    let condition = condition.prop_map(|(fail_if_events_match, after, fail_if_exists)| Condition {
        fail_if_events_match,
        after,
        fail_if_exists,
    });
    let by = 0..2 * CONNECTIONS;
    let append = (
        by.clone(),
        prop::collection::vec(stored(), 0..4),
        prop::option::weighted(0.4, condition),
    );
    let read = (
        by.clone(),
        query(),
        place(),
        prop::option::of(0..8_u64),
        any::<bool>(),
    );
    prop_oneof![
        8 => append.prop_map(|(by, events, condition)| Op::Append { by, events, condition }),
        4 => read.prop_map(|(by, query, after, limit, reverse)| {
            Op::Read { by, query, after, limit, reverse }
        }),
        3 => (by, query(), place()).prop_map(|(by, query, after)| Op::Subscribe { by, query, after }),
        2 => any::<usize>().prop_map(|which| Op::Cancel { which }),
        1 => Just(Op::Check),
        1 => Just(Op::Restart),
    ]
}

/// A subscription over the wire, and what came for it.
#[derive(Debug)]
struct Subscription {
    query: Query,
    after: u64,
    given: usize,
    watermark: u64,
    is_live: bool,
}

/// A wire connection with its subscriptions.
struct Wire {
    client: Client,
    next_id: u64,
    subscriptions: BTreeMap<u64, Subscription>,
}

impl Wire {
    fn connect(addr: SocketAddr) -> Self {
        Self {
            client: Client::hello(addr),
            next_id: 1,
            subscriptions: BTreeMap::new(),
        }
    }

    fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// The next answer to request `id`; what comes for subscriptions meanwhile is held against the model.
    fn answer_to(&mut self, id: u64, model: &Model) -> Answer {
        loop {
            let (came_for, answer) = self.client.expect();
            if came_for == id {
                return answer;
            }
            self.take(came_for, answer, model);
        }
    }

    fn take(&mut self, id: u64, answer: Answer, model: &Model) {
        let subscription = self.subscriptions.get_mut(&id);
        let subscription = subscription.unwrap_or_else(|| panic!("{id} was not asked: {answer:?}"));
        assert!(subscription.is_live, "{id} was cancelled: {answer:?}");
        let expected = model.read(&subscription.query, subscription.after, None, false);
        match answer {
            Answer::Events(events) => {
                let came = subscription.given..subscription.given + events.len();
                assert_eq!(
                    expected.get(came.clone()),
                    Some(&events[..]),
                    "{subscription:?}"
                );
                subscription.given = came.end;
            }
            Answer::CaughtUp { watermark } => {
                let place = subscription
                    .given
                    .checked_sub(1)
                    .map_or(0, |last| expected[last].0);
                assert!(watermark >= place.max(subscription.watermark));
                assert!(watermark <= model.tip().max(subscription.after));
                subscription.watermark = watermark;
            }
            other => panic!("not for a subscription: {other:?}"),
        }
    }

    fn read(
        &mut self,
        request: (Query, u64, Option<u64>, bool),
        model: &Model,
    ) -> Vec<(u64, Event)> {
        let id = self.new_id();
        let (query, after, limit, reverse) = request;
        self.client.send(&read_of(id, query, after, limit, reverse));
        let mut read = Vec::new();
        loop {
            match self.answer_to(id, model) {
                Answer::Events(events) => read.extend(events),
                Answer::ReadEnd { watermark } => {
                    assert_eq!(watermark, model.tip());
                    return read;
                }
                other => panic!("not of a read: {other:?}"),
            }
        }
    }

    /// Takes all that streams were given so far: the end of a read waits behind it.
    fn drain(&mut self, model: &Model) {
        let nothing = (Query::default(), 0, Some(0), false);
        assert_eq!(self.read(nothing, model), []);
    }

    /// Waits until every subscription has all that the store has.
    fn check(&mut self, model: &Model) {
        let is_behind = |subscription: &Subscription| {
            let expected = model.read(&subscription.query, subscription.after, None, false);
            subscription.is_live && subscription.given < expected.len()
        };
        while self.subscriptions.values().any(is_behind) {
            let (id, answer) = self.client.expect();
            self.take(id, answer, model);
        }
        self.drain(model);
    }
}

/// A subscription over HTTP, and what came for it.
struct Sse {
    stream: EventStream,
    query: Query,
    after: u64,
    given: usize,
}

impl Sse {
    fn check(&mut self, model: &Model) {
        let expected = model.read(&self.query, self.after, None, false);
        while self.given < expected.len() {
            let (id, name, data) = self.stream.next_event();
            if name == "event" {
                let (position, event) = from_json(&serde_json::from_str(&data).expect("JSON"));
                assert_eq!(id, Some(position.to_string()));
                assert_eq!(Some(&(position, event)), expected.get(self.given));
                self.given += 1;
            }
        }
    }
}

fn from_json(value: &Value) -> (u64, Event) {
    let payload = match (&value["data"], &value["data_base64"]) {
        (Value::String(text), Value::Null) => text.clone().into_bytes(),
        (Value::Null, Value::String(text)) => STANDARD.decode(text).expect("base64"),
        _ => panic!("not an event: {value}"),
    };
    let event = Event {
        r#type: value["type"].as_str().expect("a type").to_owned(),
        tags: serde_json::from_value(value["tags"].clone()).expect("tags"),
        payload,
    };
    (value["position"].as_u64().expect("a position"), event)
}

fn event_to_json(event: &Event) -> Value {
    let mut value = json!({"type": event.r#type, "tags": event.tags});
    match str::from_utf8(&event.payload) {
        Ok(text) => value["data"] = text.into(),
        Err(_) => value["data_base64"] = STANDARD.encode(&event.payload).into(),
    }
    value
}

fn query_to_json(query: &Query) -> Value {
    if query.all {
        return json!({"all": true});
    }
    let item = |item: &QueryItem| json!({"types": item.types, "tags": item.tags});
    json!({"items": query.items.iter().map(item).collect::<Vec<_>>()})
}

/// A query as the value of a parameter.
fn query_param(query: &Query) -> String {
    let text = query_to_json(query).to_string();
    text.bytes().fold(String::new(), |mut out, byte| {
        write!(out, "%{byte:02x}").expect("a String has room");
        out
    })
}

fn refusal_of(error: &ErrorResponse) -> Refusal {
    assert!(!error.retryable, "there is only one append at a time");
    let position = error.conflict_position;
    match error.code() {
        ErrorCode::Empty => Refusal::Empty,
        ErrorCode::AfterBeyondTip => Refusal::AfterBeyondTip,
        ErrorCode::Conflict => Refusal::Conflict(position.expect("a durable conflict")),
        ErrorCode::AlreadyExists => Refusal::AlreadyExists(position.expect("a durable conflict")),
        _ => panic!("{error:?}"),
    }
}

/// The server, its clients, and what they know.
struct World {
    server: TestServer,
    dir: TempDir,
    wires: Vec<Wire>,
    https: Vec<support::Client>,
    streams: Vec<Sse>,
    model: Model,
}

/// Small bounds throughout, so that a few events fill frames, segments and outboxes.
fn serve(dir: &TempDir) -> TestServer {
    let store_config = StoreConfig {
        data_dir: dir.path().to_owned(),
        segment_bytes: 4_096,
        frame_bytes_max: 2_048,
        read_batch_events: 3,
        read_batch_bytes: 300,
        ..StoreConfig::default()
    };
    let config = Config {
        workers: 2,
        outbox_bytes_max: 4_096,
        ..config()
    };
    TestServer::store(config, store_config)
}

impl World {
    fn new() -> Self {
        let dir = TempDir::new().expect("a temporary directory");
        let server = serve(&dir);
        Self {
            wires: Self::connect(&server, Wire::connect),
            https: Self::connect(&server, support::Client::connect),
            streams: Vec::new(),
            model: Model::default(),
            server,
            dir,
        }
    }

    fn connect<T>(server: &TestServer, connect: impl Fn(SocketAddr) -> T) -> Vec<T> {
        (0..CONNECTIONS).map(|_| connect(server.addr())).collect()
    }

    fn run(&mut self, op: Op) {
        match op {
            Op::Append {
                by,
                events,
                condition,
            } => self.append(by, &events, condition),
            Op::Read {
                by,
                query,
                after,
                limit,
                reverse,
            } => {
                let after = after.at(self.model.tip());
                self.read(by, &query, after, limit, reverse);
            }
            Op::Subscribe { by, query, after } => {
                let after = after.at(self.model.tip());
                self.subscribe(by, query, after);
            }
            Op::Cancel { which } => self.cancel(which),
            Op::Check => self.check(),
            Op::Restart => self.restart(),
        }
    }

    fn append(&mut self, by: usize, events: &[Event], condition: Option<Condition>) {
        let tip = self.model.tip();
        let condition = condition.map(|condition| AppendCondition {
            fail_if_events_match: condition.fail_if_events_match,
            after: condition.after.at(tip),
            fail_if_exists: condition.fail_if_exists,
        });
        let expected = self.model.append(events, condition.as_ref());
        let outcome = if by < CONNECTIONS {
            let wire = &mut self.wires[by];
            let id = wire.new_id();
            wire.client.send(&append_if(id, events.to_vec(), condition));
            match wire.answer_to(id, &self.model) {
                Answer::Appended { first, last } => Ok((first, last)),
                Answer::Error(error) => Err(refusal_of(&error)),
                other => panic!("not of an append: {other:?}"),
            }
        } else {
            append_over_http(
                &mut self.https[by - CONNECTIONS],
                events,
                condition.as_ref(),
            )
        };
        assert_eq!(outcome, expected);
    }

    fn read(&mut self, by: usize, query: &Query, after: u64, limit: Option<u64>, reverse: bool) {
        let expected = self.model.read(query, after, limit, reverse);
        if by < CONNECTIONS {
            let request = (query.clone(), after, limit, reverse);
            assert_eq!(self.wires[by].read(request, &self.model), expected);
            return;
        }
        let limit = limit.map_or_else(String::new, |limit| format!("&limit={limit}"));
        let query = query_param(query);
        let path = format!("/v1/events?query={query}&after={after}&reverse={reverse}{limit}");
        let answer = self.https[by - CONNECTIONS].get(&path);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let page = answer.json();
        let events = page["events"].as_array().expect("events");
        assert_eq!(events.iter().map(from_json).collect::<Vec<_>>(), expected);
        assert_eq!(page["watermark"], self.model.tip());
    }

    fn subscribe(&mut self, by: usize, query: Query, after: u64) {
        if by < CONNECTIONS {
            let wire = &mut self.wires[by];
            let id = wire.new_id();
            wire.client.send(&subscribe(id, query.clone(), after));
            let subscription = Subscription {
                query,
                after,
                given: 0,
                watermark: 0,
                is_live: true,
            };
            wire.subscriptions.insert(id, subscription);
        } else {
            // A position beyond the tip is an error over HTTP.
            let after = after.min(self.model.tip());
            let path = format!("/v1/subscribe?query={}&after={after}", query_param(&query));
            let client = support::Client::connect(self.server.addr());
            self.streams.push(Sse {
                stream: EventStream::open(client, &path, ""),
                query,
                after,
                given: 0,
            });
        }
    }

    fn cancel(&mut self, which: usize) {
        let of_wires = self.wires.iter().enumerate();
        let targets = of_wires.flat_map(|(index, wire)| {
            let ids = wire.subscriptions.keys();
            ids.map(move |&id| (index, id)).collect::<Vec<_>>()
        });
        let targets: Vec<(usize, u64)> = targets.collect();
        let choices = targets.len() + self.streams.len();
        if choices == 0 {
            return;
        }
        let which = which % choices;
        let Some(&(index, id)) = targets.get(which) else {
            self.streams.swap_remove(which - targets.len());
            return;
        };
        let wire = &mut self.wires[index];
        wire.client.send(&cancel(id));
        wire.drain(&self.model);
        if let Some(subscription) = wire.subscriptions.get_mut(&id) {
            subscription.is_live = false;
        }
    }

    fn check(&mut self) {
        for wire in &mut self.wires {
            wire.check(&self.model);
        }
        for stream in &mut self.streams {
            stream.check(&self.model);
        }
    }

    fn restart(&mut self) {
        self.streams.clear();
        self.wires.clear();
        self.https.clear();
        self.server.stop();
        self.server = serve(&self.dir);
        self.wires = Self::connect(&self.server, Wire::connect);
        self.https = Self::connect(&self.server, support::Client::connect);
    }
}

fn append_over_http(
    client: &mut support::Client,
    events: &[Event],
    condition: Option<&AppendCondition>,
) -> Result<(u64, u64), Refusal> {
    let mut body = json!({"events": events.iter().map(event_to_json).collect::<Vec<_>>()});
    if let Some(condition) = condition {
        // Over HTTP a condition says what it forbids: a query without items is nothing, as none is on the wire.
        let query = condition.fail_if_events_match.clone().unwrap_or_default();
        let mut value =
            json!({"after": condition.after, "failIfEventsMatch": query_to_json(&query)});
        if let Some(query) = &condition.fail_if_exists {
            value["failIfExists"] = query_to_json(query);
        }
        body["condition"] = value;
    }
    let answer = client.post("/v1/append", body.to_string());
    let value = answer.json();
    if answer.status == 200 {
        let number = |name: &str| value[name].as_u64().expect("a position");
        return Ok((number("first"), number("last")));
    }
    let error = &value["error"];
    let position = || error["position"].as_u64().expect("a position");
    Err(match error["code"].as_str() {
        Some("empty") => Refusal::Empty,
        Some("after_beyond_tip") => Refusal::AfterBeyondTip,
        Some("conflict") => Refusal::Conflict(position()),
        Some("already_exists") => Refusal::AlreadyExists(position()),
        _ => panic!("{}", answer.text()),
    })
}

proptest! {
    #![proptest_config(Cases {
        cases: 24,
        max_shrink_iters: 300,
        failure_persistence: None,
        ..Cases::default()
    })]

    /// Requests one after another, over whichever protocol and connection, as if there were nothing but a list.
    #[test]
    fn whatever_clients_do_the_store_answers_as_the_model(
        ops in prop::collection::vec(op(), 1..70)
    ) {
        let mut world = World::new();
        for op in ops {
            world.run(op);
        }
        world.check();
    }
}
