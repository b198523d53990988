/*
** What a GPU's FFT library asks for and how long it takes, recorded on a machine that has it
** (scripts/record_fft_sizes.lua) and compiled in: the work areas of a device that is not here, and
** the times by which sizes are chosen.
**
** cuFFT's work area follows from its axes, one by one. Each axis either is transformed where it
** stands or needs a second place; the area is that of the greediest axis, whatever the others and
** the batch are. So one code per size answers for every shape made of recorded sizes (cuFFT 12.0 on
** an H200: exact for 41,647 of 41,647 shapes of one to three axes), as long as the transform has
** fewer than 2^31 points. Beyond that, and for sizes that are not recorded, there are upper bounds,
** and the answer says so.
*/
#ifndef MB_FFT_FFT_RECORD_H
#define MB_FFT_FFT_RECORD_H

#include "device/fft.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A size's needs in one base-36 digit: c2c + 2 * column + 4 * r2c + 12 * c2r. The first two are 0,
** or 1 for as many bytes as the transform's complex points take: c2c as the last axis of a complex
** transform, column as any axis but the last, of any transform. r2c and c2r are for the last axis
** of a real one: 0, 1 for the bytes of the real samples, 2 for those of the half-complex rows (of
** an odd size: 0 or 1, 1 for none of these). '.' is not recorded. */
#define MB_FFT_CODES "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"

typedef struct mb_fft_code {
    int n;
    char code;
} mb_fft_code;

/* Picoseconds per point, mean of both directions, in place: rows of n samples (real, batched), and
** the further cost of n as an axis above such rows. Their sum over the axes predicts a transform of
** any rank. */
typedef struct mb_fft_time {
    int n;
    float row_ps, column_ps;
} mb_fft_time;

typedef struct mb_fft_record {
    const char *device;  /* "NVIDIA H200" */
    const char *library; /* "cuFFT 12.0.0" */
    const char *date;    /* of the recording, ISO */
    uint64_t plan_bytes; /* what the library keeps for a plan, on average */
    int all;             /* codes[n] is there for n = 0 to this */
    const char *codes;
    int more_count; /* larger sizes, ascending */
    const mb_fft_code *more;
    int time_count; /* ascending; even 2-3-5-7-smooth sizes */
    const mb_fft_time *times;
} mb_fft_record;

/* The work area of a transform. *how is NULL when it follows from recorded sizes, else it says how
** it was derived. */
uint64_t mb_fft_record_work(const mb_fft_record *record, const mb_fft_desc *desc, const char **how);
/* The time of a size, or NULL. */
const mb_fft_time *mb_fft_record_time(const mb_fft_record *record, int64_t n);

#ifdef __cplusplus
}
#endif
#endif
