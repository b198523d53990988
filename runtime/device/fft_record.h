/*
** What a GPU's FFT library needs and how long it takes, recorded on a machine that has the GPU
** (scripts/record_fft_sizes.lua) and compiled in. A record gives the work areas of a device that is
** not here, and the times by which sizes are chosen.
**
** cuFFT's work area follows from each axis separately. An axis is either transformed in place or
** needs a second area; the transform's work area is the largest of the axes' areas, whatever the
** batch is. So one code per size is enough for every shape made of recorded sizes (cuFFT 12.0 on an
** H200: exact for 41,647 of 41,647 shapes of one to three axes), as long as the transform has fewer
** than 2^31 points. Beyond that, and for sizes that are not recorded, the answer is an upper bound
** and says so.
*/
#ifndef MB_FFT_FFT_RECORD_H
#define MB_FFT_FFT_RECORD_H

#include "device/fft.h"

/* The needs of a size as one base-36 digit: c2c + 2 * column + 4 * r2c + 12 * c2r. c2c is for the
** last axis of a complex transform, column for any other axis of any transform; each is 0, or 1 for
** the bytes of the transform's complex points. r2c and c2r are for the last axis of a real
** transform: 0, 1 for the bytes of the real samples, or 2 for the bytes of the half-complex rows.
** For an odd size they are 0, or 1 for an area of another size. '.' is not recorded. */
#define MB_FFT_CODES "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"

typedef struct mb_fft_code {
    int n;
    char code;
} mb_fft_code;

/* Picoseconds per point, in place, mean of both directions: for real, batched rows of n samples,
** and the further cost of an axis of n before such rows. The sum over the axes predicts the time of
** a transform of any rank. */
typedef struct mb_fft_time {
    int n;
    float row_ps, column_ps;
} mb_fft_time;

typedef struct mb_fft_record {
    const char *device;  /* "NVIDIA H200" */
    const char *library; /* "cuFFT 12.0.0" */
    const char *date;    /* of the recording, ISO */
    uint64_t plan_bytes; /* bytes that the library keeps for a plan, on average */
    int all;             /* codes[n] exists for n = 0 to this */
    const char *codes;
    int more_count; /* larger sizes, ascending */
    const mb_fft_code *more;
    int time_count; /* ascending; even 2-3-5-7-smooth sizes */
    const mb_fft_time *times;
} mb_fft_record;

/* The work area of a transform. *how is NULL when the area follows from recorded sizes; else it
** says how the area was derived. */
uint64_t mb_fft_record_work(const mb_fft_record *record, const mb_fft_desc *desc, const char **how);

#endif
