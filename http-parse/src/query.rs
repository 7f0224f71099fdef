//! Percent-decoding and the pairs of a query, on demand.

use std::borrow::Cow;

/// The bytes behind the percent-escapes of `text`.
///
/// A `%` without two hexadecimal digits stays as it is, as browsers do it. It allocates only if
/// there is something to decode. For text that must be right, see [`percent_decode_strict`].
#[must_use]
pub fn percent_decode(text: &str) -> Cow<'_, [u8]> {
    decode(text.as_bytes(), Plus::Plain, Malformed::Kept).unwrap_or_default()
}

/// The text behind the percent-escapes of `text`; `None` if a `%` stands without two hexadecimal
/// digits or the result isn't UTF-8. It allocates only if there is something to decode.
#[must_use]
pub fn percent_decode_strict(text: &str) -> Option<Cow<'_, str>> {
    utf8(decode(text.as_bytes(), Plus::Plain, Malformed::Refused)?)
}

fn utf8(bytes: Cow<'_, [u8]>) -> Option<Cow<'_, str>> {
    match bytes {
        Cow::Borrowed(bytes) => core::str::from_utf8(bytes).ok().map(Cow::Borrowed),
        Cow::Owned(bytes) => String::from_utf8(bytes).ok().map(Cow::Owned),
    }
}

fn utf8_lossy(bytes: Cow<'_, [u8]>) -> Cow<'_, str> {
    match bytes {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Plus {
    Plain,
    Space,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Malformed {
    Kept,
    Refused,
}

/// `None` only for a malformed escape that is to be refused.
fn decode(text: &[u8], plus: Plus, malformed: Malformed) -> Option<Cow<'_, [u8]>> {
    let is_special = |byte: u8| byte == b'%' || (byte == b'+' && plus == Plus::Space);
    let Some(first) = text.iter().position(|&byte| is_special(byte)) else {
        return Some(Cow::Borrowed(text));
    };
    let mut decoded = Vec::with_capacity(text.len());
    decoded.extend_from_slice(&text[..first]);
    let mut at = first;
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b'+' if plus == Plus::Space => decoded.push(b' '),
            b'%' => match text.get(at..at + 2).and_then(escape) {
                Some(byte) => {
                    decoded.push(byte);
                    at += 2;
                }
                None if malformed == Malformed::Refused => return None,
                None => decoded.push(b'%'),
            },
            _ => decoded.push(byte),
        }
    }
    Some(Cow::Owned(decoded))
}

fn escape(digits: &[u8]) -> Option<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16);
    // Two digits make at most 255.
    Some((digit(digits[0])? << 4 | digit(digits[1])?) as u8)
}

/// The `name=value` pairs of a query, decoded one by one as they are asked for.
///
/// As in HTML forms: pairs are parted by `&`, `+` is a space, empty pairs are left out, a pair
/// without `=` has an empty value. What is malformed is passed on as well as it can be: a `%`
/// without two digits as it is, bytes that aren't UTF-8 as U+FFFD. See [`QueryPairs::strict`].
#[derive(Clone, Debug)]
pub struct QueryPairs<'a> {
    rest: &'a str,
}

impl<'a> QueryPairs<'a> {
    /// The pairs of `query`, which is what follows the target's `?`.
    #[must_use]
    pub fn new(query: &'a str) -> Self {
        Self { rest: query }
    }

    /// The same pairs, but `None` for each that is malformed.
    pub fn strict(mut self) -> impl Iterator<Item = Option<(Cow<'a, str>, Cow<'a, str>)>> {
        core::iter::from_fn(move || {
            let (name, value) = self.next_raw()?;
            let text =
                |part: &'a str| utf8(decode(part.as_bytes(), Plus::Space, Malformed::Refused)?);
            Some(text(name).zip(text(value)))
        })
    }

    fn next_raw(&mut self) -> Option<(&'a str, &'a str)> {
        while !self.rest.is_empty() {
            let (pair, rest) = self.rest.split_once('&').unwrap_or((self.rest, ""));
            self.rest = rest;
            if !pair.is_empty() {
                return Some(pair.split_once('=').unwrap_or((pair, "")));
            }
        }
        None
    }
}

impl<'a> Iterator for QueryPairs<'a> {
    type Item = (Cow<'a, str>, Cow<'a, str>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.next_raw()?;
        let text = |part: &'a str| {
            let bytes = decode(part.as_bytes(), Plus::Space, Malformed::Kept);
            utf8_lossy(bytes.unwrap_or_default())
        };
        Some((text(name), text(value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(query: &str) -> Vec<(String, String)> {
        let owned = |(name, value): (Cow<'_, str>, Cow<'_, str>)| (name.into(), value.into());
        QueryPairs::new(query).map(owned).collect()
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.into(), value.into())
    }

    #[test]
    fn pairs_are_parted_and_decoded() {
        assert_eq!(
            pairs("a=1&&b=%32+%2B&c&=d&e=f=g&%3d=%26&"),
            [
                pair("a", "1"),
                pair("b", "2 +"),
                pair("c", ""),
                pair("", "d"),
                pair("e", "f=g"),
                pair("=", "&"),
            ]
        );
        assert_eq!(pairs(""), []);
        assert_eq!(pairs("&"), []);
    }

    #[test]
    fn what_is_malformed_is_passed_on_or_named() {
        assert_eq!(
            pairs("a=%&b=%4&c=%zz&d=%ff"),
            [
                pair("a", "%"),
                pair("b", "%4"),
                pair("c", "%zz"),
                pair("d", "\u{fffd}")
            ]
        );
        let strict: Vec<_> = QueryPairs::new("a=%&b=1+2&c=%ff&%zz=d").strict().collect();
        assert_eq!(strict, [None, Some(("b".into(), "1 2".into())), None, None]);
    }

    #[test]
    fn what_needs_no_decoding_is_borrowed() {
        let (name, value) = QueryPairs::new("name=value").next().unwrap();
        assert!(matches!(
            (name, value),
            (Cow::Borrowed("name"), Cow::Borrowed("value"))
        ));
    }

    #[test]
    fn a_path_keeps_its_plus_signs() {
        assert_eq!(&*percent_decode("/a+b%2Fc%"), b"/a+b/c%");
        assert_eq!(percent_decode_strict("/a+b%2Fc").as_deref(), Some("/a+b/c"));
        assert_eq!(percent_decode_strict("%"), None);
        assert_eq!(percent_decode_strict("%c3"), None);
        assert_eq!(percent_decode_strict("%c3%bc").as_deref(), Some("ü"));
    }
}
