/*
** Samples of files that are no element type: they become one of a wider type while they are read,
** without a loss. A float64 has every whole number up to 2^53, and of those beyond not all: an
** integer of 64 bits that it does not have is an error, which names the value and its place.
*/
#ifndef MB_CORE_SAMPLES_H
#define MB_CORE_SAMPLES_H

#include "core/shape.h"
#include "core/status.h"

typedef enum mb_samples {
    MB_SAMPLES_AS_STORED,
    MB_SAMPLES_I8,  /* to i32 */
    MB_SAMPLES_I16, /* to i32 */
    MB_SAMPLES_U32, /* to f64 */
    MB_SAMPLES_I64, /* to f64 */
    MB_SAMPLES_U64, /* to f64 */
    MB_SAMPLES_BITS /* to u16: fewer bits than bytes have, which TIFF files alone have */
} mb_samples;

/* The part of an array in a file that samples in a row belong to: axes slowest first, 0-based. */
typedef struct mb_samples_place {
    const char *name;                               /* of the file */
    int rank;                                       /* of the array; 0: its axes are unknown */
    int64_t origin[MB_MAX_RANK];                    /* of the part in the array */
    int64_t extents[MB_MAX_RANK];                   /* of the part */
    int64_t steps[MB_MAX_RANK];                     /* in the array, from one to the next */
    int64_t first[MB_MAX_RANK], count[MB_MAX_RANK]; /* what is wanted: all else may be anything */
} mb_samples_place;

/* A place of these extents at the beginning of an array, of which all is wanted. */
mb_samples_place mb_samples_place_of(const char *name, int rank, const int64_t *extents);

/* Bytes of a stored sample, and the type that it becomes; `dtype` where it is one. */
size_t mb_samples_bytes(mb_samples samples, mb_dtype dtype);
mb_dtype mb_samples_dtype(mb_samples samples, mb_dtype dtype);

/* Widens samples of whole bytes in this machine's order. `from` may be the end of `to`. The first
** one is number `index` of the place. */
mb_status mb_samples_widen(mb_samples samples, void *to, const void *from, int64_t count,
                           const mb_samples_place *place, int64_t index);

#endif
