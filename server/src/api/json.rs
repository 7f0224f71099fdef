//! Reading JSON strictly: known fields only, none twice, and every refusal with its path.
//!
//! serde_json tokenises; what it hands over is taken by the few visitors here. While they descend they keep the path
//! in [`Context`], in place and without an allocation, so that a refusal can say `events[3].tags[0]`. A refusal of our
//! own is put down in the context and travels through serde_json as an error whose text nobody reads.
//!
//! The depth is bounded by the shapes asked for (no visitor accepts what it doesn't know), and a raw value is skipped
//! by a loop, not by recursion.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt::{self, Write as _};

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;

use super::error::ApiError;

/// More than the deepest path has: `condition.failIfEventsMatch.items[0].tags[1]` is six steps.
const DEPTH_MAX: usize = 8;

/// Bytes of serde_json's own message that are shown: it quotes the value it didn't expect, whatever its length.
const MESSAGE_BYTES_MAX: usize = 200;

/// Bytes of an unknown field's or parameter's name that are shown.
const NAME_SHOWN_MAX: usize = 64;

#[derive(Clone, Copy)]
enum Step {
    /// At the object or list itself.
    Here,
    Field(&'static str),
    Index(usize),
}

/// Where in a document its reader stands, and what was wrong there.
pub(super) struct Context {
    /// What the path starts with: a parameter's name, or empty for a body.
    root: &'static str,
    steps: [Cell<Step>; DEPTH_MAX],
    depth: Cell<usize>,
    names_left: Cell<usize>,
    failure: Cell<Option<ApiError>>,
}

impl Context {
    /// `root` is the parameter that holds the document, or empty for a body. `names_max` bounds the names that
    /// [`Context::take_name`] allows.
    pub(super) fn new(root: &'static str, names_max: usize) -> Self {
        Self {
            root,
            steps: [const { Cell::new(Step::Here) }; DEPTH_MAX],
            depth: Cell::new(0),
            names_left: Cell::new(names_max),
            failure: Cell::new(None),
        }
    }

    /// Counts one name. False: there have been as many as may be.
    pub(super) fn take_name(&self) -> bool {
        let left = self.names_left.get();
        self.names_left.set(left.saturating_sub(1));
        left > 0
    }

    /// Refuses the value that is being read, with 400.
    pub(super) fn fail<E: de::Error>(&self, what: impl fmt::Display) -> E {
        let path = self.path();
        let message = match path.as_str() {
            "" => format!("the body: {what}"),
            path => format!("{path}: {what}"),
        };
        self.fail_with(ApiError::bad_request(message))
    }

    /// Refuses a field of the object that is being read, with 400.
    pub(super) fn fail_at<E: de::Error>(&self, field: &'static str, what: impl fmt::Display) -> E {
        self.stand(Step::Field(field));
        self.fail(what)
    }

    /// Refuses an element of the list that has just been read, with 400.
    pub(super) fn fail_at_index<E: de::Error>(&self, index: usize, what: impl fmt::Display) -> E {
        self.enter();
        self.stand(Step::Index(index));
        self.fail(what)
    }

    /// Refuses the whole document with an error of the caller's.
    pub(super) fn fail_with<E: de::Error>(&self, error: ApiError) -> E {
        self.failure.set(Some(error));
        E::custom("refused")
    }

    fn enter(&self) {
        let depth = self.depth.get();
        self.steps[depth].set(Step::Here);
        self.depth.set(depth + 1);
    }

    fn leave(&self) {
        self.depth.set(self.depth.get() - 1);
    }

    fn stand(&self, step: Step) {
        self.steps[self.depth.get() - 1].set(step);
    }

    fn path(&self) -> String {
        let mut path = String::from(self.root);
        for step in &self.steps[..self.depth.get()] {
            match step.get() {
                Step::Here => {}
                Step::Field(name) if path.is_empty() => path.push_str(name),
                Step::Field(name) => {
                    path.push('.');
                    path.push_str(name);
                }
                Step::Index(index) => {
                    write!(path, "[{index}]").expect("a String takes any text");
                }
            }
        }
        path
    }

    /// Turns what came out of serde_json into the answer.
    fn explain(&self, error: &serde_json::Error) -> ApiError {
        if let Some(failure) = self.failure.take() {
            return failure;
        }
        let (line, column) = (error.line(), error.column());
        let text = error.to_string();
        let text = text
            .strip_suffix(&format!(" at line {line} column {column}"))
            .unwrap_or(&text);
        let text = shorten(text, MESSAGE_BYTES_MAX);
        let broken = match error.classify() {
            Category::Data => "",
            Category::Io | Category::Syntax | Category::Eof => "not valid JSON, ",
        };
        let path = match (broken, self.path()) {
            // Where the syntax breaks, the line and column say more than the field that was begun.
            ("", path) if !path.is_empty() => Cow::Owned(path),
            _ if self.root.is_empty() => Cow::Borrowed("the body"),
            _ => Cow::Borrowed(self.root),
        };
        ApiError::bad_request(format!(
            "{path}: {broken}{text} at line {line} column {column}"
        ))
    }
}

/// At most `bytes_max` bytes of `text`, cut between characters and marked where something is missing.
pub(super) fn shorten(text: &str, bytes_max: usize) -> Cow<'_, str> {
    if text.len() <= bytes_max {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}…", &text[..text.floor_char_boundary(bytes_max)]))
}

/// The words for a field or parameter that isn't among `known`.
pub(super) fn unknown(name: &str, what: &str, known: &[&str]) -> String {
    let mut text = format!(
        "{}: unknown {what}, the known ones are ",
        shorten(name, NAME_SHOWN_MAX)
    );
    for (index, known) in known.iter().enumerate() {
        text.push_str(if index == 0 { "" } else { ", " });
        text.push_str(known);
    }
    text
}

/// Reads one document of UTF-8 JSON, and nothing after it.
///
/// # Errors
/// 400 with the path of what was refused, or the line and column where the JSON breaks.
pub(super) fn read<'de, S>(text: &'de [u8], ctx: &Context, seed: S) -> Result<S::Value, ApiError>
where
    S: DeserializeSeed<'de>,
{
    let text = str::from_utf8(text).map_err(|error| {
        let root = if ctx.root.is_empty() {
            "the body"
        } else {
            ctx.root
        };
        ApiError::bad_request(format!(
            "{root}: not UTF-8 from byte {} on",
            error.valid_up_to()
        ))
    })?;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    seed.deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|error| ctx.explain(&error))
}

/// What an object's fields are and what becomes of them.
pub(super) trait Fields<'de>: Sized {
    /// What the object is read as.
    type Value;

    /// What was expected where something else stands.
    const EXPECTED: &'static str;

    /// The names of the fields; at most 32.
    fn known(&self) -> &'static [&'static str];

    /// Reads the value of `known()[field]`, which comes for the first time.
    fn field<A: MapAccess<'de>>(
        &mut self,
        field: usize,
        map: &mut A,
        ctx: &Context,
    ) -> Result<(), A::Error>;

    /// All fields have been read.
    fn finish<E: de::Error>(self, ctx: &Context) -> Result<Self::Value, E>;
}

/// Reads an object by its [`Fields`].
pub(super) struct Object<'c, T>(pub(super) &'c Context, pub(super) T);

impl<'de, T: Fields<'de>> DeserializeSeed<'de> for Object<'_, T> {
    type Value = T::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, T: Fields<'de>> Visitor<'de> for Object<'_, T> {
    type Value = T::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T::Value, A::Error> {
        let Self(ctx, mut fields) = self;
        let known = fields.known();
        let mut seen = 0_u32;
        ctx.enter();
        while let Some(field) = map.next_key_seed(Key { ctx, known })? {
            ctx.stand(Step::Field(known[field]));
            if seen & (1 << field) != 0 {
                return Err(ctx.fail("the field is there twice"));
            }
            seen |= 1 << field;
            fields.field(field, &mut map, ctx)?;
            ctx.stand(Step::Here);
        }
        let value = fields.finish(ctx)?;
        ctx.leave();
        Ok(value)
    }
}

struct Key<'c> {
    ctx: &'c Context,
    known: &'static [&'static str],
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field's name")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<usize, E> {
        if let Some(field) = self.known.iter().position(|known| *known == name) {
            return Ok(field);
        }
        let path = self.ctx.path();
        let dot = if path.is_empty() { "" } else { "." };
        let message = format!("{path}{dot}{}", unknown(name, "field", self.known));
        Err(self.ctx.fail_with(ApiError::bad_request(message)))
    }
}

/// What a list's elements are and where they go.
pub(super) trait Elements<'de>: Sized {
    /// What was expected where something else stands.
    const EXPECTED: &'static str;

    /// Reads the next element, if there is one.
    fn element<A: SeqAccess<'de>>(&mut self, seq: &mut A, ctx: &Context) -> Result<bool, A::Error>;
}

/// Reads a list by its [`Elements`].
pub(super) struct List<'c, T>(pub(super) &'c Context, pub(super) T);

impl<'de, T: Elements<'de>> DeserializeSeed<'de> for List<'_, T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: Elements<'de>> Visitor<'de> for List<'_, T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<T, A::Error> {
        let Self(ctx, mut elements) = self;
        ctx.enter();
        let mut index = 0;
        ctx.stand(Step::Index(index));
        while elements.element(&mut seq, ctx)? {
            index += 1;
            ctx.stand(Step::Index(index));
        }
        ctx.leave();
        Ok(elements)
    }
}

/// Reads a string, and what a function makes of it; its error is the reason of a refusal.
pub(super) struct Text<'c, F>(pub(super) &'c Context, pub(super) F);

impl<'de, F, T, R> DeserializeSeed<'de> for Text<'_, F>
where
    F: FnOnce(&str) -> Result<T, R>,
    R: fmt::Display,
{
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<F, T, R> Visitor<'_> for Text<'_, F>
where
    F: FnOnce(&str) -> Result<T, R>,
    R: fmt::Display,
{
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.1)(text).map_err(|reason| self.0.fail(reason))
    }
}

/// Reads a whole number, all 64 bits of it; `null` is none.
pub(super) struct OptionalNumber;

impl<'de> DeserializeSeed<'de> for OptionalNumber {
    type Value = Option<u64>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<u64>, D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de> Visitor<'de> for OptionalNumber {
    type Value = Option<u64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from 0 to {}", u64::MAX)
    }

    fn visit_none<E: de::Error>(self) -> Result<Option<u64>, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<u64>, D::Error> {
        deserializer.deserialize_u64(self)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Option<u64>, E> {
        Ok(Some(number))
    }
}

/// Reads what a seed reads; `null` is none.
pub(super) struct Optional<S>(pub(super) S);

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Optional<S> {
    type Value = Option<S::Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de, S: DeserializeSeed<'de>> Visitor<'de> for Optional<S> {
    type Value = Option<S::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value or null")
    }

    fn visit_none<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        self.0.deserialize(deserializer).map(Some)
    }
}
