//! What holds for every request and answer of tephra's protocol: the fast ways through them and
//! prost's generated code agree.

mod answers;
#[path = "../harness/mod.rs"]
mod harness;
mod requests;
