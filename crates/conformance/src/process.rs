//! Another process, how it ended, and waiting for it no longer than one wants to.

use std::fmt;
use std::process::{Child, ExitStatus};
use std::time::Duration;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Code(i32),
    Signal(i32),
    /// It had not ended in time and was killed.
    Killed,
}

const SIGNALS: &[(i32, &str)] = &[
    (1, "SIGHUP"),
    (2, "SIGINT"),
    (3, "SIGQUIT"),
    (4, "SIGILL"),
    (5, "SIGTRAP"),
    (6, "SIGABRT"),
    (8, "SIGFPE"),
    (9, "SIGKILL"),
    (11, "SIGSEGV"),
    (13, "SIGPIPE"),
    (14, "SIGALRM"),
    (15, "SIGTERM"),
];

/// Numbers that differ between systems.
#[cfg(target_os = "linux")]
const MORE_SIGNALS: &[(i32, &str)] = &[(7, "SIGBUS"), (24, "SIGXCPU"), (25, "SIGXFSZ"), (31, "SIGSYS")];
#[cfg(not(target_os = "linux"))]
const MORE_SIGNALS: &[(i32, &str)] = &[(10, "SIGBUS"), (24, "SIGXCPU"), (25, "SIGXFSZ"), (12, "SIGSYS")];

impl End {
    pub fn is_success(self) -> bool {
        self == End::Code(0)
    }
    fn of(status: ExitStatus) -> End {
        #[cfg(unix)]
        if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
            return End::Signal(signal);
        }
        End::Code(status.code().unwrap_or(-1))
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Code(code) => write!(f, "the process ended with exit code {code}"),
            End::Killed => f.write_str("the process was killed, because it did not end"),
            End::Signal(n) => {
                let name = SIGNALS.iter().chain(MORE_SIGNALS).find(|(number, _)| number == n);
                write!(f, "the process ended by signal {n}{}", name.map_or(String::new(), |(_, s)| format!(" ({s})")))
            }
        }
    }
}

/// Waits for a process. `is_late` is asked now and then; when it says so, the process is killed.
pub fn wait(child: &mut Child, mut is_late: impl FnMut() -> bool) -> std::io::Result<End> {
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(End::of(status));
        }
        if is_late() {
            // It may have ended by itself just now.
            let _ = child.kill();
            child.wait()?;
            return Ok(End::Killed);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// The last lines that a process wrote, for a message.
pub fn last_words(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|l| !l.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(4)..].join("\n");
    let from = last.char_indices().rev().nth(600).map_or(0, |(i, _)| i);
    last[from..].to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::time::Instant;

    fn end_of(script: &str, limit: Duration) -> String {
        let mut child = Command::new("sh").args(["-c", script]).spawn().unwrap();
        let start = Instant::now();
        wait(&mut child, || start.elapsed() > limit).unwrap().to_string()
    }

    #[test]
    fn signals_codes_and_delays_are_told_apart() {
        let long = Duration::from_secs(30);
        assert_eq!(end_of("kill -SEGV $$", long), "the process ended by signal 11 (SIGSEGV)");
        assert_eq!(end_of("kill -BUS $$", long), "the process ended by signal 7 (SIGBUS)");
        assert_eq!(end_of("exit 3", long), "the process ended with exit code 3");
        assert!(end_of("exec sleep 30", Duration::from_millis(50)).contains("was killed"));
    }

    #[test]
    fn last_words_are_few() {
        assert_eq!(last_words("a\n\nb\nc\nd\ne\n"), "b\nc\nd\ne");
        assert!(last_words(&"ä".repeat(5000)).len() < 2500);
    }
}
