//! Protobuf's encoding, as far as the fast paths need it: reading field by field without copying
//! or recursing, and writing the few kinds of field that answers have.
//!
//! What is accepted is exactly what prost accepts, so the two decoders of this crate agree.

use std::str;

use super::error::WireFault;

/// How deep groups and messages may be nested: prost's limit, and nearly every implementation's.
const NESTING_MAX: usize = 100;

/// Bytes of the longest varint: 64 bits by seven.
pub(super) const VARINT_BYTES_MAX: usize = 10;

/// How a field's value is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WireType {
    Varint = 0,
    Fixed64 = 1,
    Len = 2,
    StartGroup = 3,
    EndGroup = 4,
    Fixed32 = 5,
}

/// A field's number and layout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    pub(super) number: u32,
    wire_type: WireType,
}

/// What is left of one message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    /// How many more messages or groups may be entered.
    nesting_left: usize,
}

impl<'a> Reader<'a> {
    /// Reads a message from its first byte on.
    pub(super) fn new(message: &'a [u8]) -> Self {
        Self {
            rest: message,
            nesting_left: NESTING_MAX,
        }
    }

    /// The next field's key, or `None` at the message's end. Then one of the methods below takes
    /// the value.
    pub(super) fn next_key(&mut self) -> Result<Option<Key>, WireFault> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        self.key().map(Some)
    }

    fn key(&mut self) -> Result<Key, WireFault> {
        let key = u32::try_from(self.varint()?).map_err(|_| WireFault::FieldNumber)?;
        let wire_type = match key & 7 {
            0 => WireType::Varint,
            1 => WireType::Fixed64,
            2 => WireType::Len,
            3 => WireType::StartGroup,
            4 => WireType::EndGroup,
            5 => WireType::Fixed32,
            _ => return Err(WireFault::WireType),
        };
        match key >> 3 {
            0 => Err(WireFault::FieldNumber),
            number => Ok(Key { number, wire_type }),
        }
    }

    /// The value of a field of an integer type or `bool`.
    pub(super) fn uint(&mut self, key: Key) -> Result<u64, WireFault> {
        if key.wire_type != WireType::Varint {
            return Err(WireFault::WireType);
        }
        self.varint()
    }

    /// The value of a field of type `bytes`.
    pub(super) fn bytes(&mut self, key: Key) -> Result<&'a [u8], WireFault> {
        if key.wire_type != WireType::Len {
            return Err(WireFault::WireType);
        }
        self.len_delimited()
    }

    /// The value of a field of type `string`.
    pub(super) fn string(&mut self, key: Key) -> Result<&'a str, WireFault> {
        str::from_utf8(self.bytes(key)?).map_err(|_| WireFault::Utf8)
    }

    /// The value of a field of a message type.
    pub(super) fn message(&mut self, key: Key) -> Result<Self, WireFault> {
        let rest = self.bytes(key)?;
        let nesting_left = self.nesting_left.checked_sub(1).ok_or(WireFault::Nesting)?;
        Ok(Self { rest, nesting_left })
    }

    /// Passes over the value of a field that means nothing here.
    ///
    /// Groups are followed by a list of the open ones, not by recursion: no depth that a peer can
    /// send reaches the stack's end.
    pub(super) fn skip(&mut self, key: Key) -> Result<(), WireFault> {
        if key.wire_type != WireType::StartGroup {
            return self.skip_plain(key.wire_type);
        }
        let mut open = [0; NESTING_MAX];
        let mut depth = 0;
        let mut key = key;
        loop {
            if key.wire_type == WireType::EndGroup {
                // The first key starts a group, and the last group's end returns: one is open.
                depth -= 1;
                if open[depth] != key.number {
                    return Err(WireFault::Group);
                }
                if depth == 0 {
                    return Ok(());
                }
            } else if depth == self.nesting_left {
                return Err(WireFault::Nesting);
            } else if key.wire_type == WireType::StartGroup {
                open[depth] = key.number;
                depth += 1;
            } else {
                self.skip_plain(key.wire_type)?;
            }
            key = self.key()?;
        }
    }

    fn skip_plain(&mut self, wire_type: WireType) -> Result<(), WireFault> {
        match wire_type {
            WireType::Varint => self.varint().map(drop),
            WireType::Fixed64 => self.take(8).map(drop),
            WireType::Fixed32 => self.take(4).map(drop),
            WireType::Len => self.len_delimited().map(drop),
            WireType::StartGroup | WireType::EndGroup => Err(WireFault::Group),
        }
    }

    fn len_delimited(&mut self) -> Result<&'a [u8], WireFault> {
        let len = self.varint()?;
        self.take(usize::try_from(len).map_err(|_| WireFault::Truncated)?)
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], WireFault> {
        let (taken, rest) = self
            .rest
            .split_at_checked(len)
            .ok_or(WireFault::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Nearly all of them, keys and lengths of names, are of one byte: the rest stays out of line.
    #[inline]
    fn varint(&mut self) -> Result<u64, WireFault> {
        match self.rest {
            [byte @ ..0x80, rest @ ..] => {
                self.rest = rest;
                Ok(u64::from(*byte))
            }
            _ => self.long_varint(),
        }
    }

    #[inline(never)]
    fn long_varint(&mut self) -> Result<u64, WireFault> {
        let mut value = 0;
        for (index, &byte) in self.rest.iter().take(VARINT_BYTES_MAX).enumerate() {
            // Nine bytes hold 63 bits: of the tenth only the lowest bit is left.
            if index == VARINT_BYTES_MAX - 1 && byte > 1 {
                return Err(WireFault::Varint);
            }
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                self.rest = &self.rest[index + 1..];
                return Ok(value);
            }
        }
        Err(WireFault::Truncated)
    }
}

/// Bytes that `value` takes as a varint: 1 to 10.
pub(super) const fn varint_len(value: u64) -> usize {
    // Seven bits to a byte, and a byte at least.
    (70 - (value | 1).leading_zeros() as usize) / 7
}

/// Appends `value` as a varint.
pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The key of field `number`, which is below 16 in all these messages: one byte.
fn key(number: u8, wire_type: WireType) -> u8 {
    debug_assert!((1..16).contains(&number));
    number << 3 | wire_type as u8
}

/// Bytes that an integer field takes: none for its default, 0.
pub(super) const fn uint_field_len(value: u64) -> usize {
    if value == 0 { 0 } else { 1 + varint_len(value) }
}

/// Appends an integer field, unless it has its default, 0.
pub(super) fn put_uint_field(out: &mut Vec<u8>, number: u8, value: u64) {
    if value != 0 {
        put_present_uint_field(out, number, value);
    }
}

/// Appends an integer field that is there even when it is 0.
pub(super) fn put_present_uint_field(out: &mut Vec<u8>, number: u8, value: u64) {
    out.push(key(number, WireType::Varint));
    put_varint(out, value);
}

/// Bytes that a field with `len` bytes of content takes.
pub(super) const fn len_field_len(len: usize) -> usize {
    1 + varint_len(len as u64) + len
}

/// Appends the beginning of a field with `len` bytes of content, which is to follow.
#[inline]
pub(super) fn put_len_prefix(out: &mut Vec<u8>, number: u8, len: usize) {
    if len < 0x80 {
        // Both bytes at once: most names are this short.
        out.extend_from_slice(&[key(number, WireType::Len), len as u8]);
    } else {
        out.push(key(number, WireType::Len));
        put_varint(out, len as u64);
    }
}

/// Appends a string or bytes field, even if it is empty.
#[inline]
pub(super) fn put_bytes_field(out: &mut Vec<u8>, number: u8, content: &[u8]) {
    put_len_prefix(out, number, content.len());
    out.extend_from_slice(content);
}
