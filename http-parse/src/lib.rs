//! A strict, resumable HTTP/1.1 request parser that knows nothing of sockets.
