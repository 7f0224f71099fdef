//! The same messages by tephra-proto's setters and getters, field by field, so that a wrong number or
//! type on either side can't hide as an unknown field.

use protobuf::ProtoStr;
use pumice_frame_proto::tephra::proto::{self, request, response};
use tephra_proto::tephra as pb;

fn text(text: &ProtoStr) -> String {
    text.to_str().expect("UTF-8").to_owned()
}

fn build_event(event: &proto::Event) -> pb::Event {
    let mut out = pb::Event::new();
    out.set_type(&event.r#type);
    for tag in &event.tags {
        out.tags_mut().push(tag);
    }
    out.set_payload(&event.payload[..]);
    out
}

fn read_event(event: pb::EventView<'_>) -> proto::Event {
    proto::Event {
        r#type: text(event.r#type()),
        tags: event.tags().iter().map(text).collect(),
        payload: event.payload().to_vec(),
    }
}

fn build_query(query: &proto::Query) -> pb::Query {
    let mut out = pb::Query::new();
    out.set_all(query.all);
    for item in &query.items {
        let mut built = pb::QueryItem::new();
        for name in &item.types {
            built.types_mut().push(name);
        }
        for tag in &item.tags {
            built.tags_mut().push(tag);
        }
        out.items_mut().push(built);
    }
    out
}

fn read_query(query: pb::QueryView<'_>) -> proto::Query {
    let items = query.items().iter().map(|item| proto::QueryItem {
        types: item.types().iter().map(text).collect(),
        tags: item.tags().iter().map(text).collect(),
    });
    proto::Query {
        all: query.all(),
        items: items.collect(),
    }
}

fn build_condition(condition: &proto::AppendCondition) -> pb::AppendCondition {
    let mut out = pb::AppendCondition::new();
    if let Some(query) = &condition.fail_if_events_match {
        out.set_fail_if_events_match(build_query(query));
    }
    out.set_after(condition.after);
    if let Some(query) = &condition.fail_if_exists {
        out.set_fail_if_exists(build_query(query));
    }
    out
}

fn read_condition(condition: pb::AppendConditionView<'_>) -> proto::AppendCondition {
    proto::AppendCondition {
        fail_if_events_match: condition.fail_if_events_match_opt().map(read_query),
        after: condition.after(),
        fail_if_exists: condition.fail_if_exists_opt().map(read_query),
    }
}

pub(crate) fn build_request(request: &proto::Request) -> pb::Request {
    let mut out = pb::Request::new();
    out.set_request_id(request.request_id);
    match &request.kind {
        None => {}
        Some(request::Kind::Append(append)) => {
            let mut built = pb::AppendRequest::new();
            for event in &append.events {
                built.events_mut().push(build_event(event));
            }
            if let Some(condition) = &append.condition {
                built.set_condition(build_condition(condition));
            }
            out.set_append(built);
        }
        Some(request::Kind::Read(read)) => {
            let mut built = pb::ReadRequest::new();
            if let Some(query) = &read.query {
                built.set_query(build_query(query));
            }
            built.set_after(read.after);
            if let Some(limit) = read.limit {
                built.set_limit(limit);
            }
            built.set_reverse(read.reverse);
            out.set_read(built);
        }
        Some(request::Kind::Subscribe(subscribe)) => {
            let mut built = pb::SubscribeRequest::new();
            if let Some(query) = &subscribe.query {
                built.set_query(build_query(query));
            }
            built.set_after(subscribe.after);
            out.set_subscribe(built);
        }
        Some(request::Kind::Cancel(cancel)) => {
            let mut built = pb::CancelRequest::new();
            built.set_target(cancel.target);
            out.set_cancel(built);
        }
        Some(request::Kind::Stats(_)) => out.set_stats(pb::StatsRequest::new()),
        Some(request::Kind::Hello(hello)) => {
            let mut built = pb::Hello::new();
            built.set_protocol_version(hello.protocol_version);
            if let Some(token) = &hello.auth_token {
                built.set_auth_token(token);
            }
            out.set_hello(built);
        }
    }
    out
}

pub(crate) fn read_request(request: pb::RequestView<'_>) -> proto::Request {
    use pb::request::KindOneof;
    use request::Kind;

    let kind = match request.kind() {
        KindOneof::Append(append) => Some(Kind::Append(proto::AppendRequest {
            events: append.events().iter().map(read_event).collect(),
            condition: append.condition_opt().map(read_condition),
        })),
        KindOneof::Read(read) => Some(Kind::Read(proto::ReadRequest {
            query: read.query_opt().map(read_query),
            after: read.after(),
            limit: read.limit_opt(),
            reverse: read.reverse(),
        })),
        KindOneof::Subscribe(subscribe) => Some(Kind::Subscribe(proto::SubscribeRequest {
            query: subscribe.query_opt().map(read_query),
            after: subscribe.after(),
        })),
        KindOneof::Cancel(cancel) => Some(Kind::Cancel(proto::CancelRequest {
            target: cancel.target(),
        })),
        KindOneof::Stats(_) => Some(Kind::Stats(proto::StatsRequest {})),
        KindOneof::Hello(hello) => Some(Kind::Hello(proto::Hello {
            protocol_version: hello.protocol_version(),
            auth_token: hello.auth_token_opt().map(text),
        })),
        _ => None,
    };
    proto::Request {
        request_id: request.request_id(),
        kind,
    }
}

pub(crate) fn build_response(response: &proto::Response) -> pb::Response {
    let mut out = pb::Response::new();
    out.set_request_id(response.request_id);
    match &response.kind {
        None => {}
        Some(response::Kind::Append(append)) => {
            let mut built = pb::AppendResponse::new();
            built.set_first(append.first);
            built.set_last(append.last);
            out.set_append(built);
        }
        Some(response::Kind::ReadEvents(events)) => {
            let mut built = pb::ReadEvents::new();
            for sequenced in &events.events {
                let mut element = pb::SequencedEvent::new();
                element.set_position(sequenced.position);
                if let Some(event) = &sequenced.event {
                    element.set_event(build_event(event));
                }
                built.events_mut().push(element);
            }
            out.set_read_events(built);
        }
        Some(response::Kind::ReadEnd(end)) => {
            let mut built = pb::ReadEnd::new();
            built.set_watermark(end.watermark);
            out.set_read_end(built);
        }
        Some(response::Kind::Error(error)) => {
            let mut built = pb::ErrorResponse::new();
            built.set_code(error.code.into());
            built.set_message(&error.message);
            if let Some(position) = error.conflict_position {
                built.set_conflict_position(position);
            }
            built.set_retryable(error.retryable);
            out.set_error(built);
        }
        Some(response::Kind::CaughtUp(caught_up)) => {
            let mut built = pb::SubscribeCaughtUp::new();
            built.set_watermark(caught_up.watermark);
            out.set_caught_up(built);
        }
        Some(response::Kind::Stats(stats)) => out.set_stats(build_stats(stats)),
        Some(response::Kind::HelloAck(ack)) => {
            let mut built = pb::HelloAck::new();
            built.set_protocol_version(ack.protocol_version);
            built.set_server_version(&ack.server_version);
            out.set_hello_ack(built);
        }
    }
    out
}

fn build_stats(stats: &proto::StatsResponse) -> pb::StatsResponse {
    let mut out = pb::StatsResponse::new();
    out.set_event_count(stats.event_count);
    out.set_segment_count(stats.segment_count);
    out.set_disk_bytes(stats.disk_bytes);
    out.set_uptime_seconds(stats.uptime_seconds);
    out.set_active_connections(stats.active_connections);
    out.set_active_subscriptions(stats.active_subscriptions);
    out.set_version(&stats.version);
    out.set_connections_refused(stats.connections_refused);
    out.set_max_connections(stats.max_connections);
    out.set_connections_reaped(stats.connections_reaped);
    out
}

pub(crate) fn read_response(response: pb::ResponseView<'_>) -> proto::Response {
    use pb::response::KindOneof;
    use response::Kind;

    let kind = match response.kind() {
        KindOneof::Append(append) => Some(Kind::Append(proto::AppendResponse {
            first: append.first(),
            last: append.last(),
        })),
        KindOneof::ReadEvents(events) => {
            let events = events
                .events()
                .iter()
                .map(|sequenced| proto::SequencedEvent {
                    position: sequenced.position(),
                    event: sequenced.event_opt().map(read_event),
                });
            let events = events.collect();
            Some(Kind::ReadEvents(proto::ReadEvents { events }))
        }
        KindOneof::ReadEnd(end) => Some(Kind::ReadEnd(proto::ReadEnd {
            watermark: end.watermark(),
        })),
        KindOneof::Error(error) => Some(Kind::Error(proto::ErrorResponse {
            code: error.code().into(),
            message: text(error.message()),
            conflict_position: error.conflict_position_opt(),
            retryable: error.retryable(),
        })),
        KindOneof::CaughtUp(caught_up) => Some(Kind::CaughtUp(proto::SubscribeCaughtUp {
            watermark: caught_up.watermark(),
        })),
        KindOneof::Stats(stats) => Some(Kind::Stats(proto::StatsResponse {
            event_count: stats.event_count(),
            segment_count: stats.segment_count(),
            disk_bytes: stats.disk_bytes(),
            uptime_seconds: stats.uptime_seconds(),
            active_connections: stats.active_connections(),
            active_subscriptions: stats.active_subscriptions(),
            version: text(stats.version()),
            connections_refused: stats.connections_refused(),
            max_connections: stats.max_connections(),
            connections_reaped: stats.connections_reaped(),
        })),
        KindOneof::HelloAck(ack) => Some(Kind::HelloAck(proto::HelloAck {
            protocol_version: ack.protocol_version(),
            server_version: text(ack.server_version()),
        })),
        _ => None,
    };
    proto::Response {
        request_id: response.request_id(),
        kind,
    }
}
