//! The load generator: one thread, one epoll, signed requests made on the fly.
//!
//! Closed loop: each connection sends its next event when the last one is answered. Open loop: events are due at a
//! constant rate whatever the server does, and latency counts from when an event was due, so a stall is not hidden
//! by the load that waits for it. Costs a few microseconds an event, and reports what it cost.
//! Only loopback targets: this is no tool to aim at other people's servers.

mod connection;
mod report;
mod requests;
mod stream;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Args;
use hdrhistogram::Histogram;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};

use connection::{Answer, Connection, Progress, Verdict};
pub(crate) use report::Report;
use requests::{Chance, Template};
pub(crate) use stream::FIRST_CONTIGUOUS;
use stream::Stream;

/// How long answers may still come after the measured time.
const LINGER: Duration = Duration::from_secs(5);

#[derive(Args, Clone)]
pub(crate) struct Settings {
    /// The server's address, on this machine.
    #[arg(long)]
    target: SocketAddr,
    /// Where events are posted.
    #[arg(long, default_value = "/in/bench")]
    path: String,
    /// The secret to sign with.
    #[arg(long)]
    secret: String,
    /// Keep-alive connections.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Measured time, after the warm-up.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Time before measuring.
    #[arg(long, default_value_t = 1.0)]
    warmup: f64,
    /// Ends after this many new and repeated events, if the time is not over before.
    #[arg(long, default_value_t = u64::MAX)]
    count: u64,
    /// Open loop at this many events a second.
    #[arg(long)]
    rate: Option<f64>,
    /// Different resources.
    #[arg(long, default_value_t = 100_000)]
    resources: u64,
    /// First resource's number.
    #[arg(long, default_value_t = 0)]
    first_resource: u64,
    /// Takes the resources one after the other instead of by chance.
    #[arg(long)]
    walk: bool,
    /// Counts the versions of each resource from 1000000000000001, without gaps.
    #[arg(long)]
    contiguous: bool,
    /// Share of events that come out of their order; of contiguous versions.
    #[arg(long, default_value_t = 0.0, requires = "contiguous")]
    swapped: f64,
    /// Share of events that repeat one of the last 64 of their connection.
    #[arg(long, default_value_t = 0.1)]
    duplicates: f64,
    /// Seed of ids, resources and repeats; by default the time.
    #[arg(long)]
    seed: Option<u64>,
    /// Prints `measuring` when the warm-up is over, and the report as one line of JSON.
    #[arg(long)]
    json: bool,
}

/// One connection's request under way.
struct Flight {
    connection: Connection,
    /// When the request under way was sent or, in an open loop, due.
    since: Option<Instant>,
    waits_to_write: bool,
}

struct Loader<'a> {
    settings: &'a Settings,
    template: Template,
    chance: Chance,
    flights: Vec<Flight>,
    idle: Vec<usize>,
    epoll: rustix::fd::OwnedFd,
    stream: Stream,
    issued: u64,
    /// Latencies count when the event was sent or due at or after this time.
    measure_from: Instant,
    measure_to: Instant,
    histogram: Histogram<u64>,
    report: Report,
    last_error: Option<String>,
}

/// Runs the load and prints the report.
pub(crate) fn run(settings: &Settings) -> Result<(), String> {
    if !settings.target.ip().is_loopback() {
        return Err(format!("{} is not on this machine: only loopback targets are allowed", settings.target));
    }
    if settings.connections == 0 || settings.resources == 0 || settings.rate.is_some_and(|rate| rate <= 0.0) {
        return Err("--connections, --resources and --rate must be above zero".into());
    }
    let mut loader = Loader::new(settings)?;
    loader.drive()?;
    if let Some(error) = &loader.last_error {
        eprintln!("last broken connection: {error}");
    }
    if settings.json {
        println!("{}", serde_json::to_string(&loader.report).map_err(|error| error.to_string())?);
    } else {
        println!("{}", loader.report);
    }
    Ok(())
}

impl<'a> Loader<'a> {
    fn new(settings: &'a Settings) -> Result<Self, String> {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|error| error.to_string())?;
        let micros = since_epoch.as_micros() as u64;
        let template = Template::new(&settings.target.to_string(), &settings.path, &settings.secret)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|error| format!("epoll: {error}"))?;
        let mut flights = Vec::with_capacity(settings.connections);
        for index in 0..settings.connections {
            let connection = Connection::open(settings.target, template.len())
                .map_err(|error| format!("{}: {error}; is the server running?", settings.target))?;
            let data = epoll::EventData::new_u64(index as u64);
            epoll::add(&epoll, connection.socket(), data, epoll::EventFlags::IN)
                .map_err(|error| format!("epoll: {error}"))?;
            flights.push(Flight { connection, since: None, waits_to_write: false });
        }
        let measure_from = Instant::now() + Duration::from_secs_f64(settings.warmup);
        Ok(Self {
            chance: Chance::new(settings.seed.unwrap_or(micros)),
            idle: (0..settings.connections).rev().collect(),
            stream: Stream::new(settings, micros),
            issued: 0,
            measure_from,
            measure_to: measure_from + Duration::from_secs_f64(settings.seconds),
            histogram: Histogram::new_with_bounds(1_000, 600_000_000_000, 3).map_err(|error| error.to_string())?,
            report: empty_report(settings),
            last_error: None,
            settings,
            template,
            flights,
            epoll,
        })
    }

    fn drive(&mut self) -> Result<(), String> {
        let start = Instant::now();
        let mut events = Vec::<epoll::Event>::with_capacity(self.settings.connections.min(1_024));
        let mut cpu_from = None;
        let mut cpu_to = None;
        let mut ended_at = None;
        loop {
            let now = Instant::now();
            if cpu_from.is_none() && now >= self.measure_from {
                cpu_from = Some(cpu_nanos()?);
                if self.settings.json {
                    println!("measuring");
                }
            }
            let over = now >= self.measure_to || self.issued >= self.settings.count;
            if over && ended_at.is_none() {
                cpu_to = Some(cpu_nanos()?);
                if self.settings.json {
                    println!("measured");
                }
                ended_at = Some(now);
            }
            if let Some(ended_at) = ended_at
                && (self.idle.len() == self.flights.len() || now >= ended_at + LINGER)
            {
                break;
            }
            let wait = if over {
                Duration::from_millis(50)
            } else {
                let until = if cpu_from.is_none() { self.measure_from } else { self.measure_to };
                self.issue_due(start, now)?.unwrap_or(Duration::MAX).min(until.saturating_duration_since(now))
            };
            let timeout = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&timeout)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(format!("epoll: {error}")),
            }
            for event in &events {
                let index = event.data.u64() as usize;
                self.proceed(index, ended_at.is_some())?;
            }
        }
        let ended_at = ended_at.unwrap_or(start);
        let seconds = ended_at.saturating_duration_since(self.measure_from).as_secs_f64();
        self.finish(start, seconds, cpu_from.zip(cpu_to));
        Ok(())
    }

    /// Sends what is due on idle connections; says how long nothing is due, `None` when only an answer helps.
    fn issue_due(&mut self, start: Instant, now: Instant) -> Result<Option<Duration>, String> {
        let Some(rate) = self.settings.rate else {
            while let Some(index) = self.idle.pop() {
                self.start_request(index, Instant::now())?;
            }
            return Ok(None);
        };
        let due = (now.saturating_duration_since(start).as_secs_f64() * rate) as u64;
        while self.issued <= due {
            let Some(index) = self.idle.pop() else { return Ok(None) };
            let since = start + Duration::from_secs_f64(self.issued as f64 / rate);
            self.start_request(index, since)?;
        }
        let next = start + Duration::from_secs_f64(self.issued as f64 / rate);
        Ok(Some(next.saturating_duration_since(Instant::now())))
    }

    fn start_request(&mut self, index: usize, since: Instant) -> Result<(), String> {
        self.issued += 1;
        let flight = &mut self.flights[index];
        let recent = flight.connection.recent() as u64;
        let slot = if recent > 0 && self.chance.happens(self.settings.duplicates) {
            self.report.repeated += u64::from(since >= self.measure_from);
            self.chance.below(recent) as usize
        } else {
            let (resource, version) = self.stream.next(&mut self.chance);
            let (slot, bytes) = flight.connection.next_slot();
            self.template.write(bytes, &mut self.chance, resource, version);
            slot
        };
        flight.since = Some(since);
        match flight.connection.send(slot) {
            Ok(true) => Ok(()),
            Ok(false) => self.watch(index, true),
            Err(reason) => self.broken(index, reason),
        }
    }

    /// Something happened on a connection.
    fn proceed(&mut self, index: usize, ended: bool) -> Result<(), String> {
        let flight = &mut self.flights[index];
        if flight.waits_to_write {
            match flight.connection.flush() {
                Ok(true) => self.watch(index, false)?,
                Ok(false) => {}
                Err(reason) => return self.broken(index, reason),
            }
        }
        match self.flights[index].connection.read() {
            Progress::Waiting => Ok(()),
            Progress::Broken(reason) => self.broken(index, reason),
            Progress::Answered(answer) => self.answered(index, &answer, ended),
        }
    }

    fn answered(&mut self, index: usize, answer: &Answer, ended: bool) -> Result<(), String> {
        let now = Instant::now();
        let Some(since) = self.flights[index].since.take() else {
            return self.broken(index, "an answer that nobody asked for".into());
        };
        // A closed loop counts what was answered in the measured time, an open loop what was due in it.
        let counts = match self.settings.rate {
            Some(_) => since >= self.measure_from && since < self.measure_to,
            None => now >= self.measure_from && !ended,
        };
        if counts {
            self.histogram.saturating_record(now.saturating_duration_since(since).as_nanos() as u64);
            self.report.answered += 1;
            *self.report.statuses.entry(answer.status).or_default() += 1;
            if answer.status / 100 == 2 {
                *match answer.verdict {
                    Verdict::Applied => &mut self.report.applied,
                    Verdict::Duplicate => &mut self.report.duplicate,
                    Verdict::Stale => &mut self.report.stale,
                    Verdict::Other => &mut self.report.other,
                } += 1;
            }
        }
        if answer.closes {
            self.reopen(index)?;
        }
        if ended || self.settings.rate.is_some() || self.issued >= self.settings.count {
            self.idle.push(index);
            return Ok(());
        }
        self.start_request(index, now)
    }

    fn broken(&mut self, index: usize, reason: String) -> Result<(), String> {
        self.report.broken += 1;
        self.last_error = Some(reason);
        if self.report.broken > 10 * self.flights.len() as u64 + 100 {
            return Err(format!("too many broken connections, the last one: {:?}", self.last_error));
        }
        let was_under_way = self.flights[index].since.take().is_some();
        self.reopen(index)?;
        if was_under_way {
            self.idle.push(index);
        }
        Ok(())
    }

    fn reopen(&mut self, index: usize) -> Result<(), String> {
        let flight = &mut self.flights[index];
        flight.connection.reopen(self.settings.target).map_err(|error| format!("{}: {error}", self.settings.target))?;
        flight.waits_to_write = false;
        let data = epoll::EventData::new_u64(index as u64);
        epoll::add(&self.epoll, flight.connection.socket(), data, epoll::EventFlags::IN)
            .map_err(|error| format!("epoll: {error}"))
    }

    fn watch(&mut self, index: usize, write: bool) -> Result<(), String> {
        let flight = &mut self.flights[index];
        flight.waits_to_write = write;
        let flags = if write { epoll::EventFlags::IN | epoll::EventFlags::OUT } else { epoll::EventFlags::IN };
        let data = epoll::EventData::new_u64(index as u64);
        epoll::modify(&self.epoll, flight.connection.socket(), data, flags).map_err(|error| format!("epoll: {error}"))
    }

    fn finish(&mut self, start: Instant, seconds: f64, cpu: Option<(u64, u64)>) {
        let good = self.report.applied + self.report.duplicate + self.report.stale + self.report.other;
        self.report.seconds = seconds;
        if seconds > 0.0 {
            self.report.events_per_second = good as f64 / seconds;
            self.report.loader_cores = cpu.map_or(0.0, |(from, to)| (to - from) as f64 / 1e9 / seconds);
        }
        self.report.broken += (self.flights.len() - self.idle.len()) as u64;
        if let Some(rate) = self.settings.rate {
            let due = ((self.measure_to - start).as_secs_f64() * rate) as u64;
            self.report.unsent = due.min(self.settings.count).saturating_sub(self.issued);
        }
        let histogram = &self.histogram;
        self.report.latencies(histogram);
    }
}

fn empty_report(settings: &Settings) -> Report {
    Report {
        connections: settings.connections,
        rate: settings.rate,
        seconds: 0.0,
        answered: 0,
        events_per_second: 0.0,
        p50_ms: 0.0,
        p99_ms: 0.0,
        p999_ms: 0.0,
        max_ms: 0.0,
        loader_cores: 0.0,
        statuses: BTreeMap::new(),
        applied: 0,
        duplicate: 0,
        stale: 0,
        other: 0,
        repeated: 0,
        broken: 0,
        unsent: 0,
    }
}

/// CPU time of this thread, which is the only one.
fn cpu_nanos() -> Result<u64, String> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
