/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The parameters of ascent.h. */
#ifndef MANYPATH_ASCENT_CONFIG_H
#define MANYPATH_ASCENT_CONFIG_H

#include "types.h"

/* As in crates/cc/src/ascent/config.rs, where they are explained; choices in the order given there. */
struct tunables {
	u64 loss_weight_ppm;
	u64 latency_weight_ppm;
	u64 units;
	u64 mi_ppm;
	u64 mi_packets;
	u64 min_slope_ppm;
	u64 omega_ppm;
	u64 low;
	u64 theta_ppm;
	u64 steps;
	u64 min_step_ppm;
	u64 bound_ppm;
	u64 bound_step_ppm;
	u64 swing;
	u64 initial_ppm;
	u64 min_rate_ppm;
	u64 slow_start;
	u64 leave;
	u64 publish;
	u64 timeout;
	u64 brake;
	u64 queue;
	u64 bursts;
};

enum { UNITS_MBIT, UNITS_BYTES };
enum { LOW_LEAST, LOW_HALF, LOW_NEAR };
/* LOW_NEAR: the share of its own rate by which a subflow probes at most, and by which a step lowers it at most, 2^-2. */
#define NEAR_SHIFT (-2)
/* LOW_NEAR: distances and steps are shares of so many mean subflows' rate at most. */
#define NEAR_MEANS 2
/* Silence lowers a rate no further: the smallest rate of MPCC's release. */
#define AWAY_PPM 200000
enum { STEPS_RELEASE, STEPS_PAPER };
enum { START_PAPER, START_RELEASE, START_TOLERANT };
enum { LEAVE_BETTER, LEAVE_LAST };
enum { PUBLISH_INTERVAL, PUBLISH_DECISION };
enum { TIMEOUT_HALVE, TIMEOUT_BACKOFF, TIMEOUT_KEEP };
enum { BRAKE_HELD, BRAKE_ANY, BRAKE_LASTING };
enum { QUEUE_IGNORED, QUEUE_HEEDED };
enum { BURSTS_IGNORED, BURSTS_HEEDED };

#ifdef __bpf__
extern struct tunables tunables;
#else
static struct tunables tunables;
#endif

#endif
