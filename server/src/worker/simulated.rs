//! The worker in a simulated world: the very code that serves, on a platform that cuts, delays and reorders.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use pumice_event_loop::sim::{Client, Clock, Faults, Flow, Sim, World, seeds};
use pumice_event_loop::{EventLoop, Sender};

use super::{Kit, Message, Scratch, Seat, Worker};
use crate::config::Config;
use crate::executor::{Executor, Job, JobContext, Lane};
use crate::handler::{Execution, Handler, Reply};
use crate::metrics::Counters;
use crate::proto::http::HttpTimeouts;
use crate::shared::{Room, Service, Shared, Site, Speaks};
use crate::{Request, Response};

const ADDR: &str = "10.0.0.1:80";

/// Keeps jobs until it is told to run one, so that a test decides when a handler is done.
#[derive(Debug)]
struct Later {
    jobs: Arc<Mutex<Vec<Job>>>,
}

impl Executor for Later {
    fn submit(&self, _: usize, _: Lane, job: Job) -> Result<(), Job> {
        self.jobs.lock().push(job);
        Ok(())
    }

    fn stop(&self, _: Instant) {}
}

/// Answers with the target; offloaded where it starts with `/slow`.
#[derive(Debug)]
struct Mirror;

impl Handler for Mirror {
    fn handle(&self, request: &Request<'_>, response: &mut Response) {
        let mut body = request.target().as_bytes().to_vec();
        body.extend_from_slice(request.body());
        response.bytes(body);
    }

    fn execution(&self, request: &Request<'_>) -> Execution {
        if request.path().starts_with("/slow") {
            Execution::Offloaded
        } else {
            Execution::Inline
        }
    }
}

/// A worker of a simulated world.
struct Rig {
    world: World,
    worker: Worker<Sim>,
    scratch: Scratch<pumice_event_loop::sim::SimStream>,
    mailbox: Sender<Message>,
    jobs: Arc<Mutex<Vec<Job>>>,
}

impl Rig {
    fn new(seed: u64, speaks: Speaks, service: Service, config: Config) -> Self {
        let world = World::new(seed);
        let config = config.resolve(1).expect("the settings can be used");
        let seat = Seat::new(EventLoop::with_platform(world.platform()).expect("a simulated loop"))
            .expect("mailboxes");
        let mailbox = seat.mailbox.sender();
        let jobs = Arc::<Mutex<Vec<Job>>>::default();
        let shared = Arc::new(Shared {
            http_timeouts: HttpTimeouts {
                head: config.head_timeout,
                body: config.body_timeout,
                idle: config.idle_timeout,
            },
            sites: vec![Site {
                speaks,
                service,
                is_loopback: false,
            }],
            counters: vec![Counters::default()],
            rooms: vec![Room::default()],
            executor: Box::new(Later {
                jobs: Arc::clone(&jobs),
            }),
            started: world.now(),
            #[cfg(feature = "store")]
            store: None,
            config,
        });
        let kit = Kit::new(
            0,
            shared,
            world.now(),
            #[cfg(feature = "store")]
            None,
        );
        let listener = world.listener(ADDR.parse().expect("an address"));
        let others = vec![(seat.newcomers.sender(), mailbox.clone())];
        let worker =
            Worker::new(seat, vec![(listener, 0)], others, kit).expect("a simulated listener");
        Self {
            world,
            worker,
            scratch: Scratch::default(),
            mailbox,
            jobs,
        }
    }

    fn connect(&self) -> Client {
        self.world
            .connect(ADDR.parse().expect("an address"))
            .expect("somebody listens")
    }

    /// One turn of the worker and one round of the network.
    fn step(&mut self) {
        let now = self.worker.events.now();
        self.worker
            .events
            .poll(Some(now))
            .expect("a simulated poll never fails");
        self.worker.turn(&mut self.scratch);
        self.worker.pool.check();
        self.world.step();
    }

    /// Runs the job that has waited for longest.
    fn run_a_job(&mut self) {
        let job = {
            let mut jobs = self.jobs.lock();
            if jobs.is_empty() {
                None
            } else {
                Some(jobs.remove(0))
            }
        };
        if let Some(job) = job {
            let done = job.run(&JobContext::default());
            self.mailbox
                .send(Message::JobDone(done))
                .expect("the worker is there");
        }
    }
}

/// The bodies of the answers in `bytes`, as far as they are whole.
fn bodies(mut bytes: &[u8]) -> Vec<String> {
    let mut bodies = Vec::new();
    while let Some(end) = memchr_head(bytes) {
        let head = std::str::from_utf8(&bytes[..end]).expect("a head is text");
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("Content-Length: "))
            .and_then(|length| length.parse::<usize>().ok())
            .expect("every answer has a length");
        let Some(body) = bytes.get(end..end + length) else {
            break;
        };
        bodies.push(String::from_utf8_lossy(body).into_owned());
        bytes = &bytes[end + length..];
    }
    bodies
}

fn memchr_head(bytes: &[u8]) -> Option<usize> {
    bytes
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .map(|at| at + 4)
}

#[test]
fn pipelined_requests_are_answered_in_order_whatever_the_world_does() {
    for seed in seeds(20) {
        let mut rig = Rig::new(
            seed,
            Speaks::Http,
            Service::Handler(Arc::new(Mirror)),
            Config {
                outbox_bytes_max: 4_096,
                ..Config::default()
            },
        );
        // Reads that fill the buffer leave readiness behind, which nobody reports again.
        rig.worker.kit.read_buf.truncate(512);
        let mut clients: Vec<_> = (0..5)
            .map(|client| {
                let mut connection = rig.connect();
                let mut expected = Vec::new();
                for request in 0..8 {
                    let path = if (request + client) % 3 == 0 {
                        "/slow"
                    } else {
                        "/fast"
                    };
                    let target = format!("{path}/{client}/{request}");
                    let body = "x".repeat(request * 2_311 % 6_000);
                    let text = format!(
                        "POST {target} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}",
                        body.len()
                    );
                    connection.send(text.as_bytes()).expect("it is open");
                    expected.push(target + &body);
                }
                (connection, Vec::new(), expected)
            })
            .collect();
        let mut steps = 0;
        while clients
            .iter()
            .any(|(_, answers, expected)| bodies(answers).len() < expected.len())
        {
            rig.step();
            if steps % 3 == 0 {
                rig.run_a_job();
            }
            for (client, answers, _) in &mut clients {
                client.receive(answers).expect("nobody resets");
            }
            steps += 1;
            assert!(steps < 100_000, "the answers don't come");
        }
        for (_, answers, expected) in clients {
            assert_eq!(bodies(&answers), expected);
        }
    }
}

#[test]
fn every_idle_connection_is_closed_when_its_time_is_over() {
    for seed in seeds(10) {
        let config = Config {
            idle_timeout: Duration::from_secs(10),
            ..Config::default()
        };
        let mut rig = Rig::new(
            seed,
            Speaks::Http,
            Service::Handler(Arc::new(Mirror)),
            config,
        );
        rig.world.set_clock(Clock::Manual);
        let mut clients: Vec<_> = (0..20).map(|_| rig.connect()).collect();
        let mut steps = 0;
        while rig.worker.pool.len() < clients.len() {
            rig.step();
            steps += 1;
            assert!(steps < 100_000, "the clients aren't accepted");
        }
        rig.world.advance(Duration::from_secs(11));
        rig.step();
        assert_eq!(rig.worker.pool.len(), 0, "all are due in one pass");
        rig.world.settle();
        for client in &mut clients {
            assert_eq!(
                client.receive(&mut Vec::new()).expect("nobody resets"),
                Flow::Ended
            );
        }
    }
}

/// Bytes that come in time keep a body going, and requests a connection, for as long as they come.
#[test]
fn timers_start_anew_with_what_comes_and_close_when_nothing_does() {
    let (timeout, almost) = (Duration::from_secs(10), Duration::from_secs(9));
    let config = Config {
        head_timeout: timeout,
        body_timeout: timeout,
        idle_timeout: timeout,
        ..Config::default()
    };
    let mut rig = Rig::new(1, Speaks::Http, Service::Handler(Arc::new(Mirror)), config);
    rig.world.set_clock(Clock::Manual);
    rig.world.set_faults(Faults::calm());
    let mut client = rig.connect();
    let mut answers = Vec::new();
    let mut send = |rig: &mut Rig, bytes: &[u8]| {
        client.send(bytes).expect("it is open");
        for _ in 0..5 {
            rig.step();
            client.receive(&mut answers).expect("nobody resets");
        }
        bodies(&answers)
    };
    for request in 1..=10 {
        let done = send(&mut rig, b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(done.len(), request);
        rig.world.advance(almost);
    }
    let head = b"POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n";
    send(&mut rig, head);
    for byte in b"012345678" {
        rig.world.advance(almost);
        assert_eq!(send(&mut rig, &[*byte]).len(), 10);
    }
    rig.world.advance(almost);
    assert_eq!(send(&mut rig, b"9")[10], "/b0123456789");
    // The same again, but for the last byte.
    send(&mut rig, head);
    send(&mut rig, b"012345678");
    rig.world.advance(timeout + Duration::from_secs(1));
    let answers = send(&mut rig, b"");
    assert_eq!(answers[11..], ["the request took too long\n"]);
}

/// A client that takes a long answer slowly isn't asked for more meanwhile, and what it has begun to ask isn't read.
#[test]
fn only_the_write_timer_runs_while_an_answer_is_being_taken() {
    let (timeout, second) = (Duration::from_secs(10), Duration::from_secs(1));
    let config = Config {
        head_timeout: timeout,
        body_timeout: timeout,
        idle_timeout: timeout,
        outbox_bytes_max: 4_096,
        ..Config::default()
    };
    let body = "x".repeat(300_000);
    let long = format!(
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    for (begun, rest) in [
        ("", ""),
        ("GET /fast HTTP/1.1\r\nHo", "st: a\r\n\r\n"),
        (
            "POST /fast HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nh",
            "i",
        ),
    ] {
        let mut rig = Rig::new(
            1,
            Speaks::Http,
            Service::Handler(Arc::new(Mirror)),
            config.clone(),
        );
        rig.world.set_clock(Clock::Manual);
        rig.world.set_faults(Faults {
            buffer_bytes_max: 4_096,
            ..Faults::calm()
        });
        let mut client = rig.connect();
        let mut answers = Vec::new();
        client.send(long.as_bytes()).expect("it is open");
        while client.unsent() > 0 {
            rig.step();
        }
        client.send(begun.as_bytes()).expect("it is open");
        let start = rig.world.elapsed();
        while bodies(&answers).is_empty() {
            rig.world.advance(second);
            rig.step();
            let flow = client.receive(&mut answers).expect("nobody resets");
            assert_eq!(flow, Flow::Open, "it was closed behind {begun:?}");
        }
        assert!(
            rig.world.elapsed() - start > timeout * 2,
            "that was no slow client"
        );
        // From now on the other timers run.
        rig.world.advance(timeout - second);
        rig.step();
        client.send(rest.as_bytes()).expect("it is open");
        for _ in 0..10 {
            rig.step();
            client.receive(&mut answers).expect("nobody resets");
        }
        let expected = usize::from(!rest.is_empty());
        assert_eq!(bodies(&answers).len(), 1 + expected, "behind {begun:?}");
        rig.world.advance(timeout + second);
        rig.step();
        assert_eq!(rig.worker.pool.len(), 0, "behind {begun:?}");
    }
}

#[test]
fn frames_come_back_in_order_whatever_the_world_does() {
    let echo = |payload: &[u8], reply: &mut Reply<'_>| reply.send(payload);
    for seed in seeds(15) {
        let mut rig = Rig::new(
            seed,
            Speaks::Frames,
            Service::Frames(Arc::new(echo)),
            Config::default(),
        );
        let mut client = rig.connect();
        let mut sent = Vec::new();
        for len in [0_u8, 1, 200, 3, 255, 0, 90] {
            sent.extend_from_slice(&u32::from(len).to_be_bytes());
            sent.extend(std::iter::repeat_n(len, usize::from(len)));
        }
        client.send(&sent).expect("it is open");
        client.finish();
        let (mut received, mut steps) = (Vec::new(), 0);
        while client.receive(&mut received).expect("nobody resets") != Flow::Ended {
            rig.step();
            steps += 1;
            assert!(steps < 100_000, "the end doesn't come");
        }
        assert_eq!(received, sent);
    }
}
