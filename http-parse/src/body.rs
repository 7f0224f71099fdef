//! The body's state machine: data out of lengths and chunks.
//!
//! ```text
//!           take_data
//!  Length ────────────▶ Done                                a body by length
//!
//!        step_size        step             take_data          step            step
//!  Size ───────────▶ SizeLf ──▶ Data ──────────────▶ DataCr ──────▶ DataLf ──────▶ Size
//!   │                 ▲  │
//!   └▶ Extension ─────┘  │ size 0
//!      step_extension    ▼           step_trailer
//!                   TrailerStart ──▶ TrailerName ──▶ TrailerValue ──▶ TrailerLf ─┐
//!                     │   ▲                                                      │
//!                     │   └──────────────────────────────────────────────────────┘
//!                     │ CR       step
//!                     └──▶ EndLf ─────▶ Done
//! ```
//!
//! Framing goes through `step` byte by byte; data is never looked at. `Data` is the only state
//! whose bytes are handed out, so what a chunk holds can't be taken for framing, nor the reverse.

use core::ops::Range;

use crate::{
    Error, Framing, Limits,
    bytes::{self, QDTEXT, TOKEN, VALUE},
};

/// Digits of a chunk size: 16 hold any 64-bit number, and more could be zeros without end.
const SIZE_DIGITS_MAX: u8 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Length,
    Size,
    /// Behind the size, in what nobody reads.
    Extension(Extension),
    SizeLf,
    Data,
    DataCr,
    DataLf,
    TrailerStart,
    TrailerName,
    TrailerValue,
    TrailerLf,
    EndLf,
    Done,
}

/// Where in `*( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] )` the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extension {
    /// Whitespace behind the size or a value: only `;` may follow.
    BeforeSemicolon,
    /// Behind a `;`.
    BeforeName,
    Name,
    /// Whitespace behind a name: `=` or `;` may follow.
    AfterName,
    /// Behind a `=`.
    BeforeValue,
    Value,
    Quoted,
    /// Behind a backslash.
    Escaped,
    /// Behind the closing quote.
    AfterQuoted,
}

/// What [`BodyDecoder::decode`] found at the start of the bytes it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Decoded {
    /// Some of the body. Call again with the bytes from `consumed` on.
    Data {
        /// Where in the given bytes the body's are; never empty.
        data: Range<usize>,
        /// How many of the given bytes are used up.
        consumed: usize,
    },
    /// All that was given is used up, and the body goes on: call again with bytes that follow.
    More {
        /// How many of the given bytes are used up: all of them.
        consumed: usize,
    },
    /// The body is complete. The next request starts at `consumed`.
    End {
        /// How many of the given bytes are used up.
        consumed: usize,
    },
}

/// Finds a body's data in the bytes that follow its head.
///
/// It keeps no bytes: data is handed out as a range of what was given. Chunk extensions and
/// trailer fields are checked, counted against their limits, and dropped; so the fields that a
/// trailer may not have (RFC 9110 §6.5.1) can't have an effect.
#[derive(Clone, Debug)]
pub struct BodyDecoder {
    state: State,
    failed: Option<Error>,
    /// Digits of the chunk size at hand.
    digits: u8,
    /// Bytes of data still to come, in the body or in the chunk; while in `Size`, the size so far.
    remaining: u64,
    /// Bytes of data in all chunks so far, the one at hand included.
    total: u64,
    /// Bytes of extensions so far.
    extension_bytes: usize,
    /// Bytes of trailer lines so far.
    trailer_bytes: usize,
    /// Trailer lines so far.
    trailers: usize,
}

const _: () = assert!(size_of::<BodyDecoder>() <= 64);

impl BodyDecoder {
    /// A decoder for one body, with the framing that [`Head::body`](crate::Head::body) told.
    #[must_use]
    pub fn new(framing: Framing) -> Self {
        let (state, remaining) = match framing {
            Framing::None | Framing::Length(0) => (State::Done, 0),
            Framing::Length(len) => (State::Length, len),
            Framing::Chunked => (State::Size, 0),
        };
        Self {
            state,
            failed: None,
            digits: 0,
            remaining,
            total: 0,
            extension_bytes: 0,
            trailer_bytes: 0,
            trailers: 0,
        }
    }

    /// Whether the body is complete: `decode` would say `End` and use nothing up.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Looks at `buf`, the bytes that follow those used up so far; it may be empty.
    ///
    /// Each call returns at the first data, or when `buf` is used up. It never looks at a byte
    /// behind the body's last one, and never allocates.
    ///
    /// # Errors
    /// Chunked framing that RFC 9112 §7.1 doesn't allow, or more than `limits` do, at the first
    /// byte that shows it. After an error the connection can only be answered and closed; later
    /// calls return the same error.
    pub fn decode(&mut self, buf: &[u8], limits: &Limits) -> Result<Decoded, Error> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let result = match self.state {
            State::Length => self.decode_length(buf, limits),
            _ => self.decode_chunks(buf, limits),
        };
        if let Err(error) = result {
            self.failed = Some(error);
        }
        result
    }

    fn decode_length(&mut self, buf: &[u8], limits: &Limits) -> Result<Decoded, Error> {
        // The head has checked this; here it holds for a limit that differs by route.
        if self.total.saturating_add(self.remaining) > limits.body_bytes_max {
            return Err(Error::BodyTooLarge);
        }
        let Some(data) = self.take_data(buf, 0) else {
            return Ok(Decoded::More { consumed: 0 });
        };
        self.total += data.len() as u64;
        if self.remaining == 0 {
            self.state = State::Done;
        }
        let consumed = data.end;
        Ok(Decoded::Data { data, consumed })
    }

    /// The data from `at` on, at most what remains; `None` if there is none.
    fn take_data(&mut self, buf: &[u8], at: usize) -> Option<Range<usize>> {
        let available = buf.len() - at;
        let len = usize::try_from(self.remaining).map_or(available, |most| most.min(available));
        self.remaining -= len as u64;
        (len > 0).then_some(at..at + len)
    }

    fn decode_chunks(&mut self, buf: &[u8], limits: &Limits) -> Result<Decoded, Error> {
        let mut at = 0;
        while self.state != State::Done {
            if self.state == State::Data {
                let Some(data) = self.take_data(buf, at) else {
                    break;
                };
                if self.remaining == 0 {
                    self.state = State::DataCr;
                }
                let consumed = data.end;
                return Ok(Decoded::Data { data, consumed });
            }
            let Some(&byte) = buf.get(at) else {
                break;
            };
            bytes::note_work(0);
            self.step(byte, limits)?;
            at += 1;
        }
        match self.state {
            State::Done => Ok(Decoded::End { consumed: at }),
            _ => Ok(Decoded::More { consumed: at }),
        }
    }

    /// Takes in one byte of framing.
    fn step(&mut self, byte: u8, limits: &Limits) -> Result<(), Error> {
        match self.state {
            State::Size => self.step_size(byte, limits)?,
            State::Extension(place) => self.step_extension(byte, place, limits)?,
            State::SizeLf => {
                expect_lf(byte)?;
                self.state = match self.remaining {
                    0 => State::TrailerStart,
                    _ => State::Data,
                };
            }
            State::DataCr => match byte {
                b'\r' => self.state = State::DataLf,
                b'\n' => return Err(Error::BareLf),
                _ => return Err(Error::InvalidChunkEnd),
            },
            State::DataLf => {
                expect_lf(byte)?;
                self.digits = 0;
                self.state = State::Size;
            }
            State::EndLf => {
                expect_lf(byte)?;
                self.state = State::Done;
            }
            State::TrailerStart if byte == b'\r' => self.state = State::EndLf,
            _ => self.step_trailer(byte, limits)?,
        }
        Ok(())
    }

    fn step_size(&mut self, byte: u8, limits: &Limits) -> Result<(), Error> {
        if let Some(digit) = (byte as char).to_digit(16) {
            if self.digits == SIZE_DIGITS_MAX {
                return Err(Error::InvalidChunkSize);
            }
            self.digits += 1;
            self.remaining = self.remaining << 4 | u64::from(digit);
            return Ok(());
        }
        if self.digits == 0 {
            return Err(match byte {
                b'\n' => Error::BareLf,
                _ => Error::InvalidChunkSize,
            });
        }
        match byte {
            b'\r' | b';' | b' ' | b'\t' => {}
            b'\n' => return Err(Error::BareLf),
            _ => return Err(Error::InvalidChunkSize),
        }
        self.total = self.total.saturating_add(self.remaining);
        if self.total > limits.body_bytes_max {
            return Err(Error::BodyTooLarge);
        }
        match byte {
            b'\r' => {
                self.state = State::SizeLf;
                Ok(())
            }
            _ => self.step_extension(byte, Extension::BeforeSemicolon, limits),
        }
    }

    fn step_extension(&mut self, byte: u8, place: Extension, limits: &Limits) -> Result<(), Error> {
        use Extension::{
            AfterName, AfterQuoted, BeforeName, BeforeSemicolon, BeforeValue, Escaped, Name,
            Quoted, Value,
        };
        let is_token = bytes::is(byte, TOKEN);
        let next = match (place, byte) {
            (_, b'\n') => return Err(Error::BareLf),
            (Name | Value | AfterQuoted, b'\r') => {
                self.state = State::SizeLf;
                return Ok(());
            }
            (Quoted, b'"') => AfterQuoted,
            (Quoted, b'\\') => Escaped,
            (Quoted, _) if bytes::is(byte, QDTEXT) => Quoted,
            (Escaped, _) if bytes::is(byte, VALUE) => Quoted,
            (Quoted | Escaped, _) => return Err(Error::InvalidChunkExtension),
            (BeforeName | Name, _) if is_token => Name,
            (BeforeValue | Value, _) if is_token => Value,
            (BeforeValue, b'"') => Quoted,
            (Name | AfterName, b'=') => BeforeValue,
            (BeforeSemicolon | Name | AfterName | Value | AfterQuoted, b';') => BeforeName,
            (BeforeSemicolon | BeforeName | AfterName | BeforeValue, b' ' | b'\t') => place,
            (Name, b' ' | b'\t') => AfterName,
            (Value | AfterQuoted, b' ' | b'\t') => BeforeSemicolon,
            _ => return Err(Error::InvalidChunkExtension),
        };
        // Without a bound, megabytes could be sent for each byte of data.
        self.extension_bytes += 1;
        if self.extension_bytes > limits.chunk_extension_bytes_max {
            return Err(Error::ChunkExtensionsTooLong);
        }
        self.state = State::Extension(next);
        Ok(())
    }

    fn step_trailer(&mut self, byte: u8, limits: &Limits) -> Result<(), Error> {
        if self.state == State::TrailerStart {
            if self.trailers == limits.trailers_max {
                return Err(Error::TooManyTrailers);
            }
            self.trailers += 1;
        }
        if self.trailer_bytes == limits.trailer_bytes_max {
            return Err(Error::TrailersTooLong);
        }
        self.trailer_bytes += 1;
        self.state = match (self.state, byte) {
            (State::TrailerLf, _) => {
                expect_lf(byte)?;
                State::TrailerStart
            }
            (_, b'\n') => return Err(Error::BareLf),
            (State::TrailerValue, b'\r') => State::TrailerLf,
            (State::TrailerValue, _) if bytes::is(byte, VALUE) => State::TrailerValue,
            (State::TrailerValue, _) => return Err(Error::InvalidFieldValue),
            (State::TrailerStart, b' ' | b'\t') => return Err(Error::LineFolding),
            (_, b' ' | b'\t') => return Err(Error::SpaceBeforeColon),
            (State::TrailerName, b':') => State::TrailerValue,
            (_, _) if bytes::is(byte, TOKEN) => State::TrailerName,
            _ => return Err(Error::InvalidFieldName),
        };
        Ok(())
    }
}

fn expect_lf(byte: u8) -> Result<(), Error> {
    match byte {
        b'\n' => Ok(()),
        _ => Err(Error::BareCr),
    }
}
