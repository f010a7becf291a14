//! What processes cost: CPU time and memory from `/proc`, per process tree.
//!
//! A tree is a process with all its descendants, so Postgres counts with its backends. CPU of children that ended
//! and were waited for is in their parent's figures. A process that is gone counts as zero.

use std::collections::HashMap;
use std::fs;

/// CPU seconds used so far by the process and its descendants.
pub(super) fn cpu_seconds(root: u32) -> f64 {
    let ticks_per_second = rustix::param::clock_ticks_per_second() as f64;
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    let mut ticks: HashMap<u32, u64> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let Some((parent, used)) = stat(pid) else { continue };
        children.entry(parent).or_default().push(pid);
        ticks.insert(pid, used);
    }
    let mut sum = 0;
    let mut todo = vec![root];
    while let Some(pid) = todo.pop() {
        sum += ticks.get(&pid).copied().unwrap_or(0);
        todo.extend(children.get(&pid).into_iter().flatten());
    }
    sum as f64 / ticks_per_second
}

/// Parent, and ticks in user and kernel mode with those of waited-for children.
fn stat(pid: u32) -> Option<(u32, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold spaces and parentheses: fields are counted from the last one.
    let fields: Vec<&str> = text.get(text.rfind(')')? + 2..)?.split(' ').collect();
    let parent = fields.get(1)?.parse().ok()?;
    let used = fields.get(11..15)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum();
    Some((parent, used))
}

/// Resident memory of one process, in megabytes of a million bytes.
pub(super) fn resident_mb(pid: u32) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: f64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib * 1_024.0 / 1e6)
}

/// One line on the machine, for the head of the tables.
pub(super) fn machine() -> String {
    let field = |file: &str, name: &str| {
        let text = fs::read_to_string(file).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(name)).map(str::to_owned);
        line.and_then(|line| Some(line.split_once(':')?.1.trim().to_owned())).unwrap_or_else(|| "unknown".into())
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let memory_gib = field("/proc/meminfo", "MemTotal")
        .split(' ')
        .next()
        .and_then(|kib| kib.parse::<f64>().ok())
        .map_or(0.0, |kib| kib / 1_048_576.0);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{cores} cores ({}), {memory_gib:.0} GiB, Linux {}", field("/proc/cpuinfo", "model name"), kernel.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_used_cpu_and_memory() {
        let pid = std::process::id();
        assert!(stat(pid).is_some());
        assert!(cpu_seconds(pid) >= 0.0);
        assert!(resident_mb(pid).is_some_and(|megabytes| megabytes > 0.5));
    }
}
