//! Kernel settings, read where sysctl(8) reads them.

use std::fs;

/// The value of a setting such as `net.mptcp.enabled`; `None` if this kernel has no such setting. Names of interfaces may
/// contain dots, so names come in parts.
pub(crate) fn read(parts: &[&str]) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/sys/{}", parts.join("/"))).ok()?;
    Some(text.trim().to_owned())
}

/// The value as a number.
pub(crate) fn number(parts: &[&str]) -> Option<i64> {
    read(parts)?.parse().ok()
}
