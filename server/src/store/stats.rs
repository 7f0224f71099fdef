//! The store's size on disk, as the statistics show it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Reading every file's metadata per request would let anyone keep the disk busy.
const MEASURE_EVERY: Duration = Duration::from_secs(1);

/// Files of the data directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DiskUse {
    pub(crate) segments: u64,
    pub(crate) bytes: u64,
}

/// The last measurement.
#[derive(Debug)]
pub(crate) struct DiskGauge {
    dir: PathBuf,
    last: Mutex<Option<(Instant, DiskUse)>>,
}

impl DiskGauge {
    pub(crate) fn new(dir: PathBuf) -> Self {
        Self {
            dir,
            last: Mutex::new(None),
        }
    }

    /// The last measurement, if it is fresh enough.
    pub(crate) fn fresh(&self, now: Instant) -> Option<DiskUse> {
        let (at, disk) = (*self.last.lock())?;
        (now.saturating_duration_since(at) < MEASURE_EVERY).then_some(disk)
    }

    /// The last measurement, however old.
    pub(crate) fn last(&self) -> DiskUse {
        self.last.lock().map(|(_, disk)| disk).unwrap_or_default()
    }

    /// Measures, unless somebody else just has. Blocks on the disk, so not for workers.
    pub(crate) fn measure(&self, now: Instant) -> DiskUse {
        if let Some(disk) = self.fresh(now) {
            return disk;
        }
        let disk = measure(&self.dir);
        *self.last.lock() = Some((now, disk));
        disk
    }
}

/// A directory that can't be read counts as empty: statistics are no reason to fail.
fn measure(dir: &Path) -> DiskUse {
    let mut disk = DiskUse::default();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        if metadata.is_file() {
            disk.bytes += metadata.len();
            disk.segments += u64::from(
                entry
                    .path()
                    .extension()
                    .is_some_and(|extension| extension == "log"),
            );
        }
    }
    disk
}
