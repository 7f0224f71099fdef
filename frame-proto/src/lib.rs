//! Length-prefixed protobuf frames, and the tephra.v1 messages.
