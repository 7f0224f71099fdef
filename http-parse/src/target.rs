//! The four forms of a request target (RFC 9112 §3.2), and what a Host may be.

use core::net::Ipv6Addr;

use crate::{
    Error, Method,
    bytes::{self, REG_NAME},
};

/// Where the parts of a target are, counted from the target's first byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    /// Empty but in absolute-form and authority-form.
    pub(crate) authority: (u32, u32),
    /// Empty in authority-form and in absolute-form without a path.
    pub(crate) path: (u32, u32),
    /// Where the query starts, behind its `?`; it goes on to the target's end.
    pub(crate) query: Option<u32>,
}

/// Takes a target apart. Its bytes are of class TARGET and fewer than 2^30.
pub(crate) fn split(target: &[u8], method: Method) -> Result<Parts, Error> {
    if method == Method::Connect {
        // authority-form is the only one that CONNECT may use, and no other method may.
        return match check_authority(target, Port::Needed) {
            true => Ok(Parts {
                authority: (0, target.len() as u32),
                ..Parts::default()
            }),
            false => Err(Error::InvalidTarget),
        };
    }
    match target {
        [b'/', ..] => Ok(path_and_query(target, 0, (0, 0))),
        b"*" if method == Method::Options => Ok(Parts {
            path: (0, 1),
            ..Parts::default()
        }),
        _ => absolute(target),
    }
}

fn absolute(target: &[u8]) -> Result<Parts, Error> {
    let start = if starts_with_ignore_case(target, b"http://") {
        7
    } else if starts_with_ignore_case(target, b"https://") {
        8
    } else {
        return Err(Error::InvalidTarget);
    };
    let end = target[start..]
        .iter()
        .position(|&byte| byte == b'/' || byte == b'?')
        .map_or(target.len(), |len| start + len);
    // The host of an `http` URI may not be empty, and user information in it is to be treated as
    // an error (RFC 9110 §4.2.1 and §4.2.4).
    if !check_authority(&target[start..end], Port::Allowed) {
        return Err(Error::InvalidTarget);
    }
    Ok(path_and_query(target, end, (start as u32, end as u32)))
}

fn path_and_query(target: &[u8], path: usize, authority: (u32, u32)) -> Parts {
    match memchr::memchr(b'?', &target[path..]) {
        None => Parts {
            authority,
            path: (path as u32, target.len() as u32),
            query: None,
        },
        Some(len) => Parts {
            authority,
            path: (path as u32, (path + len) as u32),
            query: Some((path + len + 1) as u32),
        },
    }
}

fn starts_with_ignore_case(text: &[u8], start: &[u8]) -> bool {
    text.len() >= start.len() && text[..start.len()].eq_ignore_ascii_case(start)
}

/// Whether an authority must name its port.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Port {
    Allowed,
    Needed,
}

/// Whether `text` is `uri-host [":" port]` with a host that isn't empty (RFC 3986 §3.2.2).
///
/// Of the IP literals only IPv6 addresses pass: there is no later version yet. A port is at most
/// 65 535; with [`Port::Allowed`] it may be empty, as RFC 3986 has it.
pub(crate) fn check_authority(text: &[u8], port: Port) -> bool {
    let host_end = match text.first() {
        Some(b'[') => {
            let Some(end) = text.iter().position(|&byte| byte == b']') else {
                return false;
            };
            if !is_ipv6(&text[1..end]) {
                return false;
            }
            end + 1
        }
        _ => match reg_name_end(text) {
            Some(end) if end > 0 => end,
            _ => return false,
        },
    };
    match &text[host_end..] {
        [] => port == Port::Allowed,
        [b':'] => port == Port::Allowed,
        [b':', digits @ ..] => is_port(digits),
        _ => false,
    }
}

/// Where the registered name (or IPv4 address) at the start of `text` ends; `None` if it holds a
/// `%` without two hexadecimal digits.
fn reg_name_end(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at = bytes::skip(text, at, REG_NAME);
        if text.get(at) != Some(&b'%') {
            return Some(at);
        }
        match text.get(at + 1..at + 3) {
            Some(digits) if digits.iter().all(u8::is_ascii_hexdigit) => at += 3,
            _ => return None,
        }
    }
}

fn is_ipv6(text: &[u8]) -> bool {
    core::str::from_utf8(text).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok())
}

fn is_port(digits: &[u8]) -> bool {
    // Leading zeros are allowed by the grammar, so the value counts and not the number of digits.
    let mut port = 0_u32;
    for &digit in digits {
        if !digit.is_ascii_digit() {
            return false;
        }
        port = port * 10 + u32::from(digit - b'0');
        if port > 65_535 {
            return false;
        }
    }
    true
}
