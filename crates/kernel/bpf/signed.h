/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Numbers of either sign: a `real` and its sign. Zero is not negative. */
#ifndef MANYPATH_SIGNED_H
#define MANYPATH_SIGNED_H

#include "real.h"

struct sreal {
	real size;
	u64 negative;
};

INLINE struct sreal sreal_of(s64 n)
{
	return n < 0 ? (struct sreal){ real_of(-(u64)n), 1 } : (struct sreal){ real_of((u64)n), 0 };
}

INLINE struct sreal positive(real size)
{
	return (struct sreal){ size, 0 };
}

INLINE struct sreal sreal_negate(struct sreal a)
{
	return (struct sreal){ a.size, a.size && !a.negative };
}

INLINE struct sreal sreal_add(struct sreal a, struct sreal b)
{
	if (a.negative == b.negative)
		return (struct sreal){ real_add(a.size, b.size), a.negative };
	if (a.size == b.size)
		return positive(0);
	if (a.size > b.size)
		return (struct sreal){ real_sub(a.size, b.size), a.negative };
	return (struct sreal){ real_sub(b.size, a.size), b.negative };
}

INLINE struct sreal sreal_sub(struct sreal a, struct sreal b)
{
	return sreal_add(a, sreal_negate(b));
}

/* a * b with b of no sign. */
INLINE struct sreal sreal_scale(struct sreal a, real b)
{
	return (struct sreal){ real_mul(a.size, b), a.negative && b };
}

INLINE struct sreal sreal_divide(struct sreal a, real b)
{
	return (struct sreal){ real_div(a.size, b), a.negative && b };
}

/* -1, 0 or 1. */
INLINE s32 sreal_sign(struct sreal a)
{
	return a.size ? (a.negative ? -1 : 1) : 0;
}

#endif
