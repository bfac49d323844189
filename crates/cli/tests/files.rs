//! Files between processes over real sockets.

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use support::{Place, Server, interrupt, manypath, run, said, slow_link, through, wait_until};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

#[test]
fn the_printed_command_fetches_the_file() {
    let place = Place::new();
    let content = place.file("served/a b.bin", 3_000_000);
    let server = Server::start(&place, &[]);
    let expected = format!("manypath get '{}/a b.bin' --pin {}", server.address, server.pin);
    assert_eq!(server.command, expected);
    let mut shell = Command::new("sh");
    let program = env!("CARGO_BIN_EXE_manypath");
    shell.args(["-c", &server.command.replacen("manypath", program, 1)]);
    fs::create_dir(place.path("out")).unwrap();
    shell.current_dir(place.path("out"));
    let said = said(shell);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(fs::read(place.path("out/a b.bin")).unwrap(), content);
    assert!(said.out.ends_with("  a b.bin\n"), "{}", said.out);
    assert_eq!(server.interrupt().code, Some(0));
}

#[test]
fn get_and_put_report_in_json() {
    let place = Place::new();
    let content = place.file("served/f", 1_000_000);
    let server = Server::start(&place, &["--writable"]);
    let get = said(server.get("f", &place.path("g"))).json();
    assert_eq!(fs::read(place.path("g")).unwrap(), content);
    let put = said(server.put(&place.path("g"), "h")).json();
    assert_eq!(fs::read(place.path("served/h")).unwrap(), content);
    for report in [&get, &put] {
        assert_eq!((report["size"].as_u64(), report["resumed_from"].as_u64()), (Some(1_000_000), Some(0)));
        for key in ["seconds", "goodput_mbps", "retransmitted_bytes"] {
            assert!(report[key].is_number(), "{key}");
        }
        assert_eq!(report["paths"][0]["name"], "lo");
        assert!(report["paths"][0]["bytes"].as_u64() >= Some(1_000_000));
    }
    let sum = Command::new("sha256sum").arg(place.path("g")).output().unwrap();
    let sum = String::from_utf8(sum.stdout).unwrap();
    assert_eq!(get["sha256"].as_str(), sum.split(' ').next());
    assert_eq!(get["sha256"], put["sha256"]);
}

#[test]
fn a_transfer_that_fails_reports_in_json_what_is_known() {
    let place = Place::new();
    place.file("f", 1000);
    let server = Server::start(&place, &[]);
    let report = |said: &support::Said| serde_json::from_str::<serde_json::Value>(&said.out).unwrap();
    let get = said(server.get("nothing", &place.path("g")));
    get.fails_with(&["the server has no file 'nothing'"]);
    let told = report(&get);
    assert!(told["error"].as_str().unwrap().contains("the server has no file 'nothing'"), "{told}");
    assert!(told["file"].as_str().unwrap().ends_with("/g") && told["size"].is_null(), "{told}");
    assert!(told["seconds"].is_number() && told["paths"][0]["name"] == "lo", "{told}");
    let put = said(server.put(&place.path("f"), "h"));
    put.fails_with(&["read-only"]);
    let told = report(&put);
    assert!(told["error"].as_str().unwrap().contains("read-only") && told["size"] == 1000, "{told}");
    let absent = said(server.put(&place.path("absent"), "h"));
    absent.fails_with(&["cannot read"]);
    assert_eq!(report(&absent)["paths"], serde_json::json!([]));
}

#[test]
fn names_of_files_do_not_steer_a_terminal() {
    let place = Place::new();
    place.file("served/a\u{1b}[31mb", 1000);
    let server = Server::start(&place, &[]);
    let target = format!("{}/a\u{1b}[31mb", server.address);
    fs::create_dir(place.path("out")).unwrap();
    let got = run(["get", &target, "--pin", &server.pin, "-o", place.path("out").to_str().unwrap()]);
    assert_eq!(got.code, Some(0), "{}", got.err);
    let put = run(["put", place.path("served/a\u{1b}[31mb").to_str().unwrap(), &target, "--pin", &server.pin]);
    put.fails_with(&[r"a\u{1b}[31mb", "read-only"]);
    for said in [&got, &put] {
        assert!(!said.err.contains('\u{1b}') && !said.out.contains('\u{1b}'), "{:?}", said.err);
    }
    assert!(got.out.ends_with("a\\u{1b}[31mb\n"), "{}", got.out);
}

#[test]
fn empty_files_and_replaced_files() {
    let place = Place::new();
    place.file("served/empty", 0);
    let server = Server::start(&place, &["--writable"]);
    assert_eq!(said(server.get("empty", &place.path("e"))).json()["size"], 0);
    assert!(place.path("e").exists());
    place.file("served/old", 70_000);
    let new = place.file("new", 50_000);
    // What replaces a private file is private, too.
    fs::set_permissions(place.path("served/old"), fs::Permissions::from_mode(0o600)).unwrap();
    said(server.put(&place.path("new"), "old")).json();
    assert_eq!(fs::read(place.path("served/old")).unwrap(), new);
    assert_eq!(fs::metadata(place.path("served/old")).unwrap().permissions().mode() & 0o777, 0o600);
    said(server.put(&place.path("e"), "old")).json();
    assert_eq!(place.size("served/old"), 0);
    assert!(!place.path("served/old.part").exists());
}

#[test]
fn a_get_goes_on_after_the_server_was_killed() {
    let place = Place::new();
    let content = place.file("served/f", 30_000_000);
    let mut server = Server::start(&place, &[]);
    let relay = slow_link(server.address);
    let (target, path, out) = (format!("{}/f", server.address), through(&relay), place.path("g"));
    let (out, pin) = (out.to_str().unwrap(), server.pin.clone());
    let args = ["get", &target, "--pin", &pin, "--path", &path, "--timeout", "6s", "--json", "-o", out];
    let child = manypath(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("a part is there", || place.size("g.part") > 2_000_000);
    server.kill();
    let said: support::Said = child.wait_with_output().unwrap().into();
    said.fails_with(&["g is incomplete", "the same command goes on"]);
    assert!(!place.path("g").exists());
    let kept = place.size("g.part");
    assert!(kept > 2_000_000, "{kept}");

    let server = Server::start_at(&place, &server.address.to_string(), &[]);
    let report = run(args).json();
    assert_eq!(report["resumed_from"], kept);
    assert_eq!(fs::read(place.path("g")).unwrap(), content);
    assert!(!place.path("g.part").exists());
    drop(server);
}

/// It is told so by the server that was started anew, whatever it waits for otherwise.
#[test]
fn a_get_notices_soon_that_the_server_was_started_anew() {
    let place = Place::new();
    place.file("served/f", 30_000_000);
    let mut server = Server::start(&place, &[]);
    let relay = slow_link(server.address);
    let (target, path, out) = (format!("{}/f", server.address), through(&relay), place.path("g"));
    let args = ["get", &target, "--pin", &server.pin, "--path", &path, "-o", out.to_str().unwrap()];
    let get = manypath(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("a part is there", || place.size("g.part") > 2_000_000);
    server.kill();
    let begun = std::time::Instant::now();
    let _server = Server::start_at(&place, &server.address.to_string(), &[]);
    let said: support::Said = get.wait_with_output().unwrap().into();
    said.fails_with(&["the same command goes on", "the server no longer has the session: it was restarted"]);
    assert!(begun.elapsed() < std::time::Duration::from_secs(12), "{:?}", begun.elapsed());
}

#[test]
fn ctrl_c_leaves_a_part_that_is_continued_if_it_still_fits() {
    let place = Place::new();
    place.file("served/f", 30_000_000);
    let server = Server::start(&place, &[]);
    let relay = slow_link(server.address);
    let target = format!("{}/f", server.address);
    let (path, out) = (through(&relay), place.path("g"));
    let args = ["get", &target, "--pin", &server.pin, "--path", &path, "--json", "-o", out.to_str().unwrap()];
    let child = manypath(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("a part is there", || place.size("g.part") > 1_000_000);
    interrupt(child).fails_with(&["g is incomplete", "kept in", "g.part", "interrupted"]);
    assert!(place.size("g.part") > 1_000_000);

    // Another file of this name has appeared: what was kept is no part of it.
    let mut content = fs::read(place.path("served/f")).unwrap();
    content[5] ^= 1;
    fs::write(place.path("served/f"), &content).unwrap();
    let said = said(server.get("f", &out));
    assert!(said.err.contains("starting anew"), "{}", said.err);
    assert_eq!(said.json()["resumed_from"], 0);
    assert_eq!(fs::read(&out).unwrap(), content);
}

#[test]
fn a_put_goes_on_after_an_interruption() {
    let place = Place::new();
    let content = place.file("f", 30_000_000);
    let server = Server::start(&place, &["--writable"]);
    let relay = slow_link(server.address);
    let (path, file, target) = (through(&relay), place.path("f"), format!("{}/", server.address));
    let args = ["put", file.to_str().unwrap(), &target, "--pin", &server.pin, "--path", &path, "--json"];
    let child = manypath(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("a part is there", || place.size("served/f.part") > 1_000_000);
    let mut second = server.put(&file, "f");
    second.args(["--wait", "0s"]);
    said(second).fails_with(&["another transfer is writing this file", "within two minutes"]);
    interrupt(child).fails_with(&["interrupted", "the server keeps what has arrived"]);
    assert!(!place.path("served/f").exists());
    let report = run(args).json();
    assert!(report["resumed_from"].as_u64() > Some(1_000_000), "{report}");
    assert_eq!(fs::read(place.path("served/f")).unwrap(), content);
}

/// What arrived while a process did not run is read before its paths are called silent.
#[test]
fn a_process_that_stands_still_for_a_moment_gives_no_path_up() {
    let place = Place::new();
    place.file("f", 30_000_000);
    let server = Server::start(&place, &["--writable"]);
    let relay = slow_link(server.address);
    let (from, target, path) = (place.path("f"), format!("{}/f", server.address), through(&relay));
    let args = ["put", from.to_str().unwrap(), &target, "--pin", &server.pin, "--path", &path, "--log", "info"];
    let put = manypath(args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("a part is there", || place.size("served/f.part") > 2_000_000);
    let signal = |name: &str| Command::new("kill").args([name, &put.id().to_string()]).status().unwrap();
    assert!(signal("-STOP").success());
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert!(signal("-CONT").success());
    let said: support::Said = put.wait_with_output().unwrap().into();
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains("session over") && !said.err.contains("path failed"), "{}", said.err);
}

/// Nor does one that stood still for longer than it waits.
#[test]
fn a_get_goes_on_after_it_stood_still_for_longer_than_its_timeout() {
    let place = Place::new();
    let content = place.file("served/f", 30_000_000);
    let server = Server::start(&place, &[]);
    let relay = slow_link(server.address);
    let (target, path, out) = (format!("{}/f", server.address), through(&relay), place.path("g"));
    let args = ["get", &target, "--pin", &server.pin, "--path", &path, "--timeout", "3s", "-o", out.to_str().unwrap()];
    let get = manypath(args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("a part is there", || place.size("g.part") > 2_000_000);
    let signal = |name: &str| Command::new("kill").args([name, &get.id().to_string()]).status().unwrap();
    assert!(signal("-STOP").success());
    std::thread::sleep(std::time::Duration::from_secs(6));
    assert!(signal("-CONT").success());
    let said: support::Said = get.wait_with_output().unwrap().into();
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(fs::read(out).unwrap(), content);
}

#[test]
fn a_put_waits_for_one_that_breaks_off() {
    let place = Place::new();
    let content = place.file("f", 30_000_000);
    let server = Server::start(&place, &["--writable"]);
    let relay = slow_link(server.address);
    let (path, file, target) = (through(&relay), place.path("f"), format!("{}/f", server.address));
    let args = ["put", file.to_str().unwrap(), &target, "--pin", &server.pin, "--path", &path];
    let first = manypath(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("a part is there", || place.size("served/f.part") > 1_000_000);
    let mut second = server.put(&file, "f");
    let mut second = second.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut note = String::new();
    let mut notes = std::io::BufReader::new(second.stderr.take().unwrap());
    std::io::BufRead::read_line(&mut notes, &mut note).unwrap();
    assert!(note.starts_with("Waiting up to 150s for file 'f': another transfer is writing this file"), "{note}");
    interrupt(first).fails_with(&["interrupted"]);
    let said: support::Said = second.wait_with_output().unwrap().into();
    assert!(said.json()["resumed_from"].as_u64() > Some(1_000_000), "{}", said.out);
    assert_eq!(fs::read(place.path("served/f")).unwrap(), content);
}

#[cfg(target_os = "linux")]
#[test]
fn what_has_no_size_is_not_sent_as_less() {
    let place = Place::new();
    place.file("served/f", 1000);
    let server = Server::start(&place, &["--writable"]);
    for (file, told) in [
        // Said to be empty, and to be a page.
        ("/proc/version", "does not have the size that the system says"),
        ("/sys/class/net/lo/mtu", "does not have the size that the system says"),
        ("/dev/null", "it is a device, not a regular file"),
    ] {
        said(server.put(std::path::Path::new(file), "g")).fails_with(&[file, told]);
    }
    assert!(Command::new("mkfifo").arg(place.path("pipe")).status().unwrap().success());
    said(server.put(&place.path("pipe"), "g")).fails_with(&["it is a pipe", "to a file, and send that"]);
    let _socket = std::os::unix::net::UnixListener::bind(place.path("socket")).unwrap();
    said(server.put(&place.path("socket"), "g")).fails_with(&["it is a socket", "to a file, and send that"]);
    said(server.put(&place.path("served"), "g")).fails_with(&["it is a folder", "pack it into one file"]);
    fs::create_dir(place.path("served/folder")).unwrap();
    said(server.get("folder", &place.path("g")))
        .fails_with(&["refuses file 'folder': it is a folder: name a file in it"]);
    said(server.put(&place.path("served/f"), "folder")).fails_with(&["it is a folder: name a file in it"]);
    fs::remove_dir(place.path("served/folder")).unwrap();
    said(server.get("f", &place.path("pipe"))).fails_with(&["cannot write", "choose another place with --output"]);
    // The server learns after the client has ended.
    wait_until("nothing is stored", || fs::read_dir(place.path("served")).unwrap().count() == 1);
}

#[cfg(unix)]
#[test]
fn a_link_leads_to_the_file_that_is_written() {
    let place = Place::new();
    let content = place.file("served/f", 1000);
    let server = Server::start(&place, &[]);
    fs::create_dir(place.path("elsewhere")).unwrap();
    fs::write(place.path("elsewhere/old"), "old").unwrap();
    std::os::unix::fs::symlink("elsewhere/old", place.path("link")).unwrap();
    said(server.get("f", &place.path("link"))).json();
    assert!(place.path("link").is_symlink());
    assert_eq!(fs::read(place.path("elsewhere/old")).unwrap(), content);
    // Where it leads there may be nothing yet.
    std::os::unix::fs::symlink("elsewhere/new", place.path("ahead")).unwrap();
    said(server.get("f", &place.path("ahead"))).json();
    assert!(place.path("ahead").is_symlink());
    assert_eq!(fs::read(place.path("elsewhere/new")).unwrap(), content);
}

#[test]
fn a_name_that_is_too_long_is_named_as_the_cause() {
    let place = Place::new();
    let name = "x".repeat(252);
    place.file(&format!("served/{name}"), 1000);
    let server = Server::start(&place, &["--writable"]);
    let refused = said(server.get(&name, &place.path(&name)));
    refused.fails_with(&["the name is too long for the file system", "choose another place with --output"]);
    said(server.get(&name, &place.path("short"))).json();
    said(server.put(&place.path("short"), &name)).fails_with(&["refuses", "the name is too long"]);
}

#[cfg(target_os = "linux")]
#[test]
fn without_a_default_route_the_addresses_of_interfaces_are_told() {
    let place = Place::new();
    let script = "ip link set lo up && ip link add a0 type veth peer name b0 && ip link set a0 up && \
                  ip link set b0 up && ip addr add 10.77.0.1/24 dev a0 && ip addr add fd77::1/64 dev a0 nodad && \
                  exec \"$0\" serve \"$1\" --state \"$2\" --listen 0.0.0.0:4433 --listen [::]:4433";
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--net", "sh", "-ec", script, env!("CARGO_BIN_EXE_manypath")]);
    command.arg(place.path("served")).arg(place.path("state"));
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut told = [String::new(), String::new()];
    let mut output = std::io::BufReader::new(process.stdout.take().unwrap());
    for line in &mut told {
        std::io::BufRead::read_line(&mut output, line).unwrap();
    }
    process.kill().unwrap();
    let said: support::Said = process.wait_with_output().unwrap().into();
    if !said.err.contains("Serving") {
        return support::skip(&format!("no network namespace: {}", said.err));
    }
    assert!(told[0].starts_with("manypath get 10.77.0.1:4433/FILE "), "{told:?}");
    assert!(told[1].starts_with("manypath get '[fd77::1]:4433/FILE' "), "{told:?}");
}

#[test]
fn a_put_gives_up_a_server_that_is_not_heard() {
    let place = Place::new();
    place.file("f", 30_000_000);
    let server = Server::start(&place, &["--writable"]);
    let relay = slow_link(server.address);
    let (path, file, target) = (through(&relay), place.path("f"), format!("{}/f", server.address));
    let args = ["put", file.to_str().unwrap(), &target, "--pin", &server.pin, "--path", &path, "--timeout", "2s"];
    let put = manypath(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("a part is there", || place.size("served/f.part") > 1_000_000);
    let stopped = Command::new("kill").args(["-STOP", &server.id().to_string()]).status().unwrap();
    assert!(stopped.success());
    let said: support::Said = put.wait_with_output().unwrap().into();
    said.fails_with(&["the server keeps what has arrived", "nothing was heard from the server for 2s"]);
}

#[cfg(target_os = "linux")]
#[test]
fn nobody_waits_for_the_hash_of_a_part_after_ctrl_c() {
    let place = Place::new();
    // Parts that take hours to hash, and little space.
    for name in ["f", "served/f.part", "g.part"] {
        fs::File::create(place.path(name)).unwrap().set_len(1 << 40).unwrap();
    }
    let hashes = |process: u32| {
        wait_until("it reads the part", || {
            let read = fs::read_to_string(format!("/proc/{process}/io")).unwrap();
            let bytes = read.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap();
            bytes.parse::<u64>().unwrap() > 30_000_000
        });
    };
    let server = Server::start(&place, &["--writable"]);
    let spawn = |mut command: Command| command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let get = spawn(server.get("f", &place.path("g")));
    hashes(get.id());
    interrupt(get).fails_with(&["interrupted"]);
    let mut put = spawn(server.put(&place.path("f"), "f"));
    hashes(server.id());
    assert_eq!(server.interrupt().code, Some(0));
    assert_eq!(put.wait().unwrap().code(), Some(2));
}

/// While the client hashes what the server says it has, the server gives up: it takes no more, whether or not it says why.
#[test]
fn a_put_that_the_server_gives_up_is_an_error() {
    let place = Place::new();
    place.file("f", 20_000_000);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let listen = vec![std::net::SocketAddr::from(([127, 0, 0, 1], 0))];
    let config = manypath_quic::ServerConfig { listen, ..Default::default() };
    let server = std::sync::Arc::new(runtime.block_on(manypath_quic::Server::bind(config)).unwrap());
    let (target, pin) = (format!("{}/f", server.local_addrs()[0]), server.fingerprint().to_string());
    let refusal = [&[0x2f, 0, 0, 0, 10, 0, 1][..], b"too late"].concat();
    for (last_words, told) in [(refusal, "the server gave up: too late"), (vec![], "the other side ended the flow")] {
        let server = std::sync::Arc::clone(&server);
        runtime.spawn(async move {
            let connection = server.accept().await.unwrap();
            let (mut send, mut receive) = connection.accept_flow().await.unwrap();
            receive.read_u8().await.unwrap();
            let have = [&[0x12, 0, 0, 0, 40][..], &20_000_000_u64.to_be_bytes(), &[0; 32], &last_words].concat();
            send.write_all(&have).await.unwrap();
            send.shutdown().await.unwrap();
            drop(receive);
            connection.closed().await;
        });
        let file = place.path("f");
        let said = run(["put", file.to_str().unwrap(), &target, "--pin", &pin, "--path", "lo=127.0.0.1", "--json"]);
        said.fails_with(&["file 'f' is incomplete at the server", "run the command again to go on", told]);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn messages_that_cannot_be_written_change_no_outcome() {
    let place = Place::new();
    let content = place.file("served/f", 1_000_000);
    let server = Server::start(&place, &[]);
    let code = |file, to| {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut get = server.get(file, &place.path(to));
        get.stdout(Stdio::null()).stderr(full).status().unwrap().code()
    };
    // Before the content comes it says where it goes on.
    fs::write(place.path("g.part"), &content[..400_000]).unwrap();
    assert_eq!(code("f", "g"), Some(0));
    assert_eq!(fs::read(place.path("g")).unwrap(), content);
    assert_eq!(code("none", "h"), Some(2));
}

#[test]
fn the_server_stays_in_its_folder() {
    let place = Place::new();
    place.file("secret", 100);
    place.file("served/f", 100);
    let server = Server::start(&place, &["--writable"]);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("../secret", place.path("served/link")).unwrap();
        std::os::unix::fs::symlink(place.path("."), place.path("served/folder")).unwrap();
        for path in ["link", "folder/secret"] {
            said(server.get(path, &place.path("g"))).fails_with(&["refuses", "outside the served folder"]);
            said(server.put(&place.path("served/f"), "folder/new")).fails_with(&["refuses"]);
        }
    }
    for path in ["../secret", "x/../../secret", "/etc/passwd"] {
        said(server.get(path, &place.path("g"))).fails_with(&["refuses"]);
        said(server.put(&place.path("served/f"), path)).fails_with(&["refuses"]);
    }
    said(server.get("none", &place.path("g"))).fails_with(&["no file 'none'"]);
    said(server.put(&place.path("served/f"), "none/f")).fails_with(&["no folder for 'none/f'"]);
    said(server.get("", &place.path("g"))).fails_with(&["names no file"]);
    // The part of a transfer that is under way is no file to write.
    said(server.put(&place.path("served/f"), "x.part")).fails_with(&["refuses", "names that end with '.part'"]);
    said(server.get("f", &place.path("g.part"))).fails_with(&["names that end with '.part'"]);
    assert!(!place.path("g").exists() && !place.path("g.part").exists(), "nothing is left of what failed");
    assert!(!place.path("new").exists());
    let served = fs::read_dir(place.path("served")).unwrap().count();
    assert_eq!(served, 3, "no part is left of what was refused");
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_not_replaced() {
    use std::os::unix::fs::FileTypeExt as _;
    let place = Place::new();
    place.file("served/f", 100);
    let server = Server::start(&place, &["--writable"]);
    // In the place of a device, which a failing test must not harm.
    let _socket = std::os::unix::net::UnixListener::bind(place.path("socket")).unwrap();
    let _served = std::os::unix::net::UnixListener::bind(place.path("served/socket")).unwrap();
    std::os::unix::fs::symlink(place.path("socket"), place.path("link")).unwrap();
    for name in ["socket", "link"] {
        said(server.get("f", &place.path(name))).fails_with(&["cannot write", "not a regular file"]);
    }
    said(server.put(&place.path("served/f"), "socket")).fails_with(&["refuses file 'socket'", "not a regular file"]);
    for name in ["socket", "link", "served/socket"] {
        assert!(fs::metadata(place.path(name)).unwrap().file_type().is_socket(), "{name}");
    }
}

#[test]
fn a_server_is_read_only_unless_told_otherwise() {
    let place = Place::new();
    place.file("f", 100);
    let server = Server::start(&place, &[]);
    said(server.put(&place.path("f"), "f")).fails_with(&["read-only", "--writable"]);
    assert_eq!(fs::read_dir(place.path("served")).unwrap().count(), 0);
}

#[test]
fn strangers_are_refused() {
    let place = Place::new();
    place.file("served/f", 100);
    let server = Server::start(&place, &["--token", "sesame"]);
    said(server.get("f", &place.path("g"))).fails_with(&["token"]);
    let mut wrong = server.get("f", &place.path("g"));
    wrong.args(["--token", "sesamo"]);
    said(wrong).fails_with(&["token"]);
    let mut right = server.get("f", &place.path("g"));
    right.env("MANYPATH_TOKEN", "sesame");
    said(right).json();

    let (target, pin) = (format!("{}/f", server.address), "00".repeat(32));
    let out = place.path("h");
    let args = ["get", &target, "--path", "127.0.0.1", "-o", out.to_str().unwrap()];
    run(args.iter().chain(&["--pin", &pin])).fails_with(&["shows the certificate", &server.pin]);
    run(args).fails_with(&["--pin", "--ca"]);
    run(["serve", ".", "--listen", "127.0.0.1"]).fails_with(&["'127.0.0.1' is not ADDRESS:PORT: write 0.0.0.0:4433"]);
    run(args.iter().chain(&["--pin", "abc"])).fails_with(&["64 hexadecimal digits"]);
    assert!(!out.exists());
}

#[test]
fn a_full_disk_keeps_what_has_arrived() {
    let place = Place::new();
    let content = place.file("served/f", 3_000_000);
    let disk = place.path("disk");
    fs::create_dir(&disk).unwrap();
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(&disk).output();
    if !mount.is_ok_and(|output| output.status.success()) {
        support::skip("a small disk can be mounted by root only");
        return;
    }
    let server = Server::start(&place, &[]);
    let full = said(server.get("f", &disk.join("g")));
    let kept = place.size("disk/g.part");
    let grown = Command::new("mount").args(["-o", "remount,size=8m"]).arg(&disk).status();
    let resumed = said(server.get("f", &disk.join("g")));
    let arrived = fs::read(disk.join("g"));
    let unmounted = Command::new("umount").arg(&disk).status();
    full.fails_with(&["g is incomplete", "the disk is full"]);
    assert!(kept > 500_000, "{kept}");
    assert!(grown.unwrap().success() && unmounted.unwrap().success());
    assert!(resumed.json()["resumed_from"].as_u64() > Some(500_000));
    assert_eq!(arrived.unwrap(), content);
}

#[test]
fn a_client_chooses_the_servers_algorithms() {
    let place = Place::new();
    place.file("served/f", 1_000_000);
    let server = Server::start(&place, &["--cc", "reno", "--sched", "round-robin"]);
    let mut command = server.get("f", &place.path("g"));
    command.args(["--cc", "mpcc-loss"]);
    assert_eq!(said(command).json()["size"], 1_000_000);
    let mut command = server.get("f", &place.path("g"));
    command.args(["--cc", "nothing"]);
    said(command).fails_with(&["no algorithm is called 'nothing'"]);
}

#[test]
fn both_ends_trace_the_decisions_that_are_theirs() {
    let place = Place::new();
    place.file("served/f", 500_000);
    place.file("mine", 300_000);
    let (server_trace, client_trace) = (place.path("server.tsv"), place.path("client.tsv"));
    let server = Server::start(&place, &["--writable", "--trace-schedule", server_trace.to_str().unwrap()]);
    let mut put = server.put(&place.path("mine"), "theirs");
    put.arg("--trace-schedule").arg(&client_trace);
    assert_eq!(said(put).code, Some(0));
    assert_eq!(said(server.get("f", &place.path("g"))).code, Some(0));
    assert_eq!(server.interrupt().code, Some(0));
    // Data of the connection that moved a file, by connection in the trace.
    let sent = |trace: &std::path::Path| {
        let mut sent = std::collections::BTreeMap::<String, u64>::new();
        manypath_output::read_trace(trace, |row| {
            if row.decided == manypath_output::Decided::Send {
                let (first, end) = row.range.unwrap();
                *sent.entry(row.connection.to_owned()).or_default() += end - first;
            }
        })
        .unwrap();
        sent
    };
    let (by_client, by_server) = (sent(&client_trace), sent(&server_trace));
    assert_eq!(by_client.len(), 1);
    assert!((300_000..310_000).contains(&by_client["1"]), "{by_client:?}");
    // The server answers the first client, and sends the second one its file.
    assert!(by_server["1"] < 10_000 && (500_000..510_000).contains(&by_server["2"]), "{by_server:?}");
}
