//! The programs' arithmetic as compiled for the host (`bpf/*.bpf.c`, `bpf/host.c`), for tests that compare it with
//! `manypath-cc`.

#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test binary uses its own part")]
#![allow(clippy::cast_possible_truncation, reason = "numbers are drawn small enough")]

pub mod intervals;
pub mod path;

use core::ptr;
use std::collections::BTreeMap;

use manypath_cc::Probe;
pub use manypath_kernel::{Group, MAX_SUBFLOWS, Member};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// What a controller of `manypath-cc` says of itself.
#[derive(Default)]
pub struct Values(pub BTreeMap<&'static str, f64>);

impl Probe for Values {
    fn value(&mut self, name: &'static str, value: f64) {
        self.0.insert(name, value);
    }
}

/// `real` of `bpf/real.h`.
pub type Real = u64;

const BIAS: i32 = 1024;

/// The value of a `real`.
pub fn value(real: Real) -> f64 {
    let mantissa = f64::from((real & 0xffff_ffff) as u32);
    mantissa * 2_f64.powi((real >> 32) as i32 - BIAS)
}

/// The `real` of a value that is not negative, rounded down as in `real_of`.
pub fn real(value: f64) -> Real {
    if value <= 0.0 {
        return 0;
    }
    let exponent = value.log2().floor() as i32 - 31;
    let mantissa = (value * 2_f64.powi(-exponent)) as u64;
    // Rounding of `log2` at powers of two.
    let (mantissa, exponent) = if mantissa >> 32 > 0 { (mantissa >> 1, exponent + 1) } else { (mantissa, exponent) };
    ((exponent + BIAS) as u64) << 32 | mantissa
}

/// Packets of a number with 32 fractional bits.
pub fn packets(q32: u64) -> f64 {
    q32 as f64 / 2_f64.powi(32)
}

/// `struct socket_view` of `bpf/window.h`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct SocketView {
    pub cwnd: u32,
    pub ssthresh: u32,
    pub clamp: u32,
    pub srtt: u32,
    pub una: u32,
    pub nxt: u32,
    pub delivered: u32,
    pub lost: u32,
    pub now_us: u64,
    pub recovering: u32,
    pub pad: u32,
}

/// `struct window_state` of `bpf/window.h`; `L` is the law's.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct WindowState<L> {
    pub window_rest: u32,
    pub threshold_rest: u32,
    pub threshold: u32,
    pub pad: u32,
    pub before: u64,
    pub law: L,
}

#[repr(C)]
pub struct Step {
    group: *mut Group,
    own: u32,
    state: *mut u8,
    socket: *mut SocketView,
}

/// `struct window_controller` of `bpf/window_control.h`.
#[repr(C)]
pub struct WindowController {
    state_size: u64,
    tunables: *mut u64,
    join: unsafe extern "C" fn(*const Step),
    sample: unsafe extern "C" fn(*const Step, u32),
    ack: unsafe extern "C" fn(*const Step, u32, u32),
    loss: unsafe extern "C" fn(*const Step),
    timeout: unsafe extern "C" fn(*const Step, u32),
}

impl WindowController {
    /// Sets a parameter by its place in the program's `struct tunables`.
    ///
    /// # Safety
    /// There is such a place, and no other thread uses the controller.
    pub unsafe fn set(&self, index: usize, value: u64) {
        assert!(!self.tunables.is_null());
        // SAFETY: the caller's promise.
        unsafe { self.tunables.add(index).write(value) };
    }
}

/// `struct path_view` of `bpf/monitor.h`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct PathView {
    pub now_us: u64,
    pub bytes_sent: u64,
    pub segs_out: u32,
    pub in_flight: u32,
    pub lost: u32,
    pub srtt_us: u32,
    pub sent_at_us: u64,
    pub rtt_us: u32,
    pub mss: u32,
    pub backlogged: u32,
    pub random: u32,
    pub delivered: u32,
    pub may_grow: u32,
    pub arrived: u32,
    pub pad: u32,
}

/// `struct report` of `bpf/monitor.h`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Report {
    pub epoch: u32,
    pub index: u32,
    pub rate: Real,
    pub loss: Real,
    pub slope: Real,
    pub negative: u64,
    pub rtt: Real,
    pub arrival: Real,
    pub filled: u32,
    pub app_limited: u32,
    pub overload: u32,
    pub packets: u32,
    pub cut_short: u32,
    pub is_gap: u32,
    pub start_us: u64,
}

/// `struct paced_controller` of `bpf/paced_control.h`.
#[repr(C)]
pub struct PacedController {
    state_size: u64,
    tunables: *mut u64,
    tunables_size: u64,
    join: unsafe extern "C" fn(*mut u8, *mut Group, u32),
    ack: unsafe extern "C" fn(*mut u8, *mut Group, u32, *const PathView),
    loss: unsafe extern "C" fn(*mut u8, *mut Group, u32),
    timeout: unsafe extern "C" fn(*mut u8, *mut Group, u32, *const PathView),
    report: unsafe extern "C" fn(*mut u8, *const PathView, *const Report, Real),
    rate: unsafe extern "C" fn(*const u8, *const PathView) -> u64,
    window: unsafe extern "C" fn(*const u8, *const PathView) -> u64,
}

/// The head of `struct ascent` of `bpf/ascent_state.h`; the rest is not looked at.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct AscentState {
    pub phase: u32,
    pub epoch: u32,
    pub rate: Real,
    pub base: Real,
    pub published: Real,
    pub others: Real,
    pub others_count: u64,
    pub rest: [u64; 1000],
}

impl AscentState {
    /// Before it joins.
    pub const NEW: Self =
        Self { phase: 0, epoch: 0, rate: 0, base: 0, published: 0, others: 0, others_count: 0, rest: [0; 1000] };
    /// `enum ascent_phase`.
    pub const SLOW_START: u32 = 0;
    pub const PROBING: u32 = 1;
    pub const MOVING: u32 = 2;
}

/// Members of `struct tunables` in `bpf/ascent_config.h`, in order.
const ASCENT_TUNABLES: [&str; 23] = [
    "loss_weight_ppm",
    "latency_weight_ppm",
    "units",
    "mi_ppm",
    "mi_packets",
    "min_slope_ppm",
    "omega_ppm",
    "low",
    "theta_ppm",
    "steps",
    "min_step_ppm",
    "bound_ppm",
    "bound_step_ppm",
    "swing",
    "initial_ppm",
    "min_rate_ppm",
    "slow_start",
    "leave",
    "publish",
    "timeout",
    "brake",
    "queue",
    "bursts",
];

/// Members of `struct tunables` in `bpf/mp_ol.h`, in order.
const MP_OL_TUNABLES: [&str; 6] = ["n", "d_ppm", "epsilon_ppm", "beta_ppm", "guard", "initial_ppm"];

impl PacedController {
    /// Sets a parameter of the ascent, or of MP-OL.
    pub fn set(&self, name: &str, value: u64) {
        let known: &[&str] =
            if self.tunables_size == 8 * MP_OL_TUNABLES.len() as u64 { &MP_OL_TUNABLES } else { &ASCENT_TUNABLES };
        assert_eq!(self.tunables_size, 8 * known.len() as u64);
        let index = known.iter().position(|known| *known == name).expect("a parameter");
        // SAFETY: `tunables` has as many words, and only one test uses a controller.
        unsafe { self.tunables.add(index).write(value) };
    }

    fn state<S>(&self, state: &mut S) -> *mut u8 {
        assert!(self.state_size as usize <= size_of::<S>(), "the state takes {} bytes", self.state_size);
        ptr::from_mut(state).cast()
    }

    /// A subflow joins.
    pub fn join<S>(&self, state: &mut S) {
        let mut group = Group { used: 1, ..Group::default() };
        // SAFETY: the state is large enough, the group is the program's type, the place is below MAX_SUBFLOWS.
        unsafe { (self.join)(self.state(state), &raw mut group, 0) };
    }

    /// An acknowledgement.
    pub fn ack<S>(&self, state: &mut S, group: &mut Group, path: &PathView) {
        // SAFETY: as above.
        unsafe { (self.ack)(self.state(state), group, 0, path) };
    }

    /// What the kernel would be told: bytes a second, and packets.
    pub fn limits<S>(&self, state: &mut S, path: &PathView) -> (u64, u64) {
        let state = self.state(state);
        // SAFETY: as above.
        unsafe { ((self.rate)(state, path), (self.window)(state, path)) }
    }

    /// A loss begins a recovery.
    pub fn loss<S>(&self, state: &mut S, group: &mut Group) {
        // SAFETY: as above.
        unsafe { (self.loss)(self.state(state), group, 0) };
    }

    /// A timeout.
    pub fn timeout<S>(&self, state: &mut S, group: &mut Group, path: &PathView) {
        // SAFETY: as above.
        unsafe { (self.timeout)(self.state(state), group, 0, path) };
    }

    /// The results of an interval.
    pub fn report<S>(&self, state: &mut S, path: &PathView, report: &Report, others: Real) {
        // SAFETY: as above.
        unsafe { (self.report)(self.state(state), path, report, others) };
    }
}

unsafe extern "C" {
    pub static mp_mpcc_loss: PacedController;
    pub static mp_mpcc_lat: PacedController;
    pub static mp_ol: PacedController;
    pub static mp_reno: WindowController;
    pub static mp_lia: WindowController;
    pub static mp_olia: WindowController;
    pub static mp_balia: WindowController;
    pub static mp_uni: WindowController;
    pub static mp_wvegas: WindowController;
    pub static mp_tccc: WindowController;
    fn host_log2(x: Real) -> i64;
    fn host_exp2(log: i64) -> Real;
    fn host_power(x: Real, numerator: u32, denominator: u32) -> Real;
}

pub fn log2(x: Real) -> f64 {
    // SAFETY: pure arithmetic on its arguments.
    unsafe { host_log2(x) as f64 / 2_f64.powi(40) }
}

pub fn exp2(log: f64) -> Real {
    // SAFETY: as above.
    unsafe { host_exp2((log * 2_f64.powi(40)) as i64) }
}

pub fn power(x: Real, numerator: u32, denominator: u32) -> Real {
    // SAFETY: as above.
    unsafe { host_power(x, numerator, denominator) }
}

/// A controller's subflows, as the kernel would hold them.
#[derive(Clone, Debug)]
pub struct Twin<L> {
    pub group: Group,
    pub sockets: [SocketView; MAX_SUBFLOWS],
    pub states: [WindowState<L>; MAX_SUBFLOWS],
}

impl<L: Copy + Default> Twin<L> {
    /// No subflows.
    pub fn new() -> Self {
        let socket = SocketView { clamp: u32::MAX, ssthresh: 0x7fff_ffff, ..SocketView::default() };
        Self {
            group: Group::default(),
            sockets: [socket; MAX_SUBFLOWS],
            states: [WindowState::default(); MAX_SUBFLOWS],
        }
    }

    pub fn window(&self, own: usize) -> f64 {
        f64::from(self.sockets[own].cwnd) + packets(u64::from(self.states[own].window_rest))
    }

    /// Window in packets times 2^32.
    pub fn window_q32(&self, own: usize) -> u64 {
        u64::from(self.sockets[own].cwnd) << 32 | u64::from(self.states[own].window_rest)
    }

    pub fn set_window(&mut self, own: usize, q32: u64) {
        self.sockets[own].cwnd = (q32 >> 32) as u32;
        self.states[own].window_rest = q32 as u32;
        self.group.members[own].window = real(packets(q32));
    }

    pub fn threshold(&self, own: usize) -> f64 {
        let (socket, state) = (&self.sockets[own], &self.states[own]);
        let rest = if state.threshold == socket.ssthresh { state.threshold_rest } else { 0 };
        f64::from(socket.ssthresh) + packets(u64::from(rest))
    }

    pub fn set_threshold(&mut self, own: usize, q32: u64) {
        self.sockets[own].ssthresh = (q32 >> 32) as u32;
        self.states[own].threshold = (q32 >> 32) as u32;
        self.states[own].threshold_rest = q32 as u32;
    }

    /// Runs one of the controller's steps on a subflow.
    fn step(&mut self, controller: &WindowController, own: usize, run: impl FnOnce(*const Step)) {
        assert_eq!(controller.state_size, size_of::<WindowState<L>>() as u64, "the state is laid out otherwise");
        let step = Step {
            group: &raw mut self.group,
            own: own as u32,
            state: ptr::from_mut(&mut self.states[own]).cast(),
            socket: &raw mut self.sockets[own],
        };
        run(&step);
    }

    pub fn join(&mut self, controller: &WindowController, own: usize) {
        self.group.used |= 1 << own;
        self.group.members[own] = Member::default();
        // SAFETY: the step points to live values of the types that the program expects; `own` is below MAX_SUBFLOWS.
        self.step(controller, own, |step| unsafe { (controller.join)(step) });
    }

    /// A sample; of the socket only the threshold is written back, as by the kernel's callback.
    pub fn sample(&mut self, controller: &WindowController, own: usize, rtt_us: u32) {
        let held = self.sockets[own];
        // SAFETY: as above.
        self.step(controller, own, |step| unsafe { (controller.sample)(step, rtt_us) });
        self.sockets[own] = SocketView { ssthresh: self.sockets[own].ssthresh, ..held };
    }

    pub fn ack(&mut self, controller: &WindowController, own: usize, packets: u32, limited: bool) {
        // SAFETY: as above.
        self.step(controller, own, |step| unsafe { (controller.ack)(step, packets, u32::from(limited)) });
    }

    /// A loss, and the fall of the window to the threshold, which is the kernel's part.
    pub fn loss(&mut self, controller: &WindowController, own: usize) {
        // SAFETY: as above.
        self.step(controller, own, |step| unsafe { (controller.loss)(step) });
        self.sockets[own].cwnd = self.sockets[own].ssthresh;
    }

    /// A timeout as the kernel reports it: a loss, then that it was a timeout; the window becomes one packet.
    pub fn timeout(&mut self, controller: &WindowController, own: usize) {
        // SAFETY: as above.
        self.step(controller, own, |step| unsafe { (controller.loss)(step) });
        // SAFETY: as above.
        self.step(controller, own, |step| unsafe { (controller.timeout)(step, 1) });
        self.sockets[own].cwnd = 1;
    }

    /// A timeout in a recovery: the kernel says only that it was one.
    pub fn timeout_in_recovery(&mut self, controller: &WindowController, own: usize) {
        // SAFETY: as above.
        self.step(controller, own, |step| unsafe { (controller.timeout)(step, 0) });
        self.sockets[own].cwnd = 1;
    }
}

/// Random states.
#[derive(Debug)]
pub struct Dice(Xoshiro256PlusPlus);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    pub fn word(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in `0..end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end
    }

    /// Uniform in 0..1.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / 2_f64.powi(53)
    }

    /// Spread evenly over orders of magnitude.
    pub fn spread(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.unit())
    }
}

/// The largest deviation seen.
#[derive(Debug, Default)]
pub struct Worst {
    pub error: f64,
    pub steps: u64,
}

impl Worst {
    /// Compares changes: fails beyond half a percent, but for what the last place of the windows holds.
    pub fn compare(&mut self, what: &str, ours: f64, theirs: f64, last_place: f64, state: &dyn core::fmt::Debug) {
        self.steps += 1;
        let apart = (ours - theirs).abs();
        if apart <= last_place {
            return;
        }
        let error = apart / theirs.abs();
        self.error = self.error.max(error);
        assert!(error <= 0.005, "{what}: {ours} is not {theirs} ({error:.5}) from {state:#?}");
    }
}
