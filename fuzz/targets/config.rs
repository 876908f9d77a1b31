//! Configurations of the service: a file and a variable of the environment become a plan, or a one-line error.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use pointsman_fuzz::{check_message, prepare, scratch};
use pointsman_server::Limits;
use pointsman_server::config::Config;

static FILE: LazyLock<PathBuf> = LazyLock::new(|| scratch("pointsman.toml"));

// The text up to a NUL character is the file; after it come the name and the value of a variable, with another one between them.
fuzz_target!(|data: &[u8]| {
    prepare();
    let mut parts = data.splitn(3, |byte| *byte == 0);
    std::fs::write(&*FILE, parts.next().unwrap_or_default()).expect("a scratch file");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let variable =
        parts.next().map(|name| (format!("POINTSMAN_{}", text(name)), text(parts.next().unwrap_or_default())));
    match Config::load(Some(&FILE), variable) {
        Ok(config) => {
            let limits = Limits::from(config.limits);
            assert!(limits.rows > 0 && limits.body > 0 && limits.upload > 0 && !limits.time.is_zero(), "{limits:?}");
            assert!(config.store.queue_rows > 0 && config.store.segment_megabytes > 0);
            let _ = config.check_exposure(false);
        }
        Err(error) => check_message(&error.to_string()),
    }
});
