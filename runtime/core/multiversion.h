/*
** MB_MULTIVERSION before a function: compiled for AVX-512 (x86-64-v4), for AVX2 with FMA (v3) and
** for the baseline; the loader picks one when the program starts. Named by level, not by processor:
** arch=haswell would mean Intel's only. Sanitizers run before the resolvers may, so they get the
** baseline, and so does a debug build. Multiversion leaf functions, not those with an OpenMP
** region: its outlined body would be the baseline. MB_AVX512 and MB_AVX2 before a function:
** compiled for that level alone, to be called only where mb_has_avx512() or mb_has_avx2() says so.
** Undefined where there is no multiversioning.
*/
#ifndef MB_OPS_MULTIVERSION_H
#define MB_OPS_MULTIVERSION_H

#include <stdbool.h>

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12 && defined(__x86_64__) &&           \
    defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) &&       \
    defined(__OPTIMIZE__)
#define MB_MULTIVERSION                                                                            \
    __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#define MB_AVX512 __attribute__((target("arch=x86-64-v4")))
#define MB_AVX2 __attribute__((target("arch=x86-64-v3")))
static inline bool mb_has_avx512(void)
{
    return __builtin_cpu_supports("x86-64-v4");
}
static inline bool mb_has_avx2(void)
{
    return __builtin_cpu_supports("x86-64-v3");
}
#else
#define MB_MULTIVERSION
#endif

#endif
