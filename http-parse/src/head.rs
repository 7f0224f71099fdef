//! A parsed head as ranges, and the view that borrows the bytes behind them.

use crate::{
    Error, Framing, Known, Limits, Method, QueryPairs, Version, framing::Meaning, target::Parts,
};

/// One field line, as positions from the head's first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: u32,
    pub(crate) name_end: u32,
    pub(crate) value: u32,
    pub(crate) value_end: u32,
}

const KNOWN_COUNT: usize = Known::ALL.len();

/// A request head, kept as positions in the caller's buffer.
///
/// It owns one `Vec` of fields, which [`HeadParser::parse`](crate::HeadParser::parse) empties and
/// fills again: a head that is reused allocates no more once it has seen its longest request. What
/// it says about the request is whole only after the parser returned `Ok(Some(_))`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub(crate) fields: Vec<Field>,
    /// For each known name, 1 + the index of its first field, or 0.
    known: [u16; KNOWN_COUNT],
    pub(crate) method: Method,
    pub(crate) version: Version,
    pub(crate) method_range: (u32, u32),
    pub(crate) target: (u32, u32),
    pub(crate) parts: Parts,
    meaning: Meaning,
    pub(crate) len: u32,
}

impl Default for Head {
    fn default() -> Self {
        Self {
            fields: Vec::new(),
            known: [0; KNOWN_COUNT],
            method: Method::default(),
            version: Version::default(),
            method_range: (0, 0),
            target: (0, 0),
            parts: Parts::default(),
            meaning: Meaning::default(),
            len: 0,
        }
    }
}

impl Head {
    /// Forgets the request, but keeps the memory for the next one's fields.
    pub fn clear(&mut self) {
        self.fields.clear();
        self.known = [0; KNOWN_COUNT];
        self.method = Method::default();
        self.version = Version::default();
        self.method_range = (0, 0);
        self.target = (0, 0);
        self.parts = Parts::default();
        self.meaning = Meaning::default();
        self.len = 0;
    }

    /// How the body ends.
    #[must_use]
    pub fn body(&self) -> Framing {
        self.meaning.framing
    }

    /// Whether the client wants the connection kept after this request (RFC 9112 §9.3): always in
    /// HTTP/1.1 and on demand in HTTP/1.0, unless `Connection: close` says otherwise.
    #[must_use]
    pub fn keep_alive(&self) -> bool {
        !self.meaning.has_close && (self.version == Version::Http11 || self.meaning.has_keep_alive)
    }

    /// Whether the client waits for `100 Continue` before it sends the body (RFC 9110 §10.1.1).
    ///
    /// `false` for HTTP/1.0, where the expectation is to be ignored, and for a request without a
    /// body, which has nothing to wait for.
    #[must_use]
    pub fn expects_continue(&self) -> bool {
        self.meaning.expects_continue
            && self.version == Version::Http11
            && !matches!(self.meaning.framing, Framing::None | Framing::Length(0))
    }

    /// Whether the client offers another protocol (RFC 9110 §7.8): HTTP/1.1 with `Upgrade` and
    /// `Connection: upgrade`. Which one, `field(Known::Upgrade)` says.
    #[must_use]
    pub fn is_upgrade(&self) -> bool {
        self.meaning.has_upgrade
            && self.meaning.has_upgrade_option
            && self.version == Version::Http11
    }

    /// The version that the request is to be treated as.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The method, by name if it is a well-known one.
    #[must_use]
    pub fn method(&self) -> Method {
        self.method
    }

    /// The head's length in bytes; 0 unless it is complete.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there is no complete head in here.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Reads the head in `buf`, which starts with the same bytes that were parsed.
    ///
    /// # Panics
    /// If `buf` is shorter than the head.
    #[must_use]
    pub fn view<'a>(&'a self, buf: &'a [u8]) -> RequestHead<'a> {
        RequestHead {
            head: self,
            buf: &buf[..self.len()],
        }
    }

    /// Adds a field and takes in what it means.
    pub(crate) fn add(
        &mut self,
        field: Field,
        name: &[u8],
        value: &[u8],
        limits: &Limits,
    ) -> Result<(), Error> {
        if let Some(known) = Known::of(name) {
            let place = &mut self.known[known as usize];
            let is_repeated = *place != 0;
            if !is_repeated {
                *place = self.fields.len() as u16 + 1;
            }
            if known.is_read_by_parser() {
                self.meaning
                    .take(known, value, is_repeated, self.version, limits)?;
            }
        }
        self.fields.push(field);
        Ok(())
    }

    /// What only the end of the head can tell.
    pub(crate) fn finish(&mut self, len: usize) -> Result<(), Error> {
        if self.known[Known::Host as usize] == 0 && self.version == Version::Http11 {
            return Err(Error::MissingHost);
        }
        self.len = len as u32;
        Ok(())
    }
}

/// A complete head together with the bytes that it was parsed from.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    head: &'a Head,
    buf: &'a [u8],
}

impl<'a> RequestHead<'a> {
    fn bytes(&self, start: u32, end: u32) -> &'a [u8] {
        &self.buf[start as usize..end as usize]
    }

    /// Text that the parser has let through as ASCII. Were the bytes others than those parsed, it
    /// is empty instead of a panic.
    fn text(&self, start: u32, end: u32) -> &'a str {
        core::str::from_utf8(self.bytes(start, end)).unwrap_or_default()
    }

    /// The method, by name if it is a well-known one.
    #[must_use]
    pub fn method(&self) -> Method {
        self.head.method
    }

    /// The method as sent.
    #[must_use]
    pub fn method_str(&self) -> &'a str {
        let (start, end) = self.head.method_range;
        self.text(start, end)
    }

    /// The request target as sent.
    #[must_use]
    pub fn target(&self) -> &'a str {
        let (start, end) = self.head.target;
        self.text(start, end)
    }

    fn in_target(&self, (start, end): (u32, u32)) -> &'a str {
        let base = self.head.target.0;
        self.text(base + start, base + end)
    }

    /// The path as sent, not decoded. `/` if an absolute-form target has none, `*` for
    /// `OPTIONS *` and its absolute form, and empty for CONNECT.
    #[must_use]
    pub fn path(&self) -> &'a str {
        let (start, end) = self.head.parts.path;
        if start < end || self.head.method == Method::Connect {
            return self.in_target((start, end));
        }
        match (self.head.method, self.head.parts.query) {
            (Method::Options, None) => "*",
            _ => "/",
        }
    }

    /// What follows the first `?`, as sent and not decoded; `None` without a `?`.
    #[must_use]
    pub fn query(&self) -> Option<&'a str> {
        let start = self.head.parts.query?;
        let (target, end) = self.head.target;
        Some(self.text(target + start, end))
    }

    /// The query's `name=value` pairs, decoded as they are asked for; none without a query.
    #[must_use]
    pub fn query_pairs(&self) -> QueryPairs<'a> {
        QueryPairs::new(self.query().unwrap_or_default())
    }

    /// The host, and port if there is one, that the request is for: the target's own if it has
    /// one, which overrides Host (RFC 9112 §3.2.2), else Host's. `None` only in HTTP/1.0.
    #[must_use]
    pub fn authority(&self) -> Option<&'a str> {
        let (start, end) = self.head.parts.authority;
        if start < end {
            return Some(self.in_target((start, end)));
        }
        let host = self.field(Known::Host)?;
        core::str::from_utf8(host).ok()
    }

    /// The version that the request is to be treated as.
    #[must_use]
    pub fn version(&self) -> Version {
        self.head.version
    }

    /// How the body ends.
    #[must_use]
    pub fn body(&self) -> Framing {
        self.head.body()
    }

    /// The value of the first field of this name, found without a search.
    #[must_use]
    pub fn field(&self, known: Known) -> Option<&'a [u8]> {
        let place = usize::from(self.head.known[known as usize]);
        let field = self.head.fields.get(place.checked_sub(1)?)?;
        Some(self.bytes(field.value, field.value_end))
    }

    /// The value of the first field of this name, in any case: a search through all fields, unless
    /// the name is a [`Known`] one.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a [u8]> {
        match Known::of(name.as_bytes()) {
            Some(known) if name.eq_ignore_ascii_case(known.name()) => self.field(known),
            _ => self.get_all(name).next(),
        }
    }

    /// The values of all fields of this name, in any case, in the order sent.
    pub fn get_all<'n>(&self, name: &'n str) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        let this = *self;
        let fields = self.head.fields.iter().filter(move |field| {
            let field_name = this.bytes(field.name, field.name_end);
            field_name.eq_ignore_ascii_case(name.as_bytes())
        });
        fields.map(move |field| this.bytes(field.value, field.value_end))
    }

    /// All fields in the order sent: names as sent, values without the whitespace around them.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = (&'a str, &'a [u8])> + use<'a> {
        let this = *self;
        self.head.fields.iter().map(move |field| {
            (
                this.text(field.name, field.name_end),
                this.bytes(field.value, field.value_end),
            )
        })
    }
}
