/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Words that the arithmetic is written in, for BPF and for the host: the same sources are compiled for both.
 */
#ifndef MANYPATH_TYPES_H
#define MANYPATH_TYPES_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char s8;
typedef int s32;
typedef long long s64;

typedef u8 __u8;
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;
typedef s32 __s32;
typedef s64 __s64;
typedef u16 __be16;
typedef u32 __be32;
typedef u32 __wsum;

#ifndef __cplusplus
typedef _Bool bool;
enum { false, true };
#endif

#define INLINE static inline __attribute__((always_inline))
#ifdef __bpf__
/* Global to the verifier, which checks it once for all calls, whatever its arguments: so it asks for pointers that are not null, and returns
 * a word. */
#define SHARED __attribute__((noinline))
#else
#define SHARED static inline __attribute__((unused))
#endif

#endif
