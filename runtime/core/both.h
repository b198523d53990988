/*
** MB_BOTH marks inline functions that host code and CUDA kernels share: plain functions to a C
** compiler.
*/
#ifndef MB_CORE_BOTH_H
#define MB_CORE_BOTH_H

#ifdef __CUDACC__
#define MB_BOTH __host__ __device__
#else
#define MB_BOTH
#endif

#endif
