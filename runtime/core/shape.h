/*
** Shapes, and the checked arithmetic that every size goes through.
** Row-major, last axis fastest. Extents are int64_t >= 0; a zero extent is a valid empty array.
*/
#ifndef MB_CORE_SHAPE_H
#define MB_CORE_SHAPE_H

#include "core/dtype.h"

#define MB_MAX_RANK 6

typedef struct mb_shape {
    int rank; /* 0 = a scalar */
    int64_t dims[MB_MAX_RANK];
} mb_shape;

/* What an array is, without its data: the unit of shape rules and estimates. */
typedef struct mb_spec {
    bool present; /* optional arguments that were not given are absent */
    mb_dtype dtype;
    mb_shape shape;
} mb_spec;

/* False on overflow; *out is then untouched. */
bool mb_mul_u64(uint64_t a, uint64_t b, uint64_t *out);
bool mb_add_u64(uint64_t a, uint64_t b, uint64_t *out);

/* Bytes as a saturating size: UINT64_MAX means "too large"; the planner and the pool refuse it. */
uint64_t mb_bytes_mul(uint64_t a, uint64_t b);
uint64_t mb_bytes_add(uint64_t a, uint64_t b);

/* Elements of a shape (1 for rank 0). Fails with MB_STATUS_SHAPE above 2^62. */
mb_status mb_shape_count(const mb_shape *shape, int64_t *count);
/* Elements as a saturating size. */
uint64_t mb_shape_elements(const mb_shape *shape);
mb_status mb_shape_bytes(const mb_shape *shape, mb_dtype dtype, uint64_t *bytes);
bool mb_shape_equal(const mb_shape *a, const mb_shape *b);
mb_shape mb_shape_of(int rank, const int64_t *dims);
/* Row-major strides in elements. */
void mb_shape_strides(const mb_shape *shape, int64_t *strides);
/* "4 x 201 x 101", "scalar" for rank 0. Writes at most `bytes` including the terminator; returns
** buffer. */
char *mb_shape_format(const mb_shape *shape, char *buffer, size_t bytes);
/* "1.25 GiB", "512 B": for messages. */
char *mb_bytes_format(uint64_t bytes, char *buffer, size_t size);
/* The same in the units of the size that it is compared with, such as a budget. */
char *mb_bytes_format_like(uint64_t bytes, uint64_t like, char *buffer, size_t size);

#endif
