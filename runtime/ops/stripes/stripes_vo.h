/*
** The stripe removal of N. T. Vo et al. (2018): what its operators share, on the host and on CUDA.
** Arrays: sino (in), result (out; may be the same array), (angle, column) or (row, angle, column).
**
** A column of a sinogram is one detector element at all angles. Its values are sorted; those of
** equal rank in neighboring columns differ by the response of the detector alone, so a median over
** neighboring columns at each rank, put back to where the values came from, removes stripes.
**
** Values are sorted as keys: whole numbers in the order of the floats. -0 has the key of 0, and
** every NaN the largest key there is, so NaN is larger than all numbers. Equal keys stay in the
** order of their angles. Sorted columns lie in scratch as [column][rank] with a pitch of ranks, for
** a group of sinograms at a time.
*/
#ifndef MB_OPS_STRIPES_VO_H
#define MB_OPS_STRIPES_VO_H

#include "core/both.h"
#include "ops/op.h"
#include <string.h>

typedef struct mb_stripes_params {
    int64_t size; /* columns of the median window */
    int64_t large_size, small_size;
    double snr, drop_ratio;
    bool normalize, residual;
} mb_stripes_params;

typedef enum mb_stripes_kind {
    MB_STRIPES_BY_SORTING,
    MB_STRIPES_BY_LARGE,
    MB_STRIPES_BY_DEAD,
    MB_STRIPES_BY_ALL
} mb_stripes_kind;

/* What an operator does, in this order. */
typedef struct mb_stripes_job {
    bool dead, large, sorting;
    bool normalize; /* large: columns that are no stripes are divided by their factors */
    int64_t large_size, small_size;
    double snr, drop_ratio;
} mb_stripes_job;

static inline mb_stripes_job mb_stripes_job_of(mb_stripes_kind kind, const mb_stripes_params *p)
{
    mb_stripes_job job;
    job.large_size = job.small_size = p->size;
    job.snr = p->snr;
    job.drop_ratio = p->drop_ratio;
    job.normalize = p->normalize;
    job.dead = kind == MB_STRIPES_BY_DEAD || kind == MB_STRIPES_BY_ALL;
    job.large = kind == MB_STRIPES_BY_LARGE || kind == MB_STRIPES_BY_ALL;
    job.sorting = kind == MB_STRIPES_BY_SORTING || kind == MB_STRIPES_BY_ALL;
    if (kind == MB_STRIPES_BY_ALL) {
        job.large_size = p->large_size;
        job.small_size = p->small_size;
    } else if (kind == MB_STRIPES_BY_DEAD && p->residual) { /* what is left beside them */
        job.large = job.normalize = true;
        job.drop_ratio = 0.1;
    }
    return job;
}

enum { MB_STRIPES_SINO, MB_STRIPES_RESULT };

/* Slots. Words are 4 bytes, [sinogram][column][rank] with the pitch of ranks. */
enum {
    MB_STRIPES_VALUES,    /* sorted keys */
    MB_STRIPES_ORDER,     /* angles of the sorted keys; mb_stripes_order_bytes each */
    MB_STRIPES_MEDIANS,   /* keys; CUDA: before that, sorted runs */
    MB_STRIPES_RUN_ORDER, /* CUDA, more than one run: 2 bytes each */
    MB_STRIPES_COLUMNS,   /* the lists of stripes_detect.h, a word a column each */
    MB_STRIPES_SUMS,      /* CUDA: double[sinogram][chunk of angles][column] */
    MB_STRIPES_WORK       /* host: mb_stripes_work_bytes a thread */
};

/* The sorting network of a warp takes so many values. */
#define MB_STRIPES_RUN 1536
/* CUDA: about so many columns a multiprocessor are in scratch at a time. */
#define MB_STRIPES_GROUP_COLUMNS 256
/* Host: columns that are sorted and put back together, and ranks that are filtered together. */
#define MB_STRIPES_LANES 16

/* What the sinograms of a call are. */
typedef struct mb_stripes_sinos {
    int64_t rows, angles, columns;
    int64_t pitch; /* of ranks */
} mb_stripes_sinos;

static inline mb_stripes_sinos mb_stripes_sinos_of(const mb_shape *shape)
{
    mb_stripes_sinos s;
    s.rows = shape->rank == 3 ? shape->dims[0] : 1;
    s.angles = shape->dims[shape->rank - 2];
    s.columns = shape->dims[shape->rank - 1];
    s.pitch = (s.angles + 15) / 16 * 16;
    return s;
}

/* Sinograms that are worked on together. No result depends on it. */
static inline int64_t mb_stripes_group(const mb_stripes_sinos *s, const mb_device_facts *facts)
{
    bool host = facts->compute_capability == 0;
    int64_t columns = (int64_t)MB_STRIPES_GROUP_COLUMNS * facts->threads;
    int64_t group = host || s->columns == 0 ? 1 : columns / s->columns;
    group = group < 1 ? 1 : group > 64 ? 64 : group;
    return group < s->rows ? group : s->rows;
}

/* Values of a run that is sorted at once on CUDA: all, or about equal parts. */
static inline int64_t mb_stripes_run_length(const mb_stripes_sinos *s)
{
    int64_t runs = (s->angles + MB_STRIPES_RUN - 1) / MB_STRIPES_RUN;
    return runs < 2 ? s->pitch : ((s->angles + runs - 1) / runs + 15) / 16 * 16;
}

/* Pieces of the angles whose fluctuations are added at once. */
#define MB_STRIPES_CHUNK 64
static inline int64_t mb_stripes_chunks(const mb_stripes_sinos *s)
{
    return (s->angles + MB_STRIPES_CHUNK - 1) / MB_STRIPES_CHUNK;
}

static inline int64_t mb_stripes_order_bytes(const mb_stripes_sinos *s, bool host)
{
    return host || s->angles > 65536 ? 4 : 2;
}

MB_BOTH static inline int32_t mb_stripes_key(float value)
{
    int32_t bits;
#ifdef __CUDA_ARCH__
    bits = __float_as_int(__fadd_rn(value, 0.0F)); /* -0 becomes 0, and any NaN 0x7fffffff */
#else
    memcpy(&bits, &value, 4);
    if ((bits & 0x7fffffff) > 0x7f800000)
        bits = 0x7fffffff;
    if ((bits & 0x7fffffff) == 0)
        bits = 0;
#endif
    return bits ^ (bits < 0 ? 0x7fffffff : 0);
}

MB_BOTH static inline float mb_stripes_value(int32_t key)
{
    float value;
    key ^= key < 0 ? 0x7fffffff : 0;
    memcpy(&value, &key, 4);
    return value;
}

/* The column that stands for column c: borders are reflected, d c b a | a b c d | d c b a. */
MB_BOTH static inline int64_t mb_stripes_reflect(int64_t c, int64_t columns)
{
    if (c >= 0 && c < columns)
        return c;
    c = c < 0 ? -1 - c : c; /* symmetric about -1/2, period 2 columns */
    c %= 2 * columns;
    return c < columns ? c : 2 * columns - 1 - c;
}

/* What the files of the operators have in common: infer, plan and run_host, for one way. */
#define MB_STRIPES_FUNCTIONS(way)                                                                  \
    static mb_status infer(const void *params, mb_spec *arrays)                                    \
    {                                                                                              \
        (void)params;                                                                              \
        return mb_stripes_infer(arrays);                                                           \
    }                                                                                              \
    static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)               \
    {                                                                                              \
        const mb_stripes_job job = mb_stripes_job_of(way, params);                                 \
        mb_stripes_plan(&job, arrays, planner);                                                    \
    }                                                                                              \
    static mb_status run_host(const mb_op_call *call)                                              \
    {                                                                                              \
        const mb_stripes_job job = mb_stripes_job_of(way, call->params);                           \
        return mb_stripes_run(call, &job);                                                         \
    }

#endif
