//! A tephra event store on the network twice, over its wire protocol and HTTP/1.1, from a few event loops.
