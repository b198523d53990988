/*
** Fourier transforms in double precision, for tables that are made once: mixed radix, of lengths
** that are products of 2, 3, 5 and 7. Not normalized, exp(-2 pi i j k / n). Plain, and slower than
** those of a library.
*/
#ifndef MB_OPS_DOUBLE_FFT_H
#define MB_OPS_DOUBLE_FFT_H

#include "core/status.h"

typedef struct mb_complex {
    double re, im;
} mb_complex;

/* exp(-2 pi i k / n) for k = 0 ... n - 1. */
void mb_double_fft_roots(int64_t n, mb_complex *roots);
/* `to` is another array than `from`, which stays. */
void mb_double_fft(int64_t n, const mb_complex *roots, const mb_complex *from, mb_complex *to);

#endif
