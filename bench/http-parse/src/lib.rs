//! The requests that are measured, and the work that is done on each.

use pumice_http_parse::{BodyDecoder, Decoded, Head, HeadParser, Limits};

pub mod peers;

/// A browser's request of some 700 bytes: the one that picohttpparser and httparse measure with.
pub const BROWSER: &[u8] = b"\
GET /wp-content/uploads/2010/03/hello-kitty-darth-vader-pink.jpg HTTP/1.1\r\n\
Host: www.kittyhell.com\r\n\
User-Agent: Mozilla/5.0 (Macintosh; U; Intel Mac OS X 10.6; ja-JP-mac; rv:1.9.2.3) Gecko/20100401 Firefox/3.6.3 Pathtraq/0.9\r\n\
Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
Accept-Language: ja,en-us;q=0.7,en;q=0.3\r\n\
Accept-Encoding: gzip,deflate\r\n\
Accept-Charset: Shift_JIS,utf-8;q=0.7,*;q=0.7\r\n\
Keep-Alive: 115\r\n\
Connection: keep-alive\r\n\
Cookie: wp_ozh_wsa_visits=2; wp_ozh_wsa_visit_lasttime=xxxxxxxxxx; __utma=xxxxxxxxx.xxxxxxxxxx.xxxxxxxxxx.xxxxxxxxxx.xxxxxxxxxx.x; __utmz=xxxxxxxxx.xxxxxxxxxx.x.x.utmccn=(referral)|utmcsr=reader.livedoor.com|utmcct=/reader/|utmcmd=referral\r\n\r\n";

/// The least that a client sends: some 40 bytes.
pub const SHORT: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost:80\r\n\r\n";

/// What curl 7 sends.
pub const CURL: &[u8] = b"GET /v1/events HTTP/1.1\r\nHost: localhost:9000\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n\r\n";

/// What Chrome sends today.
pub const CHROME: &[u8] = b"\
GET /v1/stats?since=7 HTTP/1.1\r\n\
Host: localhost:9000\r\n\
Connection: keep-alive\r\n\
sec-ch-ua-platform: \"Linux\"\r\n\
User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 Safari/537.36\r\n\
sec-ch-ua: \"Not)A;Brand\";v=\"8\", \"Chromium\";v=\"138\", \"Google Chrome\";v=\"138\"\r\n\
sec-ch-ua-mobile: ?0\r\n\
Accept: */*\r\n\
Sec-Fetch-Site: same-origin\r\n\
Sec-Fetch-Mode: cors\r\n\
Sec-Fetch-Dest: empty\r\n\
Referer: http://localhost:9000/\r\n\
Accept-Encoding: gzip, deflate, br, zstd\r\n\
Accept-Language: en-US,en;q=0.9\r\n\r\n";

/// Everything that one connection keeps between requests.
#[derive(Default)]
pub struct State {
    parser: HeadParser,
    head: Head,
    limits: Limits,
}

impl State {
    /// Parses a head that is there as a whole.
    pub fn whole(&mut self, buf: &[u8]) -> usize {
        match self.parser.parse(buf, &self.limits, &mut self.head) {
            Ok(Some(len)) => len,
            other => panic!("{other:?}"),
        }
    }

    /// Parses a head that comes in pieces of `step` bytes.
    pub fn pieces(&mut self, buf: &[u8], step: usize) -> usize {
        let mut end = step;
        loop {
            let seen = &buf[..end.min(buf.len())];
            match self.parser.parse(seen, &self.limits, &mut self.head) {
                Ok(Some(len)) => return len,
                Ok(None) => end += step,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Decodes the body that follows `buf`'s head; gives its length.
    pub fn body(&mut self, buf: &[u8]) -> usize {
        let mut at = self.whole(buf);
        let mut decoder = BodyDecoder::new(self.head.body());
        let mut len = 0;
        loop {
            match decoder.decode(&buf[at..], &self.limits) {
                Ok(Decoded::Data { data, consumed }) => {
                    len += data.len();
                    at += consumed;
                }
                Ok(Decoded::End { .. }) => return len,
                other => panic!("{other:?}"),
            }
        }
    }
}
