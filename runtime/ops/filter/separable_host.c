/*
** Separable filters on the host. Lines are gathered MB_SEPARABLE_LINES at a time, one beside the
** other, into a buffer with their continuation beyond the edges, so that every axis becomes the
** same loop over contiguous floats; results go straight back to the lines' own places.
*/
#include "core/multiversion.h"
#include "ops/filter/separable.h"
#include <omp.h>
#include <string.h>

#define LINES MB_SEPARABLE_LINES
/* Elements of a line that are worked on at a time. */
#define BLOCK 32

const char *const mb_separable_modes[] = {"constant", "edge", "reflect", "symmetric", "wrap", NULL};

mb_status mb_separable_check(const char *name, const mb_vector *numbers, const mb_vector *axes,
                             int rank)
{
    unsigned seen = 0;
    int64_t filtered = axes->count ? axes->count : rank;
    for (int64_t i = 0; i < axes->count; i++) {
        double named = axes->values[i], axis = named > 0 ? named - 1 : rank + named;
        if (named != floor(named) || named == 0 || axis < 0 || axis >= rank)
            return mb_fail(MB_STATUS_ARGUMENT, "axes",
                           "element %lld of axes is %g; the array's axes are 1 to %d, or -1 to -%d "
                           "from the end",
                           (long long)i + 1, named, rank, rank);
        if (seen >> (int)axis & 1u)
            return mb_fail(MB_STATUS_ARGUMENT, "axes", "axes names axis %d twice", (int)axis + 1);
        seen |= 1u << (int)axis;
    }
    return mb_check_axes(name, numbers, filtered, true);
}

/* Floats of a thread's buffer. */
static uint64_t buffer_floats(const mb_separable *s)
{
    uint64_t most = 0;
    for (int i = 0; i < s->count; i++) {
        const mb_separable_pass *p = &s->pass[i];
        uint64_t rows = (uint64_t)(p->before + p->n + p->after);
        most = rows > most ? rows : most;
    }
    return mb_bytes_mul(most, LINES);
}

uint64_t mb_separable_buffer_bytes(const mb_separable *s, int threads)
{
    return mb_bytes_mul(mb_bytes_mul(buffer_floats(s), sizeof(float)), (uint64_t)threads);
}

uint64_t mb_separable_scratch_bytes(const mb_separable *s, const mb_shape *shape,
                                    const mb_device_facts *facts)
{
    if (facts->compute_capability == 0)
        return mb_separable_buffer_bytes(s, mb_separable_threads(shape, facts->threads));
    return s->count > 1 ? mb_bytes_mul(mb_shape_elements(shape), sizeof(float)) : 0;
}

void mb_separable_table(const mb_separable *s, float *table)
{
    for (int i = 0; i < s->count; i++) {
        const mb_separable_pass *p = &s->pass[i];
        if (p->sigma <= 0)
            continue;
        double sum = mb_separable_sum(p);
        int64_t edge = p->before + MB_SEPARABLE_EDGE;
        for (int64_t k = -edge; k <= edge; k++)
            table[p->table + k] = mb_separable_weight(p, sum, k);
    }
}

#define GATHER(type)                                                                               \
    for (int64_t i = 0; i < n; i++)                                                                \
        for (int c = 0; c < LINES; c++)                                                            \
    rows[i * LINES + c] = (float)((const type *)from)[base[c] + i * step]
#define GATHER_LINES(type)                                                                         \
    for (int c = 0; c < LINES; c++)                                                                \
        for (int64_t i = 0; i < n; i++)                                                            \
    rows[i * LINES + c] = (float)((const type *)from)[base[c] + i]
/* The lines that begin at base[], interleaved. */
static void gather(mb_dtype dtype, const void *from, const int64_t base[LINES], int64_t n,
                   int64_t step, float *rows)
{
    if (step == 1) {
        if (dtype == MB_U8)
            GATHER_LINES(uint8_t);
        else if (dtype == MB_U16)
            GATHER_LINES(uint16_t);
        else
            GATHER_LINES(float);
    } else if (dtype == MB_U8) {
        GATHER(uint8_t);
    } else if (dtype == MB_U16) {
        GATHER(uint16_t);
    } else {
        GATHER(float);
    }
}

/* The elements beyond the ends, which are copies of rows that are there already. */
static void extend(const mb_separable *s, const mb_separable_pass *p, float *buffer)
{
    for (int64_t i = -p->before; i < p->n + p->after; i = i == -1 ? p->n : i + 1) {
        int64_t source = mb_pad_source(s->mode, i, p->n);
        float *row = buffer + (p->before + i) * LINES;
        if (i >= 0 && i < p->n)
            continue;
        for (int c = 0; c < LINES; c++)
            row[c] = source < 0 ? s->value : buffer[(p->before + source) * LINES + c];
    }
}

/* count floats of weighted sums; row points at the middle of the first. */
MB_MULTIVERSION
static void weigh(const float *restrict row, const float *weights, int64_t radius, int64_t count,
                  float *restrict out)
{
    for (int64_t j = 0; j < count; j++)
        out[j] = weights[0] * row[j];
    for (int64_t k = 1; k <= radius; k++) {
        const float *low = row - k * LINES, *high = row + k * LINES;
        float w = weights[k];
        for (int64_t j = 0; j < count; j++)
            out[j] += w * (low[j] + high[j]);
    }
}

/* `count` rows of means over `size` rows, the first of which is `row`; sums carries on from call to
** call. */
MB_MULTIVERSION
static void slide(const float *restrict row, int64_t size, int64_t count, double *restrict sums,
                  float *restrict out)
{
    double inverse = 1 / (double)size;
    for (int64_t i = 0; i < count; i++) {
        const float *enter = row + (i + size - 1) * LINES, *leave = row + i * LINES;
        for (int c = 0; c < LINES; c++) {
            sums[c] += (double)enter[c];
            out[i * LINES + c] = (float)(sums[c] * inverse);
            sums[c] -= (double)leave[c];
        }
    }
}

/* The sums of a window that has not its last row yet. */
static void begin_sums(const float *row, int64_t size, double *sums)
{
    memset(sums, 0, LINES * sizeof *sums);
    for (int64_t i = 0; i < size - 1; i++)
        for (int c = 0; c < LINES; c++)
            sums[c] += (double)row[i * LINES + c];
}

/* Where the lines of a group begin in an array; the last group repeats its first line. */
static void line_bases(const mb_separable_pass *p, const mb_separable_lines *lines, int64_t first,
                       int count, int64_t base[LINES])
{
    for (int c = 0; c < LINES; c++) {
        int64_t line = c < count ? first + c : first;
        base[c] = mb_separable_offset(&lines->outer, line / p->inner) +
                  mb_separable_offset(&lines->inner, line % p->inner);
    }
}

/* `to` has its lines at base[], `step` from element to element. */
static void filter_lines(const mb_separable_pass *p, const float *weights, const float *buffer,
                         const int64_t base[LINES], int64_t step, int lines, float *to)
{
    double sums[LINES];
    float out[BLOCK * LINES];
    int64_t size = p->before + 1 + p->after;
    const int64_t segment = p->sigma > 0 ? p->n : mb_separable_segment(size, p->last);
    for (int64_t i = 0, count; i < p->n; i += count) {
        const int64_t left = segment - i % segment, most = left < BLOCK ? left : BLOCK;
        count = p->n - i < most ? p->n - i : most;
        if (p->sigma <= 0 && left == segment)
            begin_sums(buffer + i * LINES, size, sums);
        if (p->sigma > 0)
            weigh(buffer + (p->before + i) * LINES, weights, p->before, count * LINES, out);
        else
            slide(buffer + i * LINES, size, count, sums, out);
        for (int64_t k = 0; k < count; k++)
            for (int c = 0; c < lines; c++)
                to[base[c] + (i + k) * step] = out[k * LINES + c];
    }
}

/* Where a pass reads or writes. */
typedef struct place {
    mb_dtype dtype;
    void *data;
    mb_separable_lines lines;
} place;

typedef struct mb_separable_job {
    const mb_separable *s;
    const float *weights;
    float *buffers; /* one for each thread */
    int threads;
} mb_separable_job;

static void run_pass(const mb_separable_job *job, const mb_separable_pass *p, const place *from,
                     const place *to)
{
    int64_t lines = p->outer * p->inner, groups = (lines + LINES - 1) / LINES;
    uint64_t floats = buffer_floats(job->s);
#pragma omp parallel for schedule(static) num_threads(job->threads)
    for (int64_t group = 0; group < groups; group++) {
        if (mb_cancelled())
            continue;
        float *buffer = job->buffers + (uint64_t)omp_get_thread_num() * floats;
        int64_t base[LINES], first = group * LINES;
        int count = (int)(lines - first < LINES ? lines - first : LINES);
        line_bases(p, &from->lines, first, count, base);
        gather(from->dtype, from->data, base, p->n, from->lines.step, buffer + p->before * LINES);
        extend(job->s, p, buffer);
        line_bases(p, &to->lines, first, count, base);
        filter_lines(p, job->weights ? job->weights + p->table : NULL, buffer, base, to->lines.step,
                     count, to->data);
    }
}

void mb_separable_run(const mb_separable *s, const mb_array *a, float *to, const int64_t *strides,
                      const float *weights, float *buffers)
{
    const mb_separable_job job = {s, weights, buffers,
                                  mb_separable_threads(&a->shape, a->device->facts.threads)};
    for (int i = 0; i < s->count; i++) {
        const mb_separable_pass *p = &s->pass[i];
        const place made = {MB_F32, to, mb_separable_lines_of(p, &a->shape, strides)};
        const place given = {a->dtype, a->data, mb_separable_lines_of(p, &a->shape, a->strides)};
        run_pass(&job, p, i == 0 ? &given : &made, &made);
    }
}
