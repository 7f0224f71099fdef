//! An event loop over mio: sockets, listeners, timers and a mailbox from other threads.
