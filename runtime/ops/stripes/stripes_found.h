/*
** Stripes of one sinogram that are found and removed alone, on the host. The functions are called
** by all threads of a parallel region, which share the work; they end with a barrier.
*/
#ifndef MB_OPS_STRIPES_FOUND_H
#define MB_OPS_STRIPES_FOUND_H

#include "ops/stripes/stripes_detect.h"

typedef struct mb_stripes_lists {
    float *fluctuation, *background, *factor, *sorted;
    int32_t *mask, *left, *right;
} mb_stripes_lists;

static inline mb_stripes_lists mb_stripes_lists_at(void *slot, int64_t columns)
{
    mb_stripes_lists lists = {0};
    if (slot) {
        lists.fluctuation = (float *)slot + MB_STRIPES_LIST_FLUCTUATION * columns;
        lists.background = (float *)slot + MB_STRIPES_LIST_BACKGROUND * columns;
        lists.factor = (float *)slot + MB_STRIPES_LIST_FACTOR * columns;
        lists.sorted = (float *)slot + MB_STRIPES_LIST_SORTED * columns;
        lists.mask = (int32_t *)slot + MB_STRIPES_LIST_MASK * columns;
        lists.left = (int32_t *)slot + MB_STRIPES_LIST_LEFT * columns;
        lists.right = (int32_t *)slot + MB_STRIPES_LIST_RIGHT * columns;
    }
    return lists;
}

/* Factors of dead columns: fluctuation over background. */
void mb_stripes_fluctuations(const mb_stripes_sinos *s, const float *from, int64_t stride,
                             const mb_stripes_lists *lists, int64_t size);
/* Factors of wide stripes: mean over mean of the medians, without what drop_ratio leaves out. */
void mb_stripes_factors(const mb_stripes_sinos *s, const int32_t *keys, const int32_t *medians,
                        double drop_ratio, const mb_stripes_lists *lists);
/* The mask from the factors; for `dead` columns what is filled in from where, too. */
void mb_stripes_find(int64_t columns, const mb_stripes_lists *lists, double snr, bool dead);
/* `to` becomes `from` with the stripes interpolated; may be the same. */
void mb_stripes_fill_in(const mb_stripes_sinos *s, const mb_stripes_lists *lists, const float *from,
                        int64_t from_stride, float *to, int64_t to_stride);
/* Stripes keep their medians; those of the other columns become their own values, divided by their
** factors if `normalize`. A negative factor turns the order of a column round. */
void mb_stripes_choose(const mb_stripes_sinos *s, const int32_t *keys, int32_t *medians,
                       uint32_t *order, const mb_stripes_lists *lists, bool normalize);

#endif
