//! The head's state machine: where it stands, and how it goes on.
//!
//! ```text
//!          begin          method          target          version
//!  Begin ────────▶ Method ──────▶ Target ──────▶ Version ──────┐
//!    │ ▲ CR, then LF, once                                     │
//!    ▼ │                                                       ▼
//!  BeginLf           name            value      end_field  FieldStart
//!            Name ───────▶ Value ───────▶ ValueLf ───────────▶ │
//!              ▲                                               │
//!              └───────────────────────────────────────────────┤ field_line
//!                                                              │ CR
//!                                                              ▼
//!                                   complete ◀────────────── EndLf
//! ```
//!
//! The arrows are the functions of `HeadParser`. Each looks at every byte once and stops at the
//! first one that can't be right, so the answer is the same however the bytes are cut. Where a
//! limit cuts the bytes short, what is behind it is never looked at: it is an error whatever it is.
//!
//! Where the fields are all there in the first call, which is nearly always, httparse finds them
//! and `at_once` adds the checks that it doesn't make: from FieldStart to complete in one step. It
//! only ever says yes. Whatever either doesn't like goes through the machine, which knows the
//! right error and the byte that makes it one; so httparse's reading is held to the machine's by
//! every test that cuts.
//!
//! Cost: httparse's own, and some forty instructions a field for its index and its meaning; in the
//! machine, a table look-up per byte of a name and one vector or word operation per eight or
//! sixteen bytes of a target or value.

use crate::{
    Error, Head, Limits, Method, Version,
    bytes::{self, TOKEN},
    head::Field,
    target,
};

/// Fields that are read at once; more go line by line. Browsers send some twenty with a page, and
/// each costs two stores to make room for.
const AT_ONCE_FIELDS_MAX: usize = 24;

/// The longest method taken. The longest registered one, `UPDATEREDIRECTREF`, has 17 bytes.
const METHOD_BYTES_MAX: usize = 32;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd)]
enum State {
    #[default]
    Begin,
    BeginLf,
    Method,
    Target,
    Version,
    FieldStart,
    Name,
    Value,
    ValueLf,
    EndLf,
}

/// Parses a request head that arrives in pieces.
///
/// It keeps positions only: no bytes, no allocation. After a complete head it is ready for the
/// next; after an error it repeats that error.
#[derive(Clone, Debug, Default)]
pub struct HeadParser {
    state: State,
    failed: Option<Error>,
    /// All bytes before this one have been looked at.
    pos: usize,
    /// Where the current line starts.
    line: usize,
    /// Where the current part of the line starts: the target, the version, or the field's colon.
    mark: usize,
}

const _: () = assert!(size_of::<HeadParser>() <= 64);

impl HeadParser {
    /// Looks at `buf`, all the bytes received so far from the head's first one on, a CRLF before
    /// the request line included.
    ///
    /// `Ok(None)` asks for more bytes: call again with the same ones and those that follow, and
    /// with the same `head`. `Ok(Some(len))` says that `head` is complete and `len` bytes of `buf`
    /// are used up; the body follows, and the parser is ready for the next head. Bytes seen in one
    /// call are not looked at again in the next. It allocates only when `head` has more fields
    /// than ever before.
    ///
    /// # Errors
    /// Whatever RFC 9112 doesn't allow or `limits` don't, at the first byte that shows it: a wrong
    /// byte at once, a wrong value at the end of its line, a missing Host at the end of the head.
    /// After an error the connection can only be answered and closed; later calls return the same
    /// error.
    pub fn parse(
        &mut self,
        buf: &[u8],
        limits: &Limits,
        head: &mut Head,
    ) -> Result<Option<usize>, Error> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        // Everything past the limit is the same error, so it need not be looked at.
        let seen = &buf[..buf.len().min(limits.head_bytes())];
        let result = match self.state {
            State::Begin => self.begin_head(seen, limits, head),
            _ => self.advance(seen, limits, head),
        };
        let result = match result {
            Ok(None) if seen.len() < buf.len() => Err(self.too_long()),
            other => other,
        };
        match result {
            Ok(None) => {}
            Ok(Some(_)) => *self = Self::default(),
            Err(error) => self.failed = Some(error),
        }
        result
    }

    /// Whether the parser waits for the rest of a head: at least one byte of it has been seen.
    #[must_use]
    pub fn is_within_head(&self) -> bool {
        self.state != State::Begin
    }

    fn too_long(&self) -> Error {
        match self.state < State::FieldStart {
            true => Error::RequestLineTooLong,
            false => Error::HeadTooLong,
        }
    }

    /// The first look at a head, which nearly always is all there.
    fn begin_head(
        &mut self,
        buf: &[u8],
        limits: &Limits,
        head: &mut Head,
    ) -> Result<Option<usize>, Error> {
        head.clear();
        if !self.request_line(buf, limits, head)? {
            return Ok(None);
        }
        // Not in later calls: they would look at the same bytes again and again.
        match self.at_once(buf, limits, head) {
            AtOnce::Complete => {
                head.finish(self.pos)?;
                return Ok(Some(self.pos));
            }
            AtOnce::Untouched => {}
            AtOnce::Spoilt => {
                // Some fields were added before one that can't be right. The machine says why.
                *self = Self::default();
                head.clear();
            }
        }
        self.advance(buf, limits, head)
    }

    fn advance(
        &mut self,
        buf: &[u8],
        limits: &Limits,
        head: &mut Head,
    ) -> Result<Option<usize>, Error> {
        if self.state < State::FieldStart && !self.request_line(buf, limits, head)? {
            return Ok(None);
        }
        self.fields(buf, limits, head)
    }

    /// Reads all fields by httparse, if they are all there and there is nothing unusual about them.
    ///
    /// httparse also takes lines that end with a bare LF, and knows nothing of limits.
    // Not inline: its array would be part of each call's stack frame, also of those without it.
    #[inline(never)]
    fn at_once(&mut self, buf: &[u8], limits: &Limits, head: &mut Head) -> AtOnce {
        bytes::note_work(buf.len() - self.pos);
        let mut found = [httparse::EMPTY_HEADER; AT_ONCE_FIELDS_MAX];
        let Ok(httparse::Status::Complete((len, fields))) =
            httparse::parse_headers(&buf[self.pos..], &mut found)
        else {
            return AtOnce::Untouched;
        };
        let end = self.pos + len;
        let mut line = self.pos;
        if fields.len() > limits.fields() {
            return AtOnce::Untouched;
        }
        let base = buf.as_ptr().addr();
        for found in fields {
            let start = found.value.as_ptr().addr() - base;
            let value_end = start + found.value.len();
            // httparse has cut off what is blank behind the value.
            let mut line_end = value_end;
            if !buf[line_end..].starts_with(b"\r\n") {
                line_end = bytes::skip_blank(buf, line_end);
                if !buf[line_end..].starts_with(b"\r\n") {
                    return AtOnce::Spoilt;
                }
            }
            line_end += 2;
            if line_end - line > limits.field_bytes_max {
                return AtOnce::Spoilt;
            }
            let field = Field {
                name: line as u32,
                name_end: (line + found.name.len()) as u32,
                value: start as u32,
                value_end: value_end as u32,
            };
            if head
                .add(field, found.name.as_bytes(), found.value, limits)
                .is_err()
            {
                return AtOnce::Spoilt;
            }
            line = line_end;
        }
        if buf[line..end] != *b"\r\n" {
            return AtOnce::Spoilt;
        }
        self.pos = end;
        AtOnce::Complete
    }

    /// `true` when the request line is complete; the same for the parts of it below.
    fn request_line(
        &mut self,
        buf: &[u8],
        limits: &Limits,
        head: &mut Head,
    ) -> Result<bool, Error> {
        if self.state < State::Method && !self.begin(buf)? {
            return Ok(false);
        }
        let end = self.line.saturating_add(limits.request_line_bytes_max);
        let seen = &buf[..buf.len().min(end)];
        let is_complete = (self.state > State::Method || self.method(seen, head)?)
            && (self.state > State::Target || self.target(seen, limits, head)?)
            && self.version(seen, head)?;
        if !is_complete && seen.len() < buf.len() {
            return Err(Error::RequestLineTooLong);
        }
        Ok(is_complete)
    }

    /// One CRLF before the request line is let pass (RFC 9112 §2.2): old clients send it after a
    /// body.
    fn begin(&mut self, buf: &[u8]) -> Result<bool, Error> {
        if self.state == State::Begin {
            match buf.first() {
                None => return Ok(false),
                Some(b'\r') => self.state = State::BeginLf,
                Some(b'\n') => return Err(Error::BareLf),
                Some(_) => {
                    self.state = State::Method;
                    return Ok(true);
                }
            }
        }
        match buf.get(1) {
            None => return Ok(false),
            Some(b'\n') => {}
            Some(_) => return Err(Error::BareCr),
        }
        self.pos = 2;
        self.line = 2;
        self.state = State::Method;
        Ok(true)
    }

    fn method(&mut self, buf: &[u8], head: &mut Head) -> Result<bool, Error> {
        self.pos = bytes::skip(buf, self.pos, TOKEN);
        let len = self.pos - self.line;
        if len > METHOD_BYTES_MAX {
            return Err(Error::MethodTooLong);
        }
        match buf.get(self.pos) {
            None => return Ok(false),
            Some(b' ') if len > 0 => {}
            Some(b'\n') => return Err(Error::BareLf),
            Some(_) => return Err(Error::InvalidMethod),
        }
        head.method = Method::of(&buf[self.line..self.pos]);
        head.method_range = (self.line as u32, self.pos as u32);
        self.pos += 1;
        self.mark = self.pos;
        self.state = State::Target;
        Ok(true)
    }

    fn target(&mut self, buf: &[u8], limits: &Limits, head: &mut Head) -> Result<bool, Error> {
        self.pos = bytes::skip_target(buf, self.pos);
        let len = self.pos - self.mark;
        if len > limits.target_bytes_max {
            return Err(Error::TargetTooLong);
        }
        match buf.get(self.pos) {
            None => return Ok(false),
            Some(b' ') if len > 0 => {}
            Some(b'\n') => return Err(Error::BareLf),
            // HTTP/0.9 ends its request line here.
            Some(b'\r') => return Err(Error::InvalidVersion),
            Some(_) => return Err(Error::InvalidTarget),
        }
        head.parts = target::split(&buf[self.mark..self.pos], head.method)?;
        head.target = (self.mark as u32, self.pos as u32);
        self.pos += 1;
        self.mark = self.pos;
        self.state = State::Version;
        Ok(true)
    }

    fn version(&mut self, buf: &[u8], head: &mut Head) -> Result<bool, Error> {
        const COMMON: &[u8] = b"HTTP/1.1\r\n";
        if buf[self.mark..].starts_with(COMMON) {
            head.version = Version::Http11;
            self.pos = self.mark + COMMON.len();
            self.start_fields();
            return Ok(true);
        }
        while let Some(&byte) = buf.get(self.pos) {
            match (self.pos - self.mark, byte) {
                (at @ 0..=4, _) if byte == COMMON[at] => {}
                (5, b'1') | (6, b'.') | (8, b'\r') => {}
                (5, b'0'..=b'9') => return Err(Error::UnsupportedVersion),
                (7, b'0') => head.version = Version::Http10,
                (7, b'1'..=b'9') => head.version = Version::Http11,
                (9, b'\n') => {
                    self.pos += 1;
                    self.start_fields();
                    return Ok(true);
                }
                (9, _) => return Err(Error::BareCr),
                (_, b'\n') => return Err(Error::BareLf),
                _ => return Err(Error::InvalidVersion),
            }
            self.pos += 1;
        }
        Ok(false)
    }

    fn start_fields(&mut self) {
        self.line = self.pos;
        self.state = State::FieldStart;
    }

    fn fields(
        &mut self,
        buf: &[u8],
        limits: &Limits,
        head: &mut Head,
    ) -> Result<Option<usize>, Error> {
        loop {
            // Everything past the field's limit is the same error.
            let end = self.line.saturating_add(limits.field_bytes_max);
            let seen = &buf[..buf.len().min(end)];
            match self.field_line(seen, limits, head)? {
                Line::Field => {}
                Line::Partial if seen.len() < buf.len() => return Err(Error::FieldTooLong),
                Line::Partial => return Ok(None),
                Line::Empty => {
                    head.finish(self.pos)?;
                    return Ok(Some(self.pos));
                }
            }
        }
    }

    /// Reads one line: a field, or the empty one that ends the head.
    fn field_line(&mut self, buf: &[u8], limits: &Limits, head: &mut Head) -> Result<Line, Error> {
        if self.state == State::FieldStart {
            match buf.get(self.pos) {
                None => return Ok(Line::Partial),
                Some(b'\r') => {
                    self.pos += 1;
                    self.state = State::EndLf;
                }
                Some(_) if head.fields.len() >= limits.fields() => {
                    return Err(Error::TooManyFields);
                }
                Some(b' ' | b'\t') => return Err(Error::LineFolding),
                Some(_) => self.state = State::Name,
            }
        }
        if self.state == State::EndLf {
            return match buf.get(self.pos) {
                None => Ok(Line::Partial),
                Some(b'\n') => {
                    self.pos += 1;
                    Ok(Line::Empty)
                }
                Some(_) => Err(Error::BareCr),
            };
        }
        let is_complete = (self.state > State::Name || self.name(buf)?)
            && (self.state > State::Value || self.value(buf)?)
            && self.end_field(buf, limits, head)?;
        match is_complete {
            true => Ok(Line::Field),
            false => Ok(Line::Partial),
        }
    }

    fn name(&mut self, buf: &[u8]) -> Result<bool, Error> {
        self.pos = bytes::skip(buf, self.pos, TOKEN);
        match buf.get(self.pos) {
            None => return Ok(false),
            Some(b':') if self.pos > self.line => {}
            Some(b' ' | b'\t') => return Err(Error::SpaceBeforeColon),
            Some(b'\n') => return Err(Error::BareLf),
            Some(_) => return Err(Error::InvalidFieldName),
        }
        self.mark = self.pos;
        self.pos += 1;
        self.state = State::Value;
        Ok(true)
    }

    fn value(&mut self, buf: &[u8]) -> Result<bool, Error> {
        self.pos = bytes::skip_value(buf, self.pos);
        match buf.get(self.pos) {
            None => return Ok(false),
            Some(b'\r') => {}
            Some(b'\n') => return Err(Error::BareLf),
            Some(_) => return Err(Error::InvalidFieldValue),
        }
        self.pos += 1;
        self.state = State::ValueLf;
        Ok(true)
    }

    fn end_field(&mut self, buf: &[u8], limits: &Limits, head: &mut Head) -> Result<bool, Error> {
        match buf.get(self.pos) {
            None => return Ok(false),
            Some(b'\n') => {}
            Some(_) => return Err(Error::BareCr),
        }
        let value = bytes::trim_start(&buf[self.mark + 1..self.pos - 1]);
        let start = self.pos - 1 - value.len();
        let value = bytes::trim_end(value);
        let field = Field {
            name: self.line as u32,
            name_end: self.mark as u32,
            value: start as u32,
            value_end: (start + value.len()) as u32,
        };
        head.add(field, &buf[self.line..self.mark], value, limits)?;
        self.pos += 1;
        self.line = self.pos;
        self.state = State::FieldStart;
        Ok(true)
    }
}

/// What `HeadParser::at_once` came to.
enum AtOnce {
    /// All fields were read.
    Complete,
    /// Nothing was read: not all is there, or httparse didn't like it.
    Untouched,
    /// Something was read, but one of the fields is not as it must be.
    Spoilt,
}

/// What `HeadParser::field_line` found.
enum Line {
    /// Its end isn't there yet.
    Partial,
    Field,
    /// The empty line: the head's end.
    Empty,
}
