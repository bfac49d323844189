//! What this kernel has and lacks of what the kernel engine needs, each with a remedy.

use std::fs;
use std::io;

use rustix::net::{AddressFamily, SocketType, ipproto, socket};
use rustix::thread::CapabilitySet;
use serde::Serialize;

use crate::file_system::{self, Seen};
use crate::paths::Paths;
use crate::{objects, sysctl};

/// The oldest kernel that the programs are written for.
const OLDEST: (u32, u32) = (6, 1);

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It is there.
    Good,
    /// It is not, and things work in part.
    Warning,
    /// It is not, and nothing works without.
    Missing,
}

/// One line of the diagnosis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at.
    pub name: &'static str,
    /// What was found.
    pub state: State,
    /// In words.
    pub detail: String,
    /// What to do; nothing where all is good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Check {
    fn good(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, state: State::Good, detail: detail.into(), remedy: None }
    }

    fn warning(name: &'static str, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name, state: State::Warning, detail: detail.into(), remedy: Some(remedy.into()) }
    }

    fn missing(name: &'static str, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name, state: State::Missing, detail: detail.into(), remedy: Some(remedy.into()) }
    }
}

/// Looks at everything, in the order in which things build on each other.
pub fn examine() -> Vec<Check> {
    let mut checks = vec![
        kernel_release(),
        multipath(),
        privileges(),
        bpf(),
        types(),
        struct_ops(),
        compiler(),
        file_system(),
        default_controller(),
    ];
    checks.extend(paths());
    checks
}

/// What keeps this process from loading controllers; nothing if it may try.
#[cfg(feature = "kernel")]
pub(crate) fn obstacle() -> Option<Check> {
    first_bad(&[kernel_release, multipath, bpf, types, struct_ops, privileges])
}

/// What keeps this process from looking at controllers that are loaded, changing or unloading them: Multipath TCP may be off.
#[cfg(feature = "kernel")]
pub(crate) fn obstacle_to_those_loaded() -> Option<Check> {
    first_bad(&[kernel_release, bpf, types, privileges])
}

#[cfg(feature = "kernel")]
fn first_bad(checks: &[fn() -> Check]) -> Option<Check> {
    checks.iter().map(|check| check()).find(|check| check.state != State::Good)
}

/// The first two numbers of a release such as `6.1.0-44-amd64`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn kernel_release() -> Check {
    kernel(rustix::system::uname().release().to_str().unwrap_or_default())
}

fn kernel(release: &str) -> Check {
    let name = "kernel";
    let (major, minor) = OLDEST;
    match version(release) {
        Some(found) if found >= OLDEST => Check::good(name, format!("Linux {release}")),
        _ => Check::missing(
            name,
            format!("Linux {release} is older than {major}.{minor}, the oldest that the programs are made for"),
            format!("boot Linux {major}.{minor} or later (Debian 12 has it)"),
        ),
    }
}

fn multipath() -> Check {
    let name = "Multipath TCP";
    match socket(AddressFamily::INET, SocketType::STREAM, Some(ipproto::MPTCP)) {
        Ok(_) => Check::good(name, "sockets can be made"),
        Err(_) if sysctl::number(&["net", "mptcp", "enabled"]) == Some(0) => {
            Check::missing(name, "switched off", "sysctl -w net.mptcp.enabled=1")
        }
        Err(error) => Check::missing(
            name,
            format!("the kernel makes no such socket ({error})"),
            "use a kernel built with CONFIG_MPTCP (Debian's, Ubuntu's and Fedora's are)",
        ),
    }
}

fn privileges() -> Check {
    let name = "privileges";
    let needed = [
        (CapabilitySet::BPF, "CAP_BPF"),
        (CapabilitySet::NET_ADMIN, "CAP_NET_ADMIN"),
        (CapabilitySet::SYS_ADMIN, "CAP_SYS_ADMIN"),
    ];
    let held = rustix::thread::capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
    let lacking: Vec<&str> = needed.iter().filter(|(one, _)| !held.contains(*one)).map(|(_, name)| *name).collect();
    if lacking.is_empty() {
        return Check::good(name, "controllers can be loaded and paths set");
    }
    let detail = format!("this process lacks {}: it can neither load controllers nor set paths", lacking.join(", "));
    Check::warning(name, detail, "run it as root (`run` and `paths` work without)")
}

/// Whether the kernel has the system call at all: it refuses an unknown command as invalid or forbidden.
fn bpf() -> Check {
    let name = "BPF";
    let built = "use a kernel built with CONFIG_BPF_SYSCALL and CONFIG_BPF_JIT";
    if sysctl::read(&["kernel", "unprivileged_bpf_disabled"]).is_none() {
        return Check::missing(name, "the kernel has no bpf system call", built);
    }
    if sysctl::number(&["net", "core", "bpf_jit_enable"]) == Some(0) {
        let detail = "the compiler to machine code is off, and programs that take callbacks need it";
        return Check::missing(name, detail, "sysctl -w net.core.bpf_jit_enable=1");
    }
    // In this mode programs may not read the kernel's memory, which finding a connection takes.
    let lockdown = fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    if lockdown.contains("[confidentiality]") {
        let remedy = "boot without lockdown=confidentiality (lockdown=integrity works)";
        return Check::missing(name, "the kernel is locked down for confidentiality", remedy);
    }
    Check::good(name, "compiled to machine code")
}

fn types() -> Check {
    let name = "type information";
    match fs::metadata("/sys/kernel/btf/vmlinux") {
        Ok(_) => Check::good(name, "/sys/kernel/btf/vmlinux"),
        Err(error) => Check::missing(
            name,
            format!("/sys/kernel/btf/vmlinux: {error}"),
            "use a kernel built with CONFIG_DEBUG_INFO_BTF (Debian's, Ubuntu's and Fedora's are)",
        ),
    }
}

fn struct_ops() -> Check {
    let name = "congestion controllers in BPF";
    let needle = b"bpf_struct_ops_tcp_congestion_ops";
    let types = fs::read("/sys/kernel/btf/vmlinux").unwrap_or_default();
    if memchr::memmem::find(&types, needle).is_some() {
        return Check::good(name, "the kernel takes them");
    }
    let remedy = "use a kernel built with CONFIG_INET, CONFIG_BPF_JIT and CONFIG_DEBUG_INFO_BTF";
    Check::missing(name, "the kernel does not know of them", remedy)
}

fn compiler() -> Check {
    let name = "programs";
    if objects().next().is_some() {
        return Check::good(name, "in this binary");
    }
    Check::missing(
        name,
        "this binary was built without them",
        "apt-get install clang libbpf-dev libelf-dev zlib1g-dev, then build with --features kernel",
    )
}

fn file_system() -> Check {
    let name = "BPF file system";
    match file_system::look() {
        Ok(Seen::Mounted) => Check::good(name, "mounted on /sys/fs/bpf"),
        Ok(Seen::Hidden) => Check::warning(
            name,
            "hidden from this process: what is loaded cannot be known, and nothing be loaded",
            file_system::REVEAL,
        ),
        Ok(Seen::Missing) => Check::warning(
            name,
            "not mounted on /sys/fs/bpf; `manypath kernel load` mounts it until the next boot",
            "mount -t bpf bpf /sys/fs/bpf",
        ),
        Err(error) => Check::warning(name, format!("/sys/fs/bpf: {error}"), "run it as root"),
    }
}

fn default_controller() -> Check {
    let name = "controllers";
    let read = |setting| sysctl::read(&["net", "ipv4", setting]).unwrap_or_default();
    let available = read("tcp_available_congestion_control");
    Check::good(name, format!("{available} (default {})", read("tcp_congestion_control")))
}

fn paths() -> Vec<Check> {
    let name = "paths";
    match Paths::read() {
        Ok(paths) => {
            let findings = paths.findings();
            if findings.is_empty() {
                return vec![Check::good(name, format!("{} endpoints, one subflow a path", paths.endpoints.len()))];
            }
            findings.into_iter().map(|found| Check::warning(name, found.what, found.remedy)).collect()
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => vec![Check::warning(name, format!("cannot be read: {error}"), "see `ip mptcp endpoint`")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_by_number() {
        assert_eq!(version("6.1.0-44-cloud-amd64"), Some((6, 1)));
        assert_eq!(version("6.18.44-fc-v669"), Some((6, 18)));
        assert_eq!(kernel("6.1.0").state, State::Good);
        assert_eq!(kernel("10.0.0").state, State::Good);
        assert_eq!(kernel("5.15.0").state, State::Missing);
        assert_eq!(kernel("nonsense").state, State::Missing);
    }

    #[test]
    fn whatever_is_not_good_has_a_remedy() {
        for check in examine() {
            assert_eq!(check.remedy.is_none(), check.state == State::Good, "{check:?}");
        }
    }
}
