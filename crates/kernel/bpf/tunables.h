/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Parameters that user space may set at any time: `TUNABLES = { .name = default, ... };` after the definition of struct
 * tunables, whose members are u64 (docs/kernel-maps.md).
 */
#ifndef MANYPATH_TUNABLES_H
#define MANYPATH_TUNABLES_H

#include "real.h"

#ifdef __bpf__
#define TUNABLES struct tunables tunables __attribute__((section(".data.tunables")))
#else
#define TUNABLES static struct tunables tunables
#endif

#define MILLION 1000000

/* A parameter in millionths. */
INLINE real real_of_ppm(u64 ppm)
{
	return real_div(real_of(ppm), real_of(MILLION));
}

#endif
