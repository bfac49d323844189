/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The sizes of an ascent's steps, as crates/cc/src/ascent/momentum.rs. */
#ifndef MANYPATH_MOMENTUM_H
#define MANYPATH_MOMENTUM_H

#include "ascent_config.h"
#include "signed.h"
#include "tunables.h"

/* What step sizes remember of earlier decisions. A decision is a move, or to stay where probing found none. */
struct momentum {
	/* -1, 1, or 0 for staying; meaningless before the first decision. */
	s32 direction;
	u32 has_decided;
	u32 amplifier;
	u32 bound;
	u32 swing;
};

/* Whether a gradient points where the last decision went. */
INLINE bool momentum_agrees(const struct momentum *momentum, s32 direction)
{
	return direction * momentum->direction > 0;
}

/* A queue takes what is sent too fast: the next step is as if it were the first. */
INLINE void momentum_calm(struct momentum *momentum)
{
	momentum->amplifier = 0;
	momentum->bound = 0;
}

/* A gradient points elsewhere than the last decision: steps begin small again. */
INLINE void momentum_turn(struct momentum *momentum)
{
	momentum_calm(momentum);
	if (momentum->has_decided && momentum->swing < tunables.swing)
		momentum->swing++;
}

INLINE void momentum_decide(struct momentum *momentum, s32 direction)
{
	momentum->direction = direction;
	momentum->has_decided = 1;
}

/* The largest step after the bound was widened `notches` times. */
INLINE real bound_at(u32 notches, real total)
{
	real notch = real_mul(real_of(notches), real_of_ppm(tunables.bound_step_ppm));

	return real_mul(real_add(real_of_ppm(tunables.bound_ppm), notch), total);
}

/* The fewest notches, but not more than now, whose bound holds the step (Vivace s4.3). */
INLINE u32 fewest_notches(real wanted, u32 now, real total)
{
	real least = bound_at(0, total), notches;
	u64 whole;

	if (wanted <= least)
		return 0;
	notches = real_div(real_sub(wanted, least), real_mul(real_of_ppm(tunables.bound_step_ppm), total));
	whole = real_floor(notches);
	whole += real_of(whole) < notches;
	return whole < now ? (u32)whole : now;
}

/* The factor of this step; it grows while the direction stays and no swing is held. */
INLINE u64 momentum_amplified(struct momentum *momentum, bool goes_on)
{
	u64 n = (u64)momentum->amplifier + 1;
	bool swings = goes_on && momentum->swing;

	if (swings)
		momentum->swing--;
	/* MPCC's release grows after the step. */
	if (tunables.steps != STEPS_PAPER) {
		if (goes_on && !swings)
			momentum->amplifier += 2;
		return n;
	}
	/* Vivace s4.3: m(n) = n up to 3, 2n - 3 beyond; n counts this decision. */
	if (!swings || !momentum->amplifier)
		momentum->amplifier++;
	n = momentum->amplifier;
	return n > 3 ? 2 * n - 3 : n;
}

/* The change bound cuts a step, and widens or narrows. */
INLINE real momentum_bounded(struct momentum *momentum, real wanted, real total, bool goes_on)
{
	real bound = bound_at(momentum->bound, total);

	if (wanted > bound) {
		/* MPCC's release begins again without a notch after a turn that was cut. */
		momentum->bound += goes_on || tunables.steps == STEPS_PAPER;
		return bound;
	}
	if (tunables.steps == STEPS_PAPER)
		momentum->bound = fewest_notches(wanted, momentum->bound, total);
	else if (momentum->bound)
		momentum->bound--;
	return wanted;
}

/* Decides to follow a gradient of this size: the size of the step at own rate `own` and total rate `total`. */
SHARED real momentum_step(struct momentum *momentum, s32 direction, real gradient, real own, real total)
{
	real wanted;
	bool goes_on;

	if (!momentum)
		return 0;
	goes_on = momentum_agrees(momentum, direction);
	if (!goes_on)
		momentum_turn(momentum);
	momentum_decide(momentum, direction);
	wanted = real_mul(real_of_ppm(tunables.theta_ppm), gradient);
	wanted = real_mul(wanted, real_of(momentum_amplified(momentum, goes_on)));
	/* The release's order: the smallest step may exceed the bound. */
	wanted = real_max(momentum_bounded(momentum, wanted, total, goes_on), real_of_ppm(tunables.min_step_ppm));
	/* At most half of the own rate, so that rates stay positive (MPCC's release). */
	return real_min(wanted, real_shift(own, tunables.low == LOW_NEAR && direction < 0 ? NEAR_SHIFT : -1));
}

#endif
