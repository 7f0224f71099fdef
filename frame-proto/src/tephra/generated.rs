//! The messages of package `tephra.v1`, made from its `.proto` by `cargo xtask codegen`: not to be edited.

/// One fact to be stored: what kind it is, what it is about, and its content.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Event {
    /// The kind of event: 1 to 65 535 bytes.
    #[prost(string, tag = "1")]
    pub r#type: ::prost::alloc::string::String,
    /// What the event is about: each 1 to 65 535 bytes, none twice, at most 65 535 of them.
    #[prost(string, repeated, tag = "2")]
    pub tags: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    /// The content, which the store never looks into.
    #[prost(bytes = "vec", tag = "3")]
    pub payload: ::prost::alloc::vec::Vec<u8>,
}
/// One way for an event to match a query.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct QueryItem {
    /// The event's type is one of these; with none listed, any type will do.
    #[prost(string, repeated, tag = "1")]
    pub types: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    /// The event bears every one of these tags.
    #[prost(string, repeated, tag = "2")]
    pub tags: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
}
/// Which events are meant: those that match at least one item, or simply all of them.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Query {
    /// Means every event; the items are then not looked at.
    #[prost(bool, tag = "1")]
    pub all: bool,
    /// The alternatives. With none, and `all` false, no event is meant.
    #[prost(message, repeated, tag = "2")]
    pub items: ::prost::alloc::vec::Vec<QueryItem>,
}
/// What must not be true for an append to be carried out.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AppendCondition {
    /// The append is refused (CONFLICT) if an event later than `after` matches this query.
    #[prost(message, optional, tag = "1")]
    pub fail_if_events_match: ::core::option::Option<Query>,
    /// The last position that the client took into account; 0 is the start of the log.
    #[prost(uint64, tag = "2")]
    pub after: u64,
    /// The append is refused (ALREADY_EXISTS) if any event at all matches this query.
    #[prost(message, optional, tag = "3")]
    pub fail_if_exists: ::core::option::Option<Query>,
}
/// Asks for events to be stored together, all or none.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AppendRequest {
    /// The events, in the order in which they get their positions.
    #[prost(message, repeated, tag = "1")]
    pub events: ::prost::alloc::vec::Vec<Event>,
    /// The condition; without one the append is unconditional.
    #[prost(message, optional, tag = "2")]
    pub condition: ::core::option::Option<AppendCondition>,
}
/// Asks for the events that are stored now.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ReadRequest {
    /// Which events; absent means none.
    #[prost(message, optional, tag = "1")]
    pub query: ::core::option::Option<Query>,
    /// Forwards: only later positions. Backwards: only earlier ones, so the largest u64 means from the tip.
    #[prost(uint64, tag = "2")]
    pub after: u64,
    /// At most so many events. Absent means all of them, 0 means none.
    #[prost(uint64, optional, tag = "3")]
    pub limit: ::core::option::Option<u64>,
    /// Newest first.
    #[prost(bool, tag = "4")]
    pub reverse: bool,
}
/// Asks for the events that are stored now and all that follow, until it is cancelled.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SubscribeRequest {
    /// Which events; absent means none.
    #[prost(message, optional, tag = "1")]
    pub query: ::core::option::Option<Query>,
    /// Only later positions.
    #[prost(uint64, tag = "2")]
    pub after: u64,
}
/// Ends a read or subscription of the same connection. It is not answered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct CancelRequest {
    /// The request_id of the request to end.
    #[prost(uint64, tag = "1")]
    pub target: u64,
}
/// Asks how the server is doing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct StatsRequest {}
/// Says that an append is stored durably.
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct AppendResponse {
    /// Position of its first event.
    #[prost(uint64, tag = "1")]
    pub first: u64,
    /// Position of its last event.
    #[prost(uint64, tag = "2")]
    pub last: u64,
}
/// An event and its place in the log.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct SequencedEvent {
    /// The place: the first event of a log has 1, and none is left out.
    #[prost(uint64, tag = "1")]
    pub position: u64,
    /// The event.
    #[prost(message, optional, tag = "2")]
    pub event: ::core::option::Option<Event>,
}
/// Some events of a read or subscription, in its order.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ReadEvents {
    /// The events.
    #[prost(message, repeated, tag = "1")]
    pub events: ::prost::alloc::vec::Vec<SequencedEvent>,
}
/// Ends a read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ReadEnd {
    /// The last position of the log as the read saw it.
    #[prost(uint64, tag = "1")]
    pub watermark: u64,
}
/// Says that a subscription has sent everything there is, and now waits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct SubscribeCaughtUp {
    /// The last position that was taken into account; never less than in the message before.
    #[prost(uint64, tag = "1")]
    pub watermark: u64,
}
/// How the server is doing.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct StatsResponse {
    /// Events stored, which is also the last position.
    #[prost(uint64, tag = "1")]
    pub event_count: u64,
    /// Log files in the data directory.
    #[prost(uint64, tag = "2")]
    pub segment_count: u64,
    /// Bytes used in the data directory, indexes included.
    #[prost(uint64, tag = "3")]
    pub disk_bytes: u64,
    /// Seconds since the server started to listen.
    #[prost(uint64, tag = "4")]
    pub uptime_seconds: u64,
    /// Connections open now, the asking one included.
    #[prost(uint64, tag = "5")]
    pub active_connections: u64,
    /// Subscriptions open now, on all connections.
    #[prost(uint64, tag = "6")]
    pub active_subscriptions: u64,
    /// The server's version.
    #[prost(string, tag = "7")]
    pub version: ::prost::alloc::string::String,
    /// Connections turned away since the start because there were too many.
    #[prost(uint64, tag = "8")]
    pub connections_refused: u64,
    /// Most connections at a time; 0 is no limit.
    #[prost(uint64, tag = "9")]
    pub max_connections: u64,
    /// Connections closed since the start because a timeout ran out.
    #[prost(uint64, tag = "10")]
    pub connections_reaped: u64,
}
/// Opens a connection: the first request on it, and only there.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct Hello {
    /// The version of this protocol that the client speaks.
    #[prost(uint32, tag = "1")]
    pub protocol_version: u32,
    /// The bearer token, where the server asks for one.
    #[prost(string, optional, tag = "2")]
    pub auth_token: ::core::option::Option<::prost::alloc::string::String>,
}
/// Answers a Hello that is good.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct HelloAck {
    /// The version of this protocol that the server speaks.
    #[prost(uint32, tag = "1")]
    pub protocol_version: u32,
    /// The server's version.
    #[prost(string, tag = "2")]
    pub server_version: ::prost::alloc::string::String,
}
/// Ends a request that failed.
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ErrorResponse {
    /// Why, for programs.
    #[prost(enumeration = "ErrorCode", tag = "1")]
    pub code: i32,
    /// Why, for people.
    #[prost(string, tag = "2")]
    pub message: ::prost::alloc::string::String,
    /// The position of the event in the way, where it has one.
    #[prost(uint64, optional, tag = "3")]
    pub conflict_position: ::core::option::Option<u64>,
    /// The same request may succeed when sent again.
    #[prost(bool, tag = "4")]
    pub retryable: bool,
}
/// What a client sends.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Request {
    /// Chosen by the client; every answer to this request bears it.
    #[prost(uint64, tag = "1")]
    pub request_id: u64,
    /// What is asked for.
    #[prost(oneof = "request::Kind", tags = "2, 3, 4, 5, 6, 7")]
    pub kind: ::core::option::Option<request::Kind>,
}
/// Nested message and enum types in `Request`.
pub mod request {
    /// What is asked for.
    #[derive(Clone, PartialEq, ::prost::Oneof)]
    pub enum Kind {
        /// Store events.
        #[prost(message, tag = "2")]
        Append(super::AppendRequest),
        /// Read events.
        #[prost(message, tag = "3")]
        Read(super::ReadRequest),
        /// Follow events.
        #[prost(message, tag = "4")]
        Subscribe(super::SubscribeRequest),
        /// End a read or subscription.
        #[prost(message, tag = "5")]
        Cancel(super::CancelRequest),
        /// Show the server's state.
        #[prost(message, tag = "6")]
        Stats(super::StatsRequest),
        /// Open the connection.
        #[prost(message, tag = "7")]
        Hello(super::Hello),
    }
}
/// What a server sends.
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Response {
    /// That of the request; 0 where the server could not read one.
    #[prost(uint64, tag = "1")]
    pub request_id: u64,
    /// The answer, or a part of it.
    #[prost(oneof = "response::Kind", tags = "2, 3, 4, 5, 6, 7, 8")]
    pub kind: ::core::option::Option<response::Kind>,
}
/// Nested message and enum types in `Response`.
pub mod response {
    /// The answer, or a part of it.
    #[derive(Clone, PartialEq, ::prost::Oneof)]
    pub enum Kind {
        /// The append is stored.
        #[prost(message, tag = "2")]
        Append(super::AppendResponse),
        /// Some events.
        #[prost(message, tag = "3")]
        ReadEvents(super::ReadEvents),
        /// The read is complete.
        #[prost(message, tag = "4")]
        ReadEnd(super::ReadEnd),
        /// The request failed.
        #[prost(message, tag = "5")]
        Error(super::ErrorResponse),
        /// The subscription waits for new events.
        #[prost(message, tag = "6")]
        CaughtUp(super::SubscribeCaughtUp),
        /// The server's state.
        #[prost(message, tag = "7")]
        Stats(super::StatsResponse),
        /// The connection is open.
        #[prost(message, tag = "8")]
        HelloAck(super::HelloAck),
    }
}
/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum ErrorCode {
    /// No code, or one that the receiver doesn't know.
    Unspecified = 0,
    /// An event that the append's condition excludes came after the position it names.
    Conflict = 1,
    /// The condition names a position that the log hasn't reached.
    AfterBeyondTip = 2,
    /// An append without events.
    Empty = 3,
    /// A frame, or an append, is larger than the server takes.
    TooLarge = 4,
    /// The request makes no sense.
    BadRequest = 5,
    /// The server's own fault.
    Internal = 6,
    /// The server stops.
    Shutdown = 7,
    /// The first request is no Hello, or its token is missing or wrong.
    Unauthenticated = 8,
    /// An event that `fail_if_exists` excludes is there.
    AlreadyExists = 9,
}
impl ErrorCode {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "ERROR_CODE_UNSPECIFIED",
            Self::Conflict => "ERROR_CODE_CONFLICT",
            Self::AfterBeyondTip => "ERROR_CODE_AFTER_BEYOND_TIP",
            Self::Empty => "ERROR_CODE_EMPTY",
            Self::TooLarge => "ERROR_CODE_TOO_LARGE",
            Self::BadRequest => "ERROR_CODE_BAD_REQUEST",
            Self::Internal => "ERROR_CODE_INTERNAL",
            Self::Shutdown => "ERROR_CODE_SHUTDOWN",
            Self::Unauthenticated => "ERROR_CODE_UNAUTHENTICATED",
            Self::AlreadyExists => "ERROR_CODE_ALREADY_EXISTS",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "ERROR_CODE_UNSPECIFIED" => Some(Self::Unspecified),
            "ERROR_CODE_CONFLICT" => Some(Self::Conflict),
            "ERROR_CODE_AFTER_BEYOND_TIP" => Some(Self::AfterBeyondTip),
            "ERROR_CODE_EMPTY" => Some(Self::Empty),
            "ERROR_CODE_TOO_LARGE" => Some(Self::TooLarge),
            "ERROR_CODE_BAD_REQUEST" => Some(Self::BadRequest),
            "ERROR_CODE_INTERNAL" => Some(Self::Internal),
            "ERROR_CODE_SHUTDOWN" => Some(Self::Shutdown),
            "ERROR_CODE_UNAUTHENTICATED" => Some(Self::Unauthenticated),
            "ERROR_CODE_ALREADY_EXISTS" => Some(Self::AlreadyExists),
            _ => None,
        }
    }
}
