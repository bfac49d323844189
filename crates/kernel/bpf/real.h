/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Numbers of the control laws: positive, 32 bits of precision, in one word. Why: docs/decisions/fixed-point.md.
 *
 * The lower half of the word is a mantissa with its highest bit set, the upper half an exponent:
 * value = mantissa * 2^(exponent - REAL_BIAS). Zero is the word zero. So words compare as their values do.
 *
 * Nothing overflows: what is too large or too small for the exponent cannot be made from 64-bit integers by the laws.
 * Division by zero gives zero, as BPF's does.
 *
 * The functions are not static: the verifier then checks each once, not at every call.
 */
#ifndef MANYPATH_REAL_H
#define MANYPATH_REAL_H

#include "types.h"

typedef u64 real;

#define REAL_BIAS 1024
#define REAL_ONE REAL_WORD(0x80000000ULL, REAL_BIAS - 31)
#define REAL_WORD(mantissa, exponent) ((u64)(exponent) << 32 | (mantissa))

/* Position of the highest bit of a number that is not zero. BPF has no instruction for it. */
INLINE u32 highest_bit(u64 n)
{
	u32 at = 0;

	if (n >> 32) {
		n >>= 32;
		at += 32;
	}
	if (n >> 16) {
		n >>= 16;
		at += 16;
	}
	if (n >> 8) {
		n >>= 8;
		at += 8;
	}
	if (n >> 4) {
		n >>= 4;
		at += 4;
	}
	if (n >> 2) {
		n >>= 2;
		at += 2;
	}
	return at + (u32)(n >> 1);
}

/* n * 2^scale, rounded down to 32 bits. */
INLINE real real_scaled(u64 n, s32 scale)
{
	u32 top;

	if (!n)
		return 0;
	top = highest_bit(n);
	n = top > 31 ? n >> ((top - 31) & 63) : n << ((31 - top) & 63);
	return REAL_WORD(n, (u32)(REAL_BIAS + scale + (s32)top - 31));
}

SHARED real real_of(u64 n)
{
	return real_scaled(n, 0);
}

/* A fixed-point number with 32 fractional bits. */
SHARED real real_of_q32(u64 n)
{
	return real_scaled(n, -32);
}

SHARED real real_mul(real a, real b)
{
	u64 product;
	u32 exponent;

	if (!a || !b)
		return 0;
	product = (a & 0xffffffff) * (b & 0xffffffff);
	exponent = (u32)(a >> 32) + (u32)(b >> 32) - REAL_BIAS + 31;
	if (product >> 63)
		return REAL_WORD(product >> 32, exponent + 1);
	return REAL_WORD(product >> 31, exponent);
}

SHARED real real_div(real a, real b)
{
	u64 quotient;
	u32 exponent;

	if (!a || !b)
		return 0;
	quotient = ((a & 0xffffffff) << 32) / (b & 0xffffffff);
	exponent = (u32)(a >> 32) - (u32)(b >> 32) + REAL_BIAS - 32;
	if (quotient >> 32)
		return REAL_WORD(quotient >> 1, exponent + 1);
	return REAL_WORD(quotient, exponent);
}

SHARED real real_add(real a, real b)
{
	real larger = a > b ? a : b, smaller = a > b ? b : a;
	u32 apart = (u32)(larger >> 32) - (u32)(smaller >> 32);
	u64 sum;

	if (!smaller || apart > 31)
		return larger;
	sum = (larger & 0xffffffff) + ((smaller & 0xffffffff) >> apart);
	if (sum >> 32)
		return REAL_WORD(sum >> 1, (u32)(larger >> 32) + 1);
	return REAL_WORD(sum, larger >> 32);
}

/* a - b, zero if b is larger. */
SHARED real real_sub(real a, real b)
{
	u32 apart = (u32)(a >> 32) - (u32)(b >> 32);
	u64 difference;

	if (a <= b)
		return 0;
	if (!b || apart > 31)
		return a;
	/* Below the last place of a, 31 more bits are kept: near-equal numbers lose nothing. */
	difference = ((a & 0xffffffff) << 31) - (((b & 0xffffffff) << 31) >> apart);
	return real_scaled(difference, (s32)(a >> 32) - REAL_BIAS - 31);
}

INLINE real real_min(real a, real b)
{
	return a < b ? a : b;
}

INLINE real real_max(real a, real b)
{
	return a > b ? a : b;
}

INLINE real real_clamp(real x, real low, real high)
{
	return real_min(real_max(x, low), high);
}

/* a * 2^by. */
INLINE real real_shift(real a, s32 by)
{
	return a ? a + ((u64)(s64)by << 32) : 0;
}

/* The number times 2^scale, rounded down; at most 2^63. */
INLINE u64 real_to(real a, s32 scale)
{
	s32 exponent = (s32)(a >> 32) - REAL_BIAS + scale;

	if (!a || exponent < -31)
		return 0;
	if (exponent > 31)
		return 1ULL << 63;
	return exponent < 0 ? (a & 0xffffffff) >> -exponent : (a & 0xffffffff) << exponent;
}

SHARED u64 real_floor(real a)
{
	return real_to(a, 0);
}

/* With 32 fractional bits. */
SHARED u64 real_to_q32(real a)
{
	return real_to(a, 32);
}

#endif
