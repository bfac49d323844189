/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What an ascent climbs, as crates/cc/src/ascent/utility.rs. */
#ifndef MANYPATH_UTILITY_H
#define MANYPATH_UTILITY_H

#include "ascent_config.h"
#include "power.h"
#include "signed.h"
#include "tunables.h"

/* How many standard errors of a loss rate are no chance. */
#define LOSS_ERRORS 3

/* A rate and what came of it. */
struct sample {
	real rate;
	real loss;
	struct sreal slope;
};

/* Units of the utility's rate in one Mbit/s. */
INLINE real utility_scale(void)
{
	return real_of(tunables.units == UNITS_BYTES ? 125000 : 1);
}

/* MPCC eq. 2: T^0.9 - b T loss - g T slope, T the total rate (s7.1 gives the exponent). */
SHARED u32 utility_into(struct sreal *utility, const struct sample *sample, real others)
{
	struct sreal reward, loss, delay;
	real total;

	if (!utility || !sample)
		return 0;
	total = real_mul(real_add(sample->rate, others), utility_scale());
	reward = positive(real_power(total, 9, 10));
	loss = positive(real_mul(real_mul(total, sample->loss), real_of_ppm(tunables.loss_weight_ppm)));
	delay = sreal_scale(sample->slope, real_mul(total, real_of_ppm(tunables.latency_weight_ppm)));

	*utility = sreal_sub(sreal_sub(reward, loss), delay);
	return 0;
}

INLINE struct sreal utility_of(const struct sample *sample, real others)
{
	struct sreal utility = {};

	utility_into(&utility, sample, others);
	return utility;
}

/* Change of utility per unit of rate between two samples; zero if the rates are equal. */
INLINE struct sreal utility_gradient(const struct sample *from, const struct sample *to, real others)
{
	struct sreal distance = sreal_sub(positive(to->rate), positive(from->rate));
	struct sreal change = sreal_sub(utility_of(to, others), utility_of(from, others));
	struct sreal gradient = sreal_divide(change, real_mul(distance.size, utility_scale()));

	return distance.negative ? sreal_negate(gradient) : gradient;
}

/*
 * Whether of so many packets more were lost than any rate is worth, and than chance explains: d(T^0.9 - b T L)/dT is zero at a loss of
 * 0.9 T^-0.1 / b.
 */
SHARED u32 is_unbearable(const struct sample *sample, u32 packets, real others)
{
	real total, reward, bearable, excess, error;

	if (!sample || packets < OVERLOAD_PACKETS)
		return 0;
	total = real_mul(real_add(sample->rate, others), utility_scale());
	reward = real_div(real_mul(real_of(9), real_power(total, 9, 10)), real_mul(real_of(10), total));
	bearable = real_div(reward, real_of_ppm(tunables.loss_weight_ppm));
	if (sample->loss <= bearable)
		return 0;
	excess = real_sub(sample->loss, bearable);
	error = real_div(real_mul(bearable, real_sub(REAL_ONE, bearable)), real_of(packets));
	return real_mul(excess, excess) > real_mul(real_of(LOSS_ERRORS * LOSS_ERRORS), error);
}

/* The mean of two samples at one rate: utilities are linear in loss and slope. */
INLINE struct sample sample_mean(const struct sample *a, const struct sample *b)
{
	struct sreal slopes = sreal_add(a->slope, b->slope);

	return (struct sample){
		.rate = real_shift(real_add(a->rate, b->rate), -1),
		.loss = real_shift(real_add(a->loss, b->loss), -1),
		.slope = { real_shift(slopes.size, -1), slopes.negative },
	};
}

#endif
