/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* NewReno (RFC 5681) on every subflow by itself, as crates/cc/src/reno.rs: the control for the coupled ones. */
#ifndef MANYPATH_RENO_H
#define MANYPATH_RENO_H

#include "window.h"

/* RFC 5681 s3.1: one packet per window acknowledged. */
INLINE struct growth reno_increase(const struct step *step)
{
	return (struct growth){ .up = real_div(REAL_ONE, member_of(step)->window) };
}

#endif
