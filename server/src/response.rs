//! The answer that a handler fills in.

use bytes::Bytes;

use crate::proto::http::is_field_name;

/// A field that can't be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldError {
    /// The name isn't a token (RFC 9110 §5.6.2); nothing was added.
    #[error("a field name must be a token")]
    Name,
    /// The value has a CR, LF, NUL or another control character in it, which would let it end the field; nothing was
    /// added.
    #[error("a field value must not hold control characters")]
    Value,
    /// The server writes this field itself: `Date`, `Content-Length`, `Transfer-Encoding` and `Connection`.
    #[error("the server itself writes this field")]
    Reserved,
}

/// A body, in whichever form it costs least.
#[derive(Debug, Default)]
pub(crate) enum Body {
    #[default]
    Empty,
    Static(&'static [u8]),
    Owned(Vec<u8>),
    Shared(Bytes),
}

impl Body {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Empty => &[],
            Self::Static(bytes) => bytes,
            Self::Owned(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

/// An answer: 200 without a body until the handler says otherwise.
///
/// The server adds `Date`, `Content-Length`, `Connection` and what else the protocol asks for.
#[derive(Debug)]
pub struct Response {
    pub(crate) status: u16,
    pub(crate) content_type: Option<&'static str>,
    /// Further fields, as they go out.
    pub(crate) fields: Vec<u8>,
    pub(crate) body: Body,
    pub(crate) close: bool,
}

impl Default for Response {
    fn default() -> Self {
        Self {
            status: 200,
            content_type: None,
            fields: Vec::new(),
            body: Body::Empty,
            close: false,
        }
    }
}

impl Response {
    /// Sets the status code, from 200 to 599.
    ///
    /// # Panics
    /// When the code is outside that range: 1xx isn't a final answer.
    pub fn status(&mut self, code: u16) -> &mut Self {
        assert!(
            (200..600).contains(&code),
            "a final status is from 200 to 599, not {code}"
        );
        self.status = code;
        self
    }

    /// Adds a field.
    ///
    /// # Errors
    /// [`FieldError`] when the name or the value can't stand in a head, or the server writes this field itself.
    pub fn header(&mut self, name: &str, value: impl AsRef<[u8]>) -> Result<&mut Self, FieldError> {
        let value = value.as_ref();
        if !is_field_name(name.as_bytes()) {
            return Err(FieldError::Name);
        }
        if value
            .iter()
            .any(|&byte| (byte < b' ' && byte != b'\t') || byte == 0x7f)
        {
            return Err(FieldError::Value);
        }
        const RESERVED: [&str; 4] = ["date", "content-length", "transfer-encoding", "connection"];
        if RESERVED
            .iter()
            .any(|reserved| reserved.eq_ignore_ascii_case(name))
        {
            return Err(FieldError::Reserved);
        }
        self.put_field(name, value);
        Ok(self)
    }

    pub(crate) fn put_field(&mut self, name: &str, value: &[u8]) {
        for part in [name.as_bytes(), b": ", value, b"\r\n"] {
            self.fields.extend_from_slice(part);
        }
    }

    /// Sets the media type of the body.
    pub fn content_type(&mut self, media_type: &'static str) -> &mut Self {
        self.content_type = Some(media_type);
        self
    }

    /// Asks for the connection to be closed after this answer.
    pub fn close(&mut self) -> &mut Self {
        self.close = true;
        self
    }

    /// Answers with a constant text, which is not copied before it's sent.
    pub fn text(&mut self, text: &'static str) {
        self.content_type.get_or_insert("text/plain; charset=utf-8");
        self.body = Body::Static(text.as_bytes());
    }

    /// Answers with bytes of the handler's own.
    pub fn bytes(&mut self, bytes: impl Into<Vec<u8>>) {
        self.body = Body::Owned(bytes.into());
    }

    /// Answers with bytes that are shared and not copied.
    pub fn shared(&mut self, bytes: Bytes) {
        self.body = Body::Shared(bytes);
    }

    /// Back to 200 without a body; capacity is kept.
    pub(crate) fn reset(&mut self) {
        self.fields.clear();
        *self = Self {
            fields: std::mem::take(&mut self.fields),
            ..Self::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_would_end_its_field_is_refused() {
        let mut response = Response::default();
        for value in ["a\r\nb: c", "a\nb", "a\0", "a\x7f"] {
            assert_eq!(
                response.header("x", value).err(),
                Some(FieldError::Value),
                "{value:?}"
            );
        }
        assert_eq!(response.header("x y", "1").err(), Some(FieldError::Name));
        assert_eq!(
            response.header("content-LENGTH", "1").err(),
            Some(FieldError::Reserved)
        );
        assert!(response.fields.is_empty());
        response
            .header("x", "tab\tis fine")
            .expect("it can be sent");
        assert_eq!(response.fields, b"x: tab\tis fine\r\n");
    }
}
