//! Field names that a server asks for again and again, each with a place of its own in the head.

use crate::bytes;

macro_rules! known {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// A field name that the parser notes the place of, so that asking for it costs no search.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[repr(u8)]
        pub enum Known {
            $(#[doc = concat!("`", $name, "`.")] $variant,)*
        }

        impl Known {
            /// All of them, in the order of their declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name in lower case.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

known! {
    Accept = "accept",
    AcceptEncoding = "accept-encoding",
    AcceptLanguage = "accept-language",
    AccessControlRequestHeaders = "access-control-request-headers",
    AccessControlRequestMethod = "access-control-request-method",
    Authorization = "authorization",
    CacheControl = "cache-control",
    Connection = "connection",
    ContentEncoding = "content-encoding",
    ContentLength = "content-length",
    ContentType = "content-type",
    Cookie = "cookie",
    Date = "date",
    Expect = "expect",
    Forwarded = "forwarded",
    Host = "host",
    IfMatch = "if-match",
    IfModifiedSince = "if-modified-since",
    IfNoneMatch = "if-none-match",
    IfRange = "if-range",
    IfUnmodifiedSince = "if-unmodified-since",
    LastEventId = "last-event-id",
    Origin = "origin",
    Range = "range",
    Referer = "referer",
    SecWebSocketExtensions = "sec-websocket-extensions",
    SecWebSocketKey = "sec-websocket-key",
    SecWebSocketProtocol = "sec-websocket-protocol",
    SecWebSocketVersion = "sec-websocket-version",
    Te = "te",
    Trailer = "trailer",
    TransferEncoding = "transfer-encoding",
    Upgrade = "upgrade",
    UserAgent = "user-agent",
    XForwardedFor = "x-forwarded-for",
    XForwardedProto = "x-forwarded-proto",
}

impl Known {
    /// The known name that `name`, a token, spells in any case.
    pub(crate) fn of(name: &[u8]) -> Option<Self> {
        let last = name.last()? | 0x20;
        // Length and last letter leave one candidate, or two that the first letter tells apart.
        let candidate = match (name.len(), last) {
            (2, b'e') => Self::Te,
            (4, b't') => Self::Host,
            (4, b'e') => Self::Date,
            (5, b'e') => Self::Range,
            (6, b't') if name[0] | 0x20 == b'a' => Self::Accept,
            (6, b't') => Self::Expect,
            (6, b'e') => Self::Cookie,
            (6, b'n') => Self::Origin,
            (7, b'e') => Self::Upgrade,
            (7, b'r') if name[0] | 0x20 == b't' => Self::Trailer,
            (7, b'r') => Self::Referer,
            (8, b'h') => Self::IfMatch,
            (8, b'e') => Self::IfRange,
            (9, b'd') => Self::Forwarded,
            (10, b'n') => Self::Connection,
            (10, b't') => Self::UserAgent,
            (12, b'e') => Self::ContentType,
            (13, b'n') => Self::Authorization,
            (13, b'l') => Self::CacheControl,
            (13, b'd') => Self::LastEventId,
            (13, b'h') => Self::IfNoneMatch,
            (14, b'h') => Self::ContentLength,
            (15, b'g') => Self::AcceptEncoding,
            (15, b'e') => Self::AcceptLanguage,
            (15, b'r') => Self::XForwardedFor,
            (16, b'g') => Self::ContentEncoding,
            (17, b'g') => Self::TransferEncoding,
            (17, b'e') => Self::IfModifiedSince,
            (17, b'y') => Self::SecWebSocketKey,
            (17, b'o') => Self::XForwardedProto,
            (19, b'e') => Self::IfUnmodifiedSince,
            (21, b'n') => Self::SecWebSocketVersion,
            (22, b'l') => Self::SecWebSocketProtocol,
            (24, b's') => Self::SecWebSocketExtensions,
            (29, b'd') => Self::AccessControlRequestMethod,
            (30, b's') => Self::AccessControlRequestHeaders,
            _ => return None,
        };
        bytes::is_name(name, candidate.name().as_bytes()).then_some(candidate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_name_is_found_in_any_case() {
        for &known in Known::ALL {
            let name = known.name();
            assert_eq!(Known::of(name.as_bytes()), Some(known), "{name}");
            let upper = name.to_ascii_uppercase();
            assert_eq!(Known::of(upper.as_bytes()), Some(known), "{upper}");
        }
    }

    #[test]
    fn a_name_that_is_nearly_known_is_not() {
        for name in [
            "",
            "hos",
            "hosts",
            "best",
            "content_length",
            "kontent-length",
            "x",
        ] {
            assert_eq!(Known::of(name.as_bytes()), None, "{name}");
        }
    }
}
