//! A handler for tests, and a gate that makes handlers wait for the test instead of for a time.

use std::sync::{Arc, Condvar, Mutex};

use pumice::{Config, Inline, Request, Response};

use super::{PATIENCE, TestServer, pattern};

/// `/hello`; `/echo`, the body back; `/bytes/N`, N bytes of [`pattern`] seeded with N; else 404.
pub(crate) fn app(request: &Request<'_>, response: &mut Response) {
    let path = request.path();
    if let Some(len) = path.strip_prefix("/bytes/") {
        let len = len.parse().expect("a number of bytes");
        return response.bytes(pattern(len, len as u32));
    }
    match path {
        "/hello" => response.text("hello\n"),
        "/echo" => response.bytes(request.body()),
        _ => response.status(404).text("not found\n"),
    }
}

/// [`app`] twice: on the worker, and on handler threads.
pub(crate) fn both(config: Config) -> [TestServer; 2] {
    [
        TestServer::http(config.clone(), Inline(app)),
        TestServer::http(config, app),
    ]
}

/// Handlers wait at it until the test opens it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gate {
    inner: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Debug, Default)]
struct State {
    is_open: bool,
    /// Let through once each, while the gate is shut.
    passes: usize,
    waiting: usize,
    arrived: usize,
}

impl Gate {
    /// Waits until the gate is open, or for one pass of [`Gate::let_one_through`].
    pub(crate) fn wait(&self) {
        let (state, changed) = &*self.inner;
        let mut state = state.lock().expect("nobody panics with it");
        state.arrived += 1;
        state.waiting += 1;
        changed.notify_all();
        let (mut state, ended) = changed
            .wait_timeout_while(state, PATIENCE, |state| !state.is_open && state.passes == 0)
            .expect("nobody panics with it");
        state.waiting -= 1;
        if !state.is_open {
            state.passes = state.passes.saturating_sub(1);
        }
        drop(state);
        assert!(!ended.timed_out(), "the test never opened the gate");
    }

    /// Waits until `count` have come to the gate since it was made.
    #[track_caller]
    pub(crate) fn wait_for_arrivals(&self, count: usize) {
        let (state, changed) = &*self.inner;
        let state = state.lock().expect("nobody panics with it");
        let (state, ended) = changed
            .wait_timeout_while(state, PATIENCE, |state| state.arrived < count)
            .expect("nobody panics with it");
        assert!(!ended.timed_out(), "only {} came", state.arrived);
    }

    /// How many wait now.
    pub(crate) fn waiting(&self) -> usize {
        self.inner.0.lock().expect("nobody panics with it").waiting
    }

    /// Lets everybody through, now and later.
    pub(crate) fn open(&self) {
        self.change(|state| state.is_open = true);
    }

    pub(crate) fn let_one_through(&self) {
        self.change(|state| state.passes += 1);
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let (state, changed) = &*self.inner;
        change(&mut state.lock().expect("nobody panics with it"));
        changed.notify_all();
    }
}
