//! `kernel`: programs over two paths, and what is refused. These tests need root, BPF and /dev/net/tun; without them they say that
//! they are skipped, and a machine that has everything skips nothing.

mod support;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use manypath_emu::tun::{Namespace, TunConfig, TunLinks};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use support::{Place, Said, manypath, run, wait_until};

const BYTES: usize = 6_000_000;
const URL: &str = "http://10.1.0.2:8000/served/file";

/// Says why this machine cannot run these tests, if it cannot.
fn obstacle() -> bool {
    let said = run(["kernel", "status", "--json"]);
    let why = match said.code {
        Some(0) if Path::new("/dev/net/tun").exists() => return false,
        Some(0) => "there is no /dev/net/tun".to_owned(),
        _ => said.err,
    };
    support::skip(&why);
    true
}

/// Whether a program is there; says so if it is not.
fn has(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output().unwrap().status.success();
    if !found {
        support::skip(&format!("{program} is not installed"));
    }
    found
}

/// A controller in the kernel under a name of this test's own, unloaded when dropped.
struct Loaded(String);

impl Loaded {
    fn new(test: &str) -> Self {
        let name = format!("c{}{test}", std::process::id() % 10_000_000);
        let said = run(["kernel", "load", "lia", "--as", &name]);
        assert_eq!((said.code, said.out.trim()), (Some(0), name.as_str()), "{}", said.err);
        Self(name)
    }

    /// Its connections now.
    fn connections(&self) -> Vec<Value> {
        let status = run(["kernel", "status", "--json"]).json();
        let ours = status.as_array().unwrap().iter().find(|controller| controller["kernel_name"] == self.0.as_str());
        ours.unwrap()["connections"].as_array().unwrap().clone()
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        run(["kernel", "unload", &self.0]);
    }
}

/// Two links of 20 Mbit/s.
fn two_links() -> TunLinks {
    let link = |name| format!("[[link]]\nname = \"{name}\"\nrate = \"20Mbit\"\ndelay = \"10ms\"\nqueue = \"100kB\"\n");
    let text = format!(
        "duration = \"10s\"\n{}{}[[connection]]\nname = \"c\"\ncc = \"reno\"\n\
         path = [{{ route = [\"link1\"] }}, {{ route = [\"link2\"] }}]\n",
        link("link1"),
        link("link2")
    );
    let scenario = manypath_scenario::parse(&text, "test.toml", Path::new(".")).unwrap();
    TunLinks::start(&TunConfig::from_scenario(&scenario, 7).unwrap()).unwrap()
}

/// Bytes that each path has delivered to the client.
fn received(links: &TunLinks) -> [u64; 2] {
    let stats = links.stats().unwrap();
    [0, 1].map(|path| stats.paths[path].backward.delivered.bytes.get())
}

/// A program in a namespace, ended when dropped.
struct Program(Child);

impl Program {
    fn start(namespace: &Namespace, command: Command) -> Self {
        Self(namespace.spawn(command).unwrap())
    }

    fn output(mut self) -> Said {
        let mut out = String::new();
        std::io::Read::read_to_string(&mut self.0.stdout.take().unwrap(), &mut out).unwrap();
        let code = self.0.wait().unwrap().code();
        Said { code, out, err: String::new() }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `kernel run` of a program.
fn kernel_run(controller: Option<&str>, words: &[&str]) -> Command {
    let cc: Vec<&str> = controller.into_iter().flat_map(|name| ["--cc", name]).collect();
    let mut command = manypath([&["kernel", "run"], cc.as_slice(), &["--"], words].concat());
    command.stdout(Stdio::piped());
    command
}

/// A web server over Multipath TCP, and what downloads are to give.
struct Site {
    place: Place,
    digest: String,
    links: TunLinks,
    _server: Program,
}

impl Site {
    fn start(controller: Option<&str>) -> Self {
        let place = Place::new();
        let content = place.file("served/file", BYTES);
        let links = two_links();
        let mut server = kernel_run(controller, &["python3", "-m", "http.server", "8000", "--bind", "0.0.0.0"]);
        server.current_dir(place.path("")).stdout(Stdio::null()).stderr(Stdio::null());
        let server = Program::start(links.server(), server);
        let port = format!(":{:04X} ", 8000);
        wait_until("the server listens", || {
            let table = links.server().run(|| fs::read_to_string("/proc/thread-self/net/tcp"));
            table.unwrap().lines().any(|line| line.contains(&port) && line.contains(" 0A "))
        });
        let digest = Sha256::digest(&content).iter().map(|byte| format!("{byte:02x}")).collect();
        Self { place, digest, links, _server: server }
    }

    /// Runs a program that prints the SHA-256 of what it has fetched, and checks that both paths carried it.
    fn fetch(&self, command: Command) {
        let what = format!("{command:?}");
        let before = received(&self.links);
        let said = Program::start(self.links.client(), command).output();
        assert_eq!(said.code, Some(0), "{what}");
        assert!(said.out.contains(&self.digest), "{what}: {}", said.out);
        let after = received(&self.links);
        for path in [0, 1] {
            let share = after[path] - before[path];
            assert!(share > BYTES as u64 / 10, "{what}: path {path} carried {share} bytes");
        }
    }
}

#[test]
fn curl_over_two_paths() {
    if obstacle() || !has("curl") {
        return;
    }
    let loaded = Loaded::new("curl");
    let site = Site::start(Some(&loaded.0));
    let script = format!("curl -s -o {} {URL} && sha256sum {0}", site.place.path("copy").display());
    let mut most = 0;
    let download = kernel_run(Some(&loaded.0), &["sh", "-c", &script]);
    std::thread::scope(|scope| {
        let transfer = scope.spawn(|| site.fetch(download));
        while !transfer.is_finished() {
            let connections = loaded.connections();
            let both = connections.iter().filter(|one| one["subflows"].as_array().unwrap().len() == 2);
            most = most.max(both.count());
        }
    });
    assert_eq!(most, 2, "both ends have two subflows under the controller");
}

#[test]
fn python_over_two_paths() {
    if obstacle() || !has("python3") {
        return;
    }
    let site = Site::start(None);
    let script = format!(
        "import hashlib, urllib.request\n\
         print(hashlib.sha256(urllib.request.urlopen('{URL}').read()).hexdigest())"
    );
    site.fetch(kernel_run(Some("cubic"), &["python3", "-c", &script]));
}

/// A Go compiler whose programs know Multipath TCP: 1.21 or later, from go.dev or a distribution.
fn go() -> Option<&'static str> {
    let knows_multipath = |go: &&str| {
        let said: Said = Command::new(go).arg("version").output().ok()?.into();
        // "go version go1.26.8 linux/amd64"
        let minor: u32 = said.out.split("go1.").nth(1)?.split(['.', ' ']).next()?.parse().ok()?;
        (minor >= 21).then_some(())
    };
    ["/usr/local/go/bin/go", "/usr/bin/go"].into_iter().find(|go| knows_multipath(go).is_some())
}

#[test]
fn go_over_two_paths() {
    if obstacle() {
        return;
    }
    let Some(go) = go() else {
        // Not counted as skipped where nothing may be: distributions' Go may be too old.
        eprintln!("skipped: Go 1.21 or later is not installed (https://go.dev/dl)");
        return;
    };
    let site = Site::start(None);
    let source = site.place.path("fetch.go");
    let program = site.place.path("fetch");
    fs::write(
        &source,
        "package main\n\nimport (\n\t\"crypto/sha256\"\n\t\"fmt\"\n\t\"io\"\n\t\"net/http\"\n\t\"os\"\n)\n\n\
         func main() {\n\tanswer, err := http.Get(os.Args[1])\n\tif err != nil {\n\t\tpanic(err)\n\t}\n\
         \tsum := sha256.New()\n\tio.Copy(sum, answer.Body)\n\tfmt.Printf(\"%x\\n\", sum.Sum(nil))\n}\n",
    )
    .unwrap();
    let mut build = Command::new(go);
    build.args(["build", "-o"]).arg(&program).arg(&source).env("CGO_ENABLED", "0").env("GOFLAGS", "-mod=mod");
    let built: Said = build.current_dir(site.place.path("")).output().unwrap().into();
    assert_eq!(built.code, Some(0), "{}", built.err);
    let program = program.to_str().unwrap();
    site.fetch(kernel_run(None, &[program, URL]));

    // Its sockets take the machine's default controller, and no other.
    run(["kernel", "run", "--cc", "no_such", "--", program, URL]).fails_with(&["no congestion controller 'no_such'"]);
    let other = if fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap().trim() == "cubic" {
        "reno"
    } else {
        "cubic"
    };
    run(["kernel", "run", "--cc", other, "--", program, URL]).fails_with(&["Go program", "load --default"]);
}

#[test]
fn iperf3_over_two_paths() {
    if obstacle() || !has("iperf3") {
        return;
    }
    let loaded = Loaded::new("iperf");
    let links = two_links();
    let server = Program::start(links.server(), kernel_run(Some(&loaded.0), &["iperf3", "-s", "-1"]));
    wait_until("the server listens", || {
        let table = links.server().run(|| fs::read_to_string("/proc/thread-self/net/tcp6")).unwrap();
        let old = links.server().run(|| fs::read_to_string("/proc/thread-self/net/tcp")).unwrap();
        (table + &old).lines().any(|line| line.contains(":1451 ") && line.contains(" 0A "))
    });
    let before = received(&links);
    let client = kernel_run(Some(&loaded.0), &["iperf3", "-c", "10.1.0.2", "-R", "-n", "5M", "-J"]);
    let said = Program::start(links.client(), client).output();
    let report: Value = serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {}", said.out));
    assert!(report["end"]["sum_received"]["bytes"].as_u64().unwrap() >= 5_000_000, "{}", said.out);
    let after = received(&links);
    for path in [0, 1] {
        assert!(after[path] - before[path] > 500_000, "path {path} carried {} bytes", after[path] - before[path]);
    }
    assert_eq!(server.output().code, Some(0));
}

/// `manypath kernel load lia` behind another command; it must fail and load nothing.
fn load_behind(prefix: &[&str], words: &[&str]) {
    let name = format!("x{}", std::process::id() % 10_000_000);
    let mut command = Command::new(prefix[0]);
    let manypath = env!("CARGO_BIN_EXE_manypath");
    command.args(&prefix[1..]).args([manypath, "kernel", "load", "lia", "--as", &name]);
    let said: Said = command.output().unwrap().into();
    said.fails_with(words);
    assert!(!Path::new("/sys/fs/bpf/manypath").join(&name).exists());
    let available = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    assert!(!available.split_whitespace().any(|held| held == name));
}

#[test]
fn what_lacks_is_said_and_nothing_is_half_loaded() {
    if obstacle() {
        return;
    }
    load_behind(
        &["setpriv", "--bounding-set=-all", "--inh-caps=-all"],
        &["privileges", "CAP_BPF", "remedy: run it as root"],
    );
    load_behind(&["setarch", "--uname-2.6"], &["older than 6.1", "remedy: boot Linux 6.1"]);
    let hide = |folder: &str| format!("mount -t tmpfs none {folder} && exec \"$0\" \"$@\"");
    load_behind(
        &["unshare", "-m", "sh", "-c", &hide("/sys/kernel/btf")],
        &["type information", "CONFIG_DEBUG_INFO_BTF"],
    );
    load_behind(
        &["unshare", "-m", "sh", "-c", &hide("/proc/sys/kernel")],
        &["no bpf system call", "CONFIG_BPF_SYSCALL"],
    );
}

/// A network namespace of `ip netns`, deleted when dropped.
struct Named(String);

impl Named {
    fn new() -> Self {
        let name = format!("manypath-test-{}", std::process::id());
        assert!(Command::new("ip").args(["netns", "add", &name]).status().unwrap().success());
        Self(name)
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &self.0]).status();
    }
}

#[test]
fn where_the_file_system_is_hidden_nothing_is_said_of_what_is_loaded() {
    if obstacle() {
        return;
    }
    let _loaded = Loaded::new("hidden");
    let namespace = Named::new();
    let by_ip = ["ip", "netns", "exec", &namespace.0];
    // As a container: its first process is not the machine's, and it has no BPF file system.
    let bare = r#"mount -t tmpfs none /sys/fs && exec "$0" "$@""#;
    let contained = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", bare];
    for words in [
        "load lia",
        "unload",
        "status",
        "set lia x=1",
        "weights 1",
        "target-rate 1Mbit --cheap 10.0.0.1 --dear 10.0.0.2",
    ] {
        for prefix in [by_ip.as_slice(), &contained] {
            let mut command = Command::new(prefix[0]);
            command.args(&prefix[1..]).args([env!("CARGO_BIN_EXE_manypath"), "kernel"]).args(words.split(' '));
            let said: Said = command.output().unwrap().into();
            said.fails_with(&["no BPF file system is mounted here", "nsenter", "--volume"]);
        }
    }
}

#[test]
fn run_within_run_takes_its_own_controller() {
    if obstacle() {
        return;
    }
    let show = ["sh", "-c", "echo ${MANYPATH_CC-none} $LD_PRELOAD"];
    let said = |words: &[&str]| Said::from(kernel_run(Some("reno"), words).output().unwrap()).out;
    let inner = [&[env!("CARGO_BIN_EXE_manypath"), "kernel", "run", "--"], show.as_slice()].concat();
    assert_eq!(said(&inner), said(&show).replace("reno", "none"));
}

#[test]
fn mistakes_are_named() {
    if obstacle() {
        return;
    }
    run(["kernel", "load", "nope"]).fails_with(&["no controller 'nope'", "lia"]);
    run(["kernel", "load", "lia", "--set", "x=1"]).fails_with(&["has no parameter 'x' in the kernel; it has: pacing"]);
    run(["kernel", "load", "lia:pacing=0"]).fails_with(&["'lia:pacing=0' is out of range: pacing takes on or off"]);
    run(["kernel", "load", "balia:alpha=7", "--as", "xbalia"]).fails_with(&["out of range"]);
    run(["kernel", "load", "lia", "balia", "--default"]).fails_with(&["only one"]);
    run(["kernel", "load", "lia", "--connections", "0"]).fails_with(&["0 is not in 1..="]);
    run(["kernel", "unload", "no_such"]).fails_with(&["no_such is not loaded"]);
    run(["kernel", "set", "no_such", "x=1"]).fails_with(&["no_such is not loaded"]);
    run(["kernel", "weights", "--conn", "xyz", "1"]).fails_with(&["eight hexadecimal digits"]);
    run(["kernel", "weights", "0"]).fails_with(&["from 0.001 to 1000"]);
    run(["kernel", "run", "--", "no-such-program"]).fails_with(&["no program 'no-such-program'"]);
    run(["kernel", "run", "--cc", "no_such", "--", "true"])
        .fails_with(&["no congestion controller 'no_such'", "cubic"]);
}

#[test]
fn the_doctor_finds_this_machine_fit() {
    if obstacle() {
        return;
    }
    let checks = run(["kernel", "doctor", "--json"]).json();
    for check in checks.as_array().unwrap() {
        assert_ne!(check["state"], "missing", "{check}");
        assert_eq!(check["remedy"].is_string(), check["state"] != "good", "{check}");
    }
}

#[test]
fn paths_are_set_and_cleared_in_a_namespace() {
    if obstacle() {
        return;
    }
    let links = two_links();
    let paths = |words: &[&str]| -> Said {
        let mut command = manypath([&["kernel", "paths"], words].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        links.client().spawn(command).unwrap().wait_with_output().unwrap().into()
    };
    assert!(paths(&["clear"]).out.contains("- 10.2.0.1 on path2"));
    let state = paths(&["--json"]).json();
    assert_eq!(state["endpoints"].as_array().unwrap().len(), 0);
    assert_eq!(state["paths"].as_array().unwrap().len(), 2);

    paths(&["set", "nope"]).fails_with(&["'nope'", "path1 (10.1.0.1), path2 (10.2.0.1)"]);
    let dry = paths(&["set", "path1", "path2", "--dry-run"]);
    assert!(dry.out.contains("+ 10.2.0.1 on path2 (subflow)"), "{}", dry.out);
    assert_eq!(paths(&["--json"]).json()["endpoints"].as_array().unwrap().len(), 0);
    assert_eq!(paths(&["set", "path1", "path2"]).code, Some(0));
    let state = paths(&["--json"]).json();
    let endpoints: Vec<&str> =
        state["endpoints"].as_array().unwrap().iter().map(|one| one["address"].as_str().unwrap()).collect();
    assert_eq!(endpoints, ["10.1.0.1", "10.2.0.1"]);
    assert_eq!(paths(&["set", "path1", "path2"]).out.trim(), "nothing to change");
    // Second addresses, which come first by number: connections do not leave from them.
    let ip = |words: &str| {
        let mut command = Command::new("ip");
        command.args(words.split(' '));
        assert!(links.client().spawn(command).unwrap().wait().unwrap().success(), "ip {words}");
    };
    links.client().run(|| fs::write("/proc/sys/net/ipv6/conf/path2/disable_ipv6", "0")).unwrap();
    ip("address add 10.0.0.9/32 dev path2");
    ip("address add 2001:db8:2::5/64 dev path2 preferred_lft 0 nodad");
    ip("address add 2001:db8:2::20/64 dev path2 nodad");
    ip("-6 route add default dev path2 metric 1000");
    let set = paths(&["set", "path1", "path2"]);
    assert_eq!(set.out.trim(), "+ 2001:db8:2::20 on path2 (subflow)", "{}", set.err);
    let shown = paths(&[]);
    assert!(!shown.out.contains("leave path2"), "{}", shown.out);
    assert_eq!(paths(&["set", "path1", "10.0.0.9"]).code, Some(0));
    let shown = paths(&[]);
    assert!(shown.out.contains("connections leave path2 from another address than endpoint 10.0.0.9"), "{}", shown.out);
    assert_eq!(paths(&["set", "path1", "path2"]).code, Some(0));
    assert_eq!(paths(&["accept", "4"]).code, Some(0));
    assert_eq!(paths(&["--json"]).json()["limits"]["subflows"], 3);
}

/// What a unit of systemd runs, as arguments of `manypath`.
fn unit_runs(unit: &str, key: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernel/systemd").join(unit);
    let text = fs::read_to_string(path).unwrap();
    let command = format!("{key}=/usr/local/bin/manypath ");
    let mut found = text.lines().filter_map(|line| line.strip_prefix(&command));
    let words = found.next().expect("the unit has this key").split(' ').map(str::to_owned).collect();
    assert_eq!(found.next(), None);
    words
}

#[test]
fn the_units_of_systemd_can_be_started_and_stopped() {
    if obstacle() {
        return;
    }
    // Under a name of this test's own, which goes whatever fails.
    let controller = Loaded(format!("u{}", std::process::id() % 10_000_000));
    let mut load = unit_runs("manypath-controller.service", "ExecStart");
    load.extend(["--as".to_owned(), controller.0.clone()]);
    let mut unload = unit_runs("manypath-controller.service", "ExecStop");
    assert_eq!(unload.pop().as_ref(), load.get(2), "it unloads what it has loaded");
    unload.push(controller.0.clone());
    assert_eq!(run(load).out.trim(), controller.0);
    assert_eq!(run(unload).out.trim(), format!("removed {}", controller.0));

    let links = two_links();
    let said = |key| {
        let mut command = manypath(unit_runs("manypath-paths.service", key));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Said::from(links.client().spawn(command).unwrap().wait_with_output().unwrap()).out
    };
    said("ExecStop");
    let both = |sign| format!("{sign} 10.1.0.1 on path1 (subflow)\n{sign} 10.2.0.1 on path2 (subflow)\n");
    assert_eq!(said("ExecStart"), both("+"));
    assert_eq!(said("ExecStop"), both("-"));
}

const EXPERIMENT: &str = r#"title = "Two links"
paper = "mpcc"
place = "Fig. 0"
about = "A small experiment."
duration = "2s"
warmup = "500ms"
engines = ["sim", "kernel"]
[[axis]]
name = "cc"
of = "controllers"
values = ["lia", "mpcc-loss", "ewtcp"]
[scenario]
topology = "mpcc-3b"
[[scenario.connection]]
name = "mp"
role = "mp"
cc = "{cc}"
scheduler = "{scheduler}"
transport = "tcp"
[metric.goodput]
title = "goodput"
unit = "Mbit/s"
value = "connection.mp.goodput_bps / 1Mbit"
[metric.second]
title = "second link"
unit = "Mbit/s"
value = "connection.mp.subflow.1.sending_bps / 1Mbit"
"#;

#[test]
fn the_lab_runs_experiments_in_the_kernel() {
    let place = Place::new();
    fs::create_dir(place.path("experiments")).unwrap();
    fs::write(place.path("experiments/small.toml"), EXPERIMENT).unwrap();
    let (experiments, results, docs) = (place.path("experiments"), place.path("results"), place.path("docs"));
    let lab = |args: &[&str]| {
        let place = ["--experiments", experiments.to_str().unwrap(), "--results", results.to_str().unwrap()];
        run(["lab"].iter().chain(args).chain(&place).copied())
    };
    let loaded = || run(["kernel", "status"]).out.lines().filter(|line| line.starts_with("lab")).count();
    let before = loaded();
    let made = lab(&["run", "small", "--engine", "kernel", "--seeds", "1"]);
    if obstacle() {
        return made.fails_with(&["skipped: the engine kernel cannot run here: "]);
    }
    assert_eq!(made.out.trim(), "2 runs made, 0 there already, 1 skipped, 0 failed (quick)", "{}", made.err);
    for words in ["small: 1 run skipped: ", "the kernel has no controller 'ewtcp'"] {
        assert!(made.err.contains(words), "{}", made.err);
    }
    assert_eq!(lab(&["run", "small", "--case", "cc=lia"]).code, Some(0));
    let page = place.path("page.html");
    lab(&["report", "--docs", docs.to_str().unwrap(), "--html", page.to_str().unwrap()]);
    let text = fs::read_to_string(docs.join("results.md")).unwrap();
    let line =
        |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{text}")).to_owned();
    // Both paths carry data: more than a link of 100 Mbit/s, and some of it on the second.
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let kernel = |line: &str| cells(line)[4].parse::<f64>().unwrap();
    assert!(kernel(&line("| cc = lia | goodput")) > 100.0 && kernel(&line("| cc = lia | second")) > 10.0, "{text}");
    // The simulator has not run this case.
    assert_eq!(cells(&line("| cc = mpcc-loss | goodput"))[3], "–");
    assert_eq!(loaded(), before);
}

#[test]
fn the_lab_connects_over_round_trips_of_any_length() {
    let place = Place::new();
    fs::create_dir(place.path("experiments")).unwrap();
    let far = EXPERIMENT
        .replace("duration = \"2s\"", "duration = \"3s\"")
        .replace("[\"lia\", \"mpcc-loss\", \"ewtcp\"]", "[\"reno\"]")
        .replace(
            "topology = \"mpcc-3b\"",
            "topology = \"two-links\"\n[[scenario.link]]\nname = \"link1\"\ndelay = \"90ms\"",
        )
        .replace("role = \"mp\"", "path = [{ route = [\"link1\"] }]")
        .replace("subflow.1", "subflow.0");
    fs::write(place.path("experiments/far.toml"), far).unwrap();
    let (experiments, results) = (place.path("experiments"), place.path("results"));
    let place = ["--experiments", experiments.to_str().unwrap(), "--results", results.to_str().unwrap()];
    let made = run(["lab", "run", "far", "--engine", "kernel", "--seeds", "1"].iter().chain(&place).copied());
    if !obstacle() {
        assert_eq!(made.out.trim(), "1 run made, 0 there already, 0 failed (quick)", "{}", made.err);
    }
}
