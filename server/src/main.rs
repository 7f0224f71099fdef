//! The binary `pumice`: a tephra event store, served over its wire protocol and over HTTP/1.1.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use pumice::{Config, Endpoint, Handle, Local, Server, StoreConfig};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tracing_subscriber::EnvFilter;

/// The exit code after a second signal, which is that of a process that SIGTERM ended.
const EXIT_AT_ONCE: i32 = 143;

/// A repeat within this time is the first signal once more: who ends a process and its group, as `timeout` does, sends
/// two.
const SAME_SIGNAL: Duration = Duration::from_millis(100);

/// Serves a tephra event store over its wire protocol and over HTTP/1.1.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Flags {
    /// Where to listen; may be given several times: HOST:PORT for both protocols, http://HOST:PORT or frames://HOST:PORT
    /// for one, unix:PATH for a Unix socket.
    #[arg(
        short,
        long,
        visible_alias = "bind",
        value_name = "ADDRESS",
        default_value = "127.0.0.1:9000"
    )]
    listen: Vec<Endpoint>,

    /// Directory of the log and its indexes; made if it isn't there.
    #[arg(short, long, value_name = "DIR", default_value = "pumice-data")]
    data_dir: PathBuf,

    /// Event-loop threads; 0 for one per core.
    #[arg(short, long, value_name = "COUNT", default_value_t = 0)]
    workers: usize,

    /// What to log, such as `info` or `pumice=debug`.
    #[arg(
        long,
        value_name = "FILTER",
        env = "PUMICE_LOG",
        default_value = "info"
    )]
    log: String,
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    match serve(flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing can be done about a stderr that is closed.
            let _ = writeln!(io::stderr(), "pumice: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Why the server couldn't start, or ended.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("cannot read the log filter: {0}")]
    Filter(#[from] tracing_subscriber::filter::ParseError),
    #[error(transparent)]
    Config(#[from] pumice::ConfigError),
    #[error(transparent)]
    Open(#[from] pumice::OpenError),
    #[error(transparent)]
    Serve(#[from] pumice::StoreServeError),
    #[error("{0}")]
    Io(#[from] io::Error),
}

fn serve(flags: Flags) -> Result<(), Error> {
    let filter = EnvFilter::builder().parse(&flags.log)?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(io::stderr().is_terminal())
        .with_writer(io::stderr)
        .init();
    let descriptors = raise_descriptor_limit();
    let store_config = StoreConfig {
        data_dir: flags.data_dir,
        ..StoreConfig::default()
    };
    let server = Server::new(Config {
        workers: flags.workers,
        ..Config::default()
    })?;
    let store = Arc::new(Local::open(&store_config, server.workers())?);
    let data_dir = store_config.data_dir.display().to_string();
    let server = server.store(&flags.listen, store, store_config)?;
    end_on_signal(server.handle())?;
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        data_dir,
        workers = server.workers(),
        descriptors,
        "serving"
    );
    let mut out = io::stdout().lock();
    for address in server.addresses() {
        // Whoever started this without a stdout doesn't want to know.
        let _ = writeln!(out, "listening on {address}");
    }
    let _ = out.flush();
    drop(out);
    server.run()?;
    tracing::info!("stopped");
    Ok(())
}

/// Raises the soft limit on open files to the hard one, and returns it: the default is 1 024 on many systems.
fn raise_descriptor_limit() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let limit = if setrlimit(Resource::Nofile, raised).is_ok() {
        raised
    } else {
        limit
    };
    limit.current.unwrap_or(u64::MAX)
}

/// The first SIGTERM or SIGINT drains and stops; the second ends the process at once.
fn end_on_signal(handle: Handle) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    let watch = move || {
        let mut signals = signals.forever();
        if signals.next().is_none() {
            return;
        }
        let first = Instant::now();
        tracing::info!("stopping; a second signal ends the process at once");
        handle.stop();
        if signals.any(|_| first.elapsed() >= SAME_SIGNAL) {
            std::process::exit(EXIT_AT_ONCE);
        }
    };
    thread::Builder::new().name("signals".into()).spawn(watch)?;
    Ok(())
}
