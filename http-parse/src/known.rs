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
    /// Whether the parser itself needs the field's value.
    pub(crate) fn is_read_by_parser(self) -> bool {
        matches!(
            self,
            Self::Connection
                | Self::ContentLength
                | Self::Expect
                | Self::Host
                | Self::TransferEncoding
                | Self::Upgrade
        )
    }

    /// The known name that `name`, a token, spells in any case.
    pub(crate) fn of(name: &[u8]) -> Option<Self> {
        let known = PLACES[place(name)?]?;
        bytes::is_name(name, known.name().as_bytes()).then_some(known)
    }
}

/// Where in `PLACES` a name is; the same for both cases of its letters.
const fn place(name: &[u8]) -> Option<usize> {
    let ([first, ..], [.., last]) = (name, name) else {
        return None;
    };
    // The factors were found by trying: with them no two known names share a place.
    let sum = name.len() * 3 + (*first as usize & 31) * 23 + (*last as usize & 31);
    Some(sum % PLACES_COUNT)
}

/// The least power of two for which there were such factors.
const PLACES_COUNT: usize = 128;

/// The one known name that a name can be.
static PLACES: [Option<Known>; PLACES_COUNT] = {
    let mut places = [None; PLACES_COUNT];
    let mut at = 0;
    while at < Known::ALL.len() {
        let known = Known::ALL[at];
        if let Some(place) = place(known.name().as_bytes()) {
            assert!(places[place].is_none(), "two known names share a place");
            places[place] = Some(known);
        }
        at += 1;
    }
    places
};

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
