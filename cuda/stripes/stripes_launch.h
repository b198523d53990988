/*
** Launches of the work on sinograms, for a group of them (stripes_vo.h). The scratch is that of the
** call's slots.
*/
#ifndef MB_CUDA_STRIPES_LAUNCH_H
#define MB_CUDA_STRIPES_LAUNCH_H

#include "ops/stripes/stripes_vo.h"

/* Sinograms of a call that are in scratch. `count` of them are sorted and put back. */
typedef struct mb_stripes_batch {
    mb_stripes_sinos sinos;
    int64_t count;
    const float *from;
    float *to;
    int64_t from_row, from_angle; /* strides, in elements */
    int64_t to_row, to_angle;
} mb_stripes_batch;

/* The batch that begins with sinogram `first`. */
mb_stripes_batch mb_stripes_batch_at(const mb_op_call *call, int64_t first);

/* All that an operator does. */
mb_status mb_stripes_launch(const mb_op_call *call, const mb_stripes_job *job);

/* Into the slots values and order. */
mb_status mb_stripes_launch_sort(const mb_op_call *call, const mb_stripes_batch *batch);
mb_status mb_stripes_launch_medians(const mb_op_call *call, const mb_stripes_batch *batch,
                                    const int32_t *keys, int32_t *medians, int64_t size);
/* From keys, by the slot order. */
mb_status mb_stripes_launch_put_back(const mb_op_call *call, const mb_stripes_batch *batch,
                                     const int32_t *keys);

/* The factors of dead columns, into the lists of the slot columns. */
mb_status mb_stripes_launch_fluctuations(const mb_op_call *call, const mb_stripes_batch *batch,
                                         int64_t size);
/* The factors of wide stripes, from the slots values and medians. */
mb_status mb_stripes_launch_factors(const mb_op_call *call, const mb_stripes_batch *batch,
                                    double drop_ratio);
/* What is a stripe; for `dead` columns what fills it in, too. */
mb_status mb_stripes_launch_find(const mb_op_call *call, const mb_stripes_batch *batch, double snr,
                                 bool dead);
mb_status mb_stripes_launch_fill_in(const mb_op_call *call, const mb_stripes_batch *batch);
/* Medians become the values of their columns, where these are no stripes. */
mb_status mb_stripes_launch_choose(const mb_op_call *call, const mb_stripes_batch *batch,
                                   bool normalize);

#endif
