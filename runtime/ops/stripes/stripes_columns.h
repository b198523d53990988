/*
** Columns of one sinogram on the host: sorted, filtered across columns, and put back. The functions
** are called by all threads of a parallel region, which share the work; they end with a barrier.
*/
#ifndef MB_OPS_STRIPES_COLUMNS_H
#define MB_OPS_STRIPES_COLUMNS_H

#include "ops/stripes/stripes_vo.h"

/* Scratch of a thread: 16 columns, and two lists of pairs; or the window of 16 ranks. */
uint64_t mb_stripes_work_bytes(const mb_stripes_sinos *s, int64_t size);

/* Sorts every column. `from` is the sinogram, with a stride between angles; keys and order are
** [column][rank]. */
void mb_stripes_sort(const mb_stripes_sinos *s, const float *from, int64_t stride, int32_t *keys,
                     uint32_t *order, void *work);
/* The median over `size` columns at each rank. For an even size, of the two middle values the
** larger one, and the window begins size / 2 columns before. */
void mb_stripes_medians(const mb_stripes_sinos *s, const int32_t *keys, int32_t *medians,
                        int64_t size, void *work);
/* Writes keys to the angles that they have in `order`. */
void mb_stripes_put_back(const mb_stripes_sinos *s, const int32_t *keys, const uint32_t *order,
                         float *to, int64_t stride, void *work);

#endif
