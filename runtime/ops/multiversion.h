/*
** MB_MULTIVERSION before a function: compiled for AVX-512, for AVX2 with FMA and for the baseline; the loader picks one
** when the program starts. Sanitizers run before the resolvers may, so they get the baseline only.
** Multiversion leaf functions, not those with an OpenMP region: its outlined body would be the baseline.
*/
#ifndef MB_OPS_MULTIVERSION_H
#define MB_OPS_MULTIVERSION_H

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__) &&                           \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__OPTIMIZE__)
#define MB_MULTIVERSION __attribute__((target_clones("arch=skylake-avx512", "arch=haswell", "default")))
#else
#define MB_MULTIVERSION
#endif

#endif
