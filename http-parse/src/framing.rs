//! What the fields of a head say about its body and its connection.

use crate::{
    Error, Known, Limits, Version,
    bytes::{self, TOKEN},
    target,
};

/// How a request's body ends (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Framing {
    /// There is no body.
    #[default]
    None,
    /// The body has this many bytes; 0 if the client said `Content-Length: 0`.
    Length(u64),
    /// The body comes in chunks.
    Chunked,
}

/// What has been gathered so far from the fields that the parser itself needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Meaning {
    pub(crate) framing: Framing,
    pub(crate) has_close: bool,
    pub(crate) has_keep_alive: bool,
    pub(crate) has_upgrade_option: bool,
    pub(crate) has_upgrade: bool,
    pub(crate) expects_continue: bool,
}

impl Meaning {
    /// Takes in one field; `is_repeated` if the same name came before.
    // Not inline: most fields don't come here, and shouldn't pay for the room that it needs.
    #[inline(never)]
    pub(crate) fn take(
        &mut self,
        known: Known,
        value: &[u8],
        is_repeated: bool,
        version: Version,
        limits: &Limits,
    ) -> Result<(), Error> {
        match known {
            Known::Host => check_host(value, is_repeated),
            Known::ContentLength => self.take_length(value, limits),
            Known::TransferEncoding => self.take_encoding(value, version),
            Known::Connection => {
                self.take_connection(value);
                Ok(())
            }
            Known::Expect => self.take_expect(value),
            Known::Upgrade => {
                self.has_upgrade = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn take_length(&mut self, value: &[u8], limits: &Limits) -> Result<(), Error> {
        match self.framing {
            Framing::None => {}
            // RFC 9112 §6.3 allows to collapse equal values. No client in use sends two, so both
            // are refused: what is equal here may have been read otherwise by the hop before.
            Framing::Length(_) => return Err(Error::RepeatedLength),
            Framing::Chunked => return Err(Error::AmbiguousLength),
        }
        let length = parse_length(value).ok_or(Error::InvalidLength)?;
        if length > limits.body_bytes_max {
            return Err(Error::BodyTooLarge);
        }
        self.framing = Framing::Length(length);
        Ok(())
    }

    fn take_encoding(&mut self, value: &[u8], version: Version) -> Result<(), Error> {
        if version == Version::Http10 {
            return Err(Error::TransferEncodingInHttp10);
        }
        if matches!(self.framing, Framing::Length(_)) {
            return Err(Error::AmbiguousLength);
        }
        for coding in bytes::list(value) {
            // Nothing may follow `chunked`, not even a second one (RFC 9112 §6.1).
            if self.framing == Framing::Chunked {
                return Err(Error::InvalidTransferEncoding);
            }
            if coding.eq_ignore_ascii_case(b"chunked") {
                self.framing = Framing::Chunked;
                continue;
            }
            let name_end = bytes::skip(coding, 0, TOKEN);
            let (name, parameters) = coding.split_at(name_end);
            // `chunked` has no parameters (RFC 9112 §7).
            let is_known = name.is_empty() || name.eq_ignore_ascii_case(b"chunked");
            let is_coding = matches!(bytes::trim(parameters), [] | [b';', ..]);
            return match is_coding && !is_known {
                true => Err(Error::UnknownTransferCoding),
                false => Err(Error::InvalidTransferEncoding),
            };
        }
        Ok(())
    }

    fn take_connection(&mut self, value: &[u8]) {
        for option in bytes::list(value) {
            // Most values are one of these, so the length picks what to compare with.
            match option.len() {
                5 => self.has_close |= option.eq_ignore_ascii_case(b"close"),
                7 => self.has_upgrade_option |= option.eq_ignore_ascii_case(b"upgrade"),
                10 => self.has_keep_alive |= option.eq_ignore_ascii_case(b"keep-alive"),
                _ => {}
            }
        }
    }

    fn take_expect(&mut self, value: &[u8]) -> Result<(), Error> {
        for expectation in bytes::list(value) {
            if !expectation.eq_ignore_ascii_case(b"100-continue") {
                return Err(Error::UnknownExpectation);
            }
        }
        self.expects_continue = true;
        Ok(())
    }
}

fn check_host(value: &[u8], is_repeated: bool) -> Result<(), Error> {
    if is_repeated {
        return Err(Error::RepeatedHost);
    }
    if !target::check_authority(value, target::Port::Allowed) {
        return Err(Error::InvalidHost);
    }
    Ok(())
}

/// `1*DIGIT` below 2^64; signs, spaces, lists and the empty value are `None`.
fn parse_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    value.iter().try_fold(0_u64, |length, &digit| {
        if !digit.is_ascii_digit() {
            return None;
        }
        length.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })
}
