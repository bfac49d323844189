//! MPCC over a path on which nothing arrives for a moment.

/// Goodput of the three seconds after such a moment at the tenth, over the capacity of the link that met it.
fn after(cc: &str, brake: &str, begins: &str, ends: &str) -> f64 {
    let text = format!(
        "duration = \"13s\"\nwarmup = \"10s\"\n\
         [[link]]\nname = \"a\"\nrate = \"50Mbit\"\ndelay = \"7500us\"\nqueue = \"375kB\"\n\
         schedule = [{{ at = \"10s\", {begins} }}, {{ at = \"10.15s\", {ends} }}]\n\
         [[connection]]\nname = \"c\"\npath = [{{ route = [\"a\"] }}]\n\
         cc = \"{cc}:slow-start=tolerant,brake={brake},queue=heeded,low=near,bursts=heeded\"\n"
    );
    let scenario = manypath_scenario::parse(&text, "moment.toml", std::path::Path::new(".")).unwrap();
    manypath_sim::run(&scenario, 1).unwrap().goodput_bps / 50e6
}

#[test]
fn mpcc_goes_on_after_a_moment_where_only_what_lasts_is_braked() {
    for (cc, most) in [("mpcc-loss", 0.83), ("mpcc-latency", 0.5)] {
        let lost = |brake| after(cc, brake, "loss = \"100%\"", "loss = \"0%\"");
        let held = |brake| after(cc, brake, "rate = \"0bit\"", "rate = \"50Mbit\"");
        // 150 of 3000 ms, and a few that recovery takes.
        for (what, any, lasting) in [("lost", lost("any"), lost("lasting")), ("held", held("any"), held("lasting"))] {
            assert!(any < most, "{cc}, {what}: {any}");
            assert!(lasting > 0.85, "{cc}, {what}: {lasting}");
        }
    }
}
