//! A controller with weights, steered towards a target rate at least cost (Uni-MPTCP): [`OmegaSearch`] driven by the
//! controller's own timer, so that every engine has it.
//!
//! The search is about two paths, a cheap one and a costly one: [`SubflowView::cost`](manypath_core::SubflowView) says which
//! is which, and between equal costs the one that was heard of later is taken for the costly one. It begins when two subflows
//! have had something acknowledged, and begins anew when there is another or one leaves. With one subflow, or more than two,
//! all weights are one: the paper has no rule for them.

use manypath_core::{Bytes, Duration, Parameter, Params, Rate, SpecError, SubflowId, Time, View};

use crate::controller::{CongestionControl, Limits, Probe, SubflowInit};
use crate::event::Event;
use crate::omega::{Config, OmegaSearch};

/// A controller that listens to [`Event::Weight`], with the search that tells it weights.
#[derive(Clone, Debug)]
pub struct Targeted<C> {
    inner: C,
    config: Config,
    /// The rate wanted, in bytes of records delivered.
    target: Rate,
    /// Subflows that had something acknowledged, in the order of that.
    subflows: Vec<SubflowId>,
    search: Option<Search>,
    /// Whether weights of a search that is over are still in force.
    stale: bool,
}

/// A search and the subflows it is about.
#[derive(Clone, Debug)]
struct Search {
    omega: OmegaSearch,
    /// The cheap one and the costly one.
    paths: [SubflowId; 2],
    /// The weights in force.
    weights: [f64; 2],
}

impl<C: CongestionControl> Targeted<C> {
    /// `inner`, steered towards `target`.
    pub const fn new(inner: C, config: Config, target: Rate) -> Self {
        Self { inner, config, target, subflows: Vec::new(), search: None, stale: false }
    }

    /// The subflows are others than before: what was found is void.
    fn abandon(&mut self) {
        self.stale |= self.search.take().is_some();
    }

    /// Begins a search if there are two subflows and none is under way; clears up after one that was abandoned.
    fn attend(&mut self, now: Time, view: &View) {
        if self.search.is_some() {
            return;
        }
        if core::mem::take(&mut self.stale) {
            for &id in &self.subflows {
                self.inner.on_event(now, id, &Event::Weight(1.0), view);
            }
        }
        let &[first, second] = self.subflows.as_slice() else { return };
        let (Some(one), Some(other)) = (view.get(first), view.get(second)) else { return };
        let paths = if one.cost > other.cost { [second, first] } else { [first, second] };
        let omega = OmegaSearch::new(now, self.config, self.target);
        self.search = Some(Search { omega, paths, weights: [1.0; 2] });
        self.poll(now, view);
    }

    /// Lets the search look at what was delivered, and passes its weights on.
    fn poll(&mut self, now: Time, view: &View) {
        let Some(search) = &mut self.search else { return };
        let delivered = search.paths.map(|id| view.get(id).map_or(Bytes::ZERO, |subflow| subflow.delivered));
        let weights = search.omega.poll(now, delivered);
        let changed = weights.iter().zip(&search.weights).any(|(new, old)| new.to_bits() != old.to_bits());
        if changed {
            search.weights = weights;
            for (id, weight) in search.paths.into_iter().zip(weights) {
                self.inner.on_event(now, id, &Event::Weight(weight), view);
            }
        }
    }
}

/// Reads the target of a registry row with the parameters of `PARAMETERS`; `None`: there is no target.
///
/// # Errors
/// If a value is out of range.
pub fn from_params(params: &Params<'_>) -> Result<Option<(Config, Rate)>, SpecError> {
    let word = |key: &'static str| Some(params.text(key)).filter(|text| *text != "off");
    let time = |key: &'static str| {
        let parse = |text: &str| text.parse().ok().filter(|time: &Duration| (SHORTEST..=LONGEST).contains(time));
        word(key).map(|text| parse(text).ok_or_else(|| params.bad_value(key))).transpose()
    };
    let config = Config {
        epoch: time("epoch")?.ok_or_else(|| params.bad_value("epoch"))?,
        period: time("period")?,
        change: params.number("change", 0.01, f64::INFINITY)?,
        correct: params.switch("correct")?,
        ..Config::default()
    };
    let target = word("target").map(|text| {
        let rate = text.parse().ok().filter(|rate: &Rate| !rate.is_zero());
        rate.ok_or_else(|| params.bad_value("target"))
    });
    Ok(target.transpose()?.map(|target| (config, target)))
}

/// The shortest epoch and period.
const SHORTEST: Duration = Duration::from_millis(10);
/// The longest.
const LONGEST: Duration = Duration::from_secs(86_400);

/// The parameters of the target.
pub(crate) const PARAMETERS: [Parameter; 5] = [
    Parameter {
        name: "target",
        default: "off",
        range: "a rate such as 2.5Mbit, or off",
        meaning: "with two paths: find the weight of the costlier one that gives this rate (Uni-MPTCP s4.2)",
    },
    Parameter {
        name: "epoch",
        default: "20s",
        range: "10ms to 86400s",
        meaning: "how long each weight is tried; its second half is measured (Uni-MPTCP s4.3.1)",
    },
    Parameter {
        name: "period",
        default: "off",
        range: "10ms to 86400s, or off",
        meaning: "search again after this long (Uni-MPTCP s4.3.3 T: 300s)",
    },
    Parameter {
        name: "change",
        default: "0.3",
        range: "a number from 0.01, or inf",
        meaning: "search again when a path's rate changes by this share of the connection's",
    },
    Parameter {
        name: "correct",
        default: "off",
        range: "on or off",
        meaning: "correct the weight held by the rate it gives, an epoch at a time, in place of searching again (not of the paper)",
    },
];

impl<C: CongestionControl> CongestionControl for Targeted<C> {
    fn add_subflow(&mut self, now: Time, id: SubflowId, init: SubflowInit) {
        self.inner.add_subflow(now, id, init);
    }

    fn remove_subflow(&mut self, now: Time, id: SubflowId) {
        self.inner.remove_subflow(now, id);
        if self.subflows.contains(&id) {
            self.subflows.retain(|held| *held != id);
            self.abandon();
        }
    }

    fn on_event(&mut self, now: Time, id: SubflowId, event: &Event, view: &View) {
        if matches!(event, Event::Acked(_)) && !self.subflows.contains(&id) {
            self.subflows.push(id);
            self.abandon();
        }
        self.attend(now, view);
        self.inner.on_event(now, id, event, view);
    }

    fn answers_marks(&self) -> bool {
        self.inner.answers_marks()
    }

    fn limits(&self, id: SubflowId) -> Limits {
        self.inner.limits(id)
    }

    fn next_timer(&self) -> Option<Time> {
        let search = self.search.as_ref().map(|search| search.omega.next_timer());
        [self.inner.next_timer(), search].into_iter().flatten().min()
    }

    fn on_timer(&mut self, now: Time, view: &View) {
        if self.inner.next_timer().is_some_and(|at| at <= now) {
            self.inner.on_timer(now, view);
        }
        self.poll(now, view);
    }

    fn inspect(&self, id: SubflowId, out: &mut dyn Probe) {
        self.inner.inspect(id, out);
        if let Some(search) = &self.search {
            let [cheap, costly] = search.weights;
            out.value("omega", costly / cheap);
        }
    }
}

#[cfg(test)]
mod tests {
    use manypath_core::SubflowView;

    use super::*;
    use crate::aimd::Aimd;
    use crate::event::Acked;
    use crate::uni_mptcp::UniMptcp;

    const INIT: SubflowInit = SubflowInit::new(Bytes::new(1000), Bytes::new(10_000));

    /// Two subflows with these costs, and what they delivered.
    fn view(costs: [f64; 2], delivered: [u64; 2]) -> View {
        let mut view = View::default();
        for ((id, cost), delivered) in (0..).zip(costs).zip(delivered) {
            let subflow = SubflowView::new(SubflowId(id), Bytes::new(1000));
            view.subflows.push(SubflowView { cost, delivered: Bytes::new(delivered), ..subflow });
        }
        view
    }

    fn targeted(mbps: f64) -> Targeted<Aimd<UniMptcp>> {
        let mut controller =
            Targeted::new(Aimd::new(UniMptcp::default(), false), Config::default(), Rate::from_mbps(mbps));
        controller.add_subflow(Time::ZERO, SubflowId(0), INIT);
        controller.add_subflow(Time::ZERO, SubflowId(1), INIT);
        controller
    }

    /// The value that a controller reports under a name.
    fn reported(controller: &dyn CongestionControl, id: u32, name: &'static str) -> Option<f64> {
        struct Find(&'static str, Option<f64>);
        impl Probe for Find {
            fn value(&mut self, name: &'static str, value: f64) {
                if name == self.0 {
                    self.1 = Some(value);
                }
            }
        }
        let mut find = Find(name, None);
        controller.inspect(SubflowId(id), &mut find);
        find.1
    }

    const ACKED: Event = Event::Acked(Acked {
        packet: manypath_core::PacketNumber(0),
        bytes: Bytes::new(1000),
        sent_at: Time::ZERO,
        rtt: Duration::from_millis(100),
        delivery_rate: Rate::ZERO,
        delivered_at_send: Bytes::ZERO,
        in_recovery: false,
        app_limited: false,
    });

    /// Runs the timers for `seconds`; the paths deliver 1 Mbit/s, and the second one 4 Mbit/s more at half weight or above.
    fn run(controller: &mut Targeted<Aimd<UniMptcp>>, seconds: u64, costs: [f64; 2]) -> f64 {
        let (costly, mut delivered) = (if costs[0] > costs[1] { 0 } else { 1 }, [0_u64; 2]);
        let mut omega = 0.0;
        for second in 0..seconds {
            let now = Time::from_millis(second * 1000);
            let view = view(costs, delivered);
            controller.on_event(now, SubflowId(0), &ACKED, &view);
            controller.on_event(now, SubflowId(1), &ACKED, &view);
            if controller.next_timer().is_some_and(|at| at <= now) {
                controller.on_timer(now, &view);
            }
            omega = reported(controller, 0, "omega").unwrap_or(f64::NAN);
            delivered[1 - costly] += 125_000;
            delivered[costly] += if omega < 0.5 { 12_500 } else { 500_000 };
        }
        omega
    }

    #[test]
    fn three_weights_are_tried_and_one_is_held() {
        // The curve goes from 1.1 Mbit/s to 5 Mbit/s: 3 Mbit/s is inside.
        let found = run(&mut targeted(3.0), 65, [1.0, 10.0]);
        assert!(found > 0.01 && found < 1.0, "{found}");
        assert!((run(&mut targeted(1.0), 65, [1.0, 10.0]) - 0.01).abs() < 1e-9);
        assert!((run(&mut targeted(9.0), 65, [1.0, 10.0]) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_costly_path_is_known_by_its_cost() {
        let mut controller = targeted(1.0);
        run(&mut controller, 65, [10.0, 1.0]);
        assert_eq!(reported(&controller, 0, "weight"), Some(0.01));
        assert_eq!(reported(&controller, 1, "weight"), Some(1.0));
        let mut equal = targeted(1.0);
        run(&mut equal, 65, [1.0, 1.0]);
        assert_eq!(reported(&equal, 1, "weight"), Some(0.01));
    }

    #[test]
    fn a_third_path_ends_the_search_and_its_loss_begins_one() {
        let (mut controller, costs) = (targeted(1.0), [1.0, 10.0]);
        run(&mut controller, 65, costs);
        let now = Time::from_millis(66_000);
        controller.add_subflow(now, SubflowId(2), INIT);
        let mut view = view(costs, [0; 2]);
        view.subflows.push(SubflowView::new(SubflowId(2), Bytes::new(1000)));
        controller.on_event(now, SubflowId(0), &ACKED, &view);
        assert_eq!(reported(&controller, 1, "omega"), Some(0.01), "a path without traffic is none");
        controller.on_event(now, SubflowId(2), &ACKED, &view);
        assert_eq!(reported(&controller, 1, "weight"), Some(1.0));
        assert_eq!(reported(&controller, 1, "omega"), None);
        assert_eq!(controller.next_timer(), None);
        controller.remove_subflow(now, SubflowId(2));
        controller.on_event(now, SubflowId(0), &ACKED, &view);
        assert_eq!(reported(&controller, 1, "omega"), Some(0.01));
        assert_eq!(controller.next_timer(), Some(now + Config::default().epoch / 2));
    }

    #[test]
    fn of_two_paths_one_that_leaves_ends_the_search() {
        let (mut controller, costs) = (targeted(1.0), [10.0, 1.0]);
        run(&mut controller, 65, costs);
        assert_eq!(reported(&controller, 0, "weight"), Some(0.01));
        let now = Time::from_millis(66_000);
        controller.remove_subflow(now, SubflowId(1));
        controller.on_event(now, SubflowId(0), &ACKED, &view(costs, [0; 2]));
        assert_eq!((reported(&controller, 0, "omega"), reported(&controller, 0, "weight")), (None, Some(1.0)));
    }

    #[test]
    fn parameters_are_read() {
        let read = |text: &str| {
            let spec: manypath_core::AlgorithmSpec = text.parse().unwrap();
            from_params(&Params::new(&spec, &PARAMETERS)?)
        };
        assert_eq!(read("x").unwrap(), None);
        let config = Config { period: Some(Duration::from_secs(300)), change: f64::INFINITY, ..Config::default() };
        assert_eq!(read("x:target=2.5Mbit,period=300s,change=inf").unwrap(), Some((config, Rate::from_mbps(2.5))));
        for bad in ["target=0Mbit", "target=2.5", "epoch=off", "epoch=0s", "period=1", "change=0", "change=nan"] {
            assert!(matches!(read(&format!("x:{bad}")), Err(SpecError::BadValue { .. })), "{bad}");
        }
    }

    #[test]
    fn acknowledgements_reach_the_controller() {
        let mut controller = targeted(1.0);
        controller.on_event(Time::from_millis(100), SubflowId(0), &ACKED, &view([1.0, 10.0], [0; 2]));
        assert_eq!(controller.limits(SubflowId(0)).cwnd, Bytes::new(11_000));
    }
}
