//! Traces recorded by hand, in the format `purgatorio-trace/1`.

use crate::json::quote;
use crate::Promises;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

/// Writes a trace. All methods may be called by several threads at once; events are kept in memory until [`close`].
///
/// [`close`]: Recorder::close
#[derive(Debug)]
pub struct Recorder {
    begin: Instant,
    file: Mutex<BufWriter<File>>,
    events: Mutex<Vec<String>>,
}

impl Recorder {
    /// Opens a trace; `recorded` names the functions that are always recorded.
    pub fn to_file(path: &Path, promises: &Promises, run: &str, recorded: &[&str]) -> io::Result<Self> {
        let mut line = String::from("{\"kind\":\"header\",\"format\":\"purgatorio-trace/1\",\"run\":");
        quote(&mut line, run);
        line.push_str(",\"implementation\":{\"name\":");
        quote(&mut line, promises.name);
        line.push_str(",\"version\":");
        quote(&mut line, promises.version);
        line.push_str(",\"language\":\"Rust\"},\"profile\":");
        quote(&mut line, promises.profile);
        let early = promises.early_real_ns.or(promises.early_ns);
        let timer = [
            ("tick_ns", promises.tick_ns),
            ("wheel_size", promises.wheel_size),
            ("early_ns", early),
            ("late_ns", promises.late_ns),
        ];
        let constants: Vec<String> =
            timer.iter().filter_map(|(name, value)| value.map(|value| format!("\"{name}\":{value}"))).collect();
        write!(line, ",\"timer\":{{{}}}", constants.join(",")).expect("into a text");
        if let Some(interval) = promises.purge_interval {
            write!(line, ",\"purge_interval\":{interval}").expect("into a text");
        }
        line.push_str(",\"clock\":{\"id\":\"monotonic\",\"unit\":\"ns\"},\"recorded\":[");
        for (index, one) in recorded.iter().enumerate() {
            line.push_str(if index == 0 { "" } else { "," });
            quote(&mut line, one);
        }
        line.push_str("]}\n");
        let mut file = BufWriter::new(File::create(path)?);
        file.write_all(line.as_bytes())?;
        Ok(Recorder { begin: Instant::now(), file: Mutex::new(file), events: Mutex::default() })
    }

    /// Nanoseconds of the trace's clock.
    pub fn now_ns(&self) -> i64 {
        self.begin.elapsed().as_nanos() as i64
    }

    /// Records that `f` starts; `more` are further fields as JSON, such as `,"delay_ns":5`. Returns the number of the call.
    pub fn call(&self, f: &str, id: &str, more: &str) -> i64 {
        self.event("call", f, id, more)
    }

    /// Records that the call `c` has ended.
    pub fn ret(&self, f: &str, c: i64, id: &str, more: &str) {
        self.event("ret", f, id, &format!(",\"c\":{c}{more}"));
    }

    /// Records a point.
    pub fn at(&self, f: &str, id: &str, more: &str) {
        self.event("at", f, id, more);
    }

    fn event(&self, ph: &str, f: &str, id: &str, more: &str) -> i64 {
        let thread = std::thread::current();
        let name = thread.name().map_or_else(|| format!("{:?}", thread.id()), String::from);
        let t = self.now_ns();
        let mut events = self.events.lock().expect("no thread panics with the lock");
        let i = events.len() as i64;
        let mut line = format!("{{\"kind\":\"event\",\"i\":{i},\"t\":{t},\"ph\":\"{ph}\",\"f\":\"{f}\",\"th\":");
        quote(&mut line, &name);
        if !id.is_empty() {
            line.push_str(",\"id\":");
            quote(&mut line, id);
        }
        line.push_str(more);
        line.push_str("}\n");
        events.push(line);
        i
    }

    /// Writes the events and the end record.
    pub fn close(self) -> io::Result<()> {
        let mut file = self.file.into_inner().expect("no thread panics with the lock");
        let events = self.events.into_inner().expect("no thread panics with the lock");
        for line in &events {
            file.write_all(line.as_bytes())?;
        }
        writeln!(file, "{{\"kind\":\"end\",\"events\":{},\"dropped\":0}}", events.len())?;
        file.flush()
    }
}
