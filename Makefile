# `make demo` runs the main job, `make test` passes the tests. Both need git, make, a C compiler and Rust from rustup.
CARGO ?= cargo

.PHONY: help demo test python explore bench bench-ns3 bench-kernel audit fuzz test-kernels bench-emu

help:
	@echo 'make demo   download one file over WiFi, LTE and both; prints a table, writes manypath-demo.html'
	@echo 'make test   formatting, lints, tests and documentation, as CI runs them'
	@echo 'make python  the tests of the Python package alone'
	@echo 'make explore  the property tests with new random cases, EXPLORE_CASES (default 2000) where a test sets no number'
	@echo 'make test-kernels  every BPF controller in stock kernels under qemu: KERNELS (Debian packages), TRANSFERS (controllers)'
	@echo 'make bench  session and codec, loopback goodput, schedulers, controllers'
	@echo 'make bench-ns3  the simulator against ns-3 on one job'
	@echo 'make bench-kernel  the kernel controllers, as root on an idle machine; writes the tables of docs/kernel.md'
	@echo 'make bench-emu  how exact emulated links are on this machine, and what they cost; needs root'
	@echo 'make fuzz   the record parser, the session, scenario files and their simulation, FUZZ_SECONDS each (default 1800); needs nightly and cargo-fuzz'
	@echo 'make audit  licences and advisories of the dependencies; builds cargo-deny first'

demo:
	@tools/needs.sh
	@$(CARGO) run --quiet --release --bin manypath -- demo $(DEMO_ARGS)

test:
	@tools/test.sh

# Debian 12's stock kernel if nothing else is said; needs no KVM. Packages are kept in ~/.cache/manypath/kernels.
test-kernels:
	@tools/kernels/run.sh

python:
	@tools/python.sh

# A case that fails is kept in a *.proptest-regressions file: commit it with the fix.
EXPLORE_CASES ?= 2000
explore:
	PROPTEST_CASES=$(EXPLORE_CASES) $(CARGO) test --release --workspace --no-fail-fast

bench:
	@$(CARGO) bench --workspace

bench-emu:
	@$(CARGO) run --quiet --release --bin manypath -- emu check $(EMU_ARGS)

# Needs ns-3: apt-get install libns3-dev. The last line is `ratio: N`.
bench-ns3:
	@benches/ns3/run.sh 200

# BENCH_KERNEL_ARGS: parts (baseline buffers fairness cpu target-rate validation), --write, --minutes N, --short and more: the program's head.
BENCH_KERNEL_ARGS ?= --write
bench-kernel:
	@tools/needs.sh kernel
	$(CARGO) build --release -p manypath --features kernel
	$(CARGO) run --release -p manypath-kernel --features kernel --example measure -- $(BENCH_KERNEL_ARGS)

FUZZ_SECONDS ?= 1800
fuzz:
	cd fuzz && cargo +nightly fuzz run record -- -max_total_time=$(FUZZ_SECONDS) -max_len=1600
	cd fuzz && cargo +nightly fuzz run session -- -max_total_time=$(FUZZ_SECONDS) -max_len=4096
	cd fuzz && cargo +nightly fuzz run scenario -- -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -dict=scenario.dict
	cd fuzz && cargo +nightly fuzz run simulation -- -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -dict=scenario.dict

audit:
	@command -v cargo-deny >/dev/null || $(CARGO) install --locked cargo-deny
	@$(CARGO) deny check
