/*
** The host kernel of project: the exact transpose of backproject, as a gather.
**
** A pixel whose shadow falls on u gives its value times 1 - |u - bin| to the bins nearer than 1:
** the weights with which backproject reads them. Along the image axis that runs more across the ray
** (columns where |cos| >= |sin|, rows elsewhere) at most three pixels of each line are that near,
** so a bin is the sum of three candidates per line. 16 bins are a vector; their candidates lie
** within 32 places, which with AVX-512 are a register table. Up to four slices share positions and
** weights.
**
** A thread owns some angles of some slices. It copies strips of 16 lines, transposed for rays along
** the rows, with zeros around and outside the mask, and adds them to its rows of the result. A
** bin's sum runs over all lines from the first to the last, so it does not depend on the strips,
** on the threads or on the slices beside it.
*/
#include "ops/tomography/project_host.h"
#include "core/multiversion.h"
#include "ops/tomography/parallel_tiles.h"
#include <math.h>
#include <omp.h>
#include <string.h>

enum {
    BINS = 16,
    LINES = MB_PROJECT_LINES,
    EDGE = MB_PROJECT_EDGE,
    BITS = 24,       /* of the fraction of a place */
    MOST_ANGLES = 64 /* that a strip is copied for */
};
#define ONE 16777216.0 /* 2^BITS */

/* Lines of up to four slices: pixel `p` of `line` of slice z is data[z * slice + line * pitch + p],
** with EDGE zeros before the first and after the last. */
typedef struct strip {
    const float *data;
    int64_t slice, pitch;
    int64_t first; /* line of the slice */
    int lines;
    int64_t across;    /* pixels of a line */
    int64_t low, high; /* outside these all are 0 */
} strip;

/* Where a window may begin: one that lies outside the line lies in the zeros beside it. */
static inline int64_t clamp(int64_t place, int64_t across)
{
    return place < -EDGE ? -EDGE : place > across ? across : place;
}

/* Up to 16 floats. */
__attribute__((always_inline)) static inline void
copy_bins(float *restrict to, const float *restrict from, int64_t count)
{
    if (count == BINS)
        memcpy(to, from, sizeof(float) * BINS);
    else
        memcpy(to, from, sizeof(float) * (size_t)count);
}

/* Of 16 bins on a line: the first place within reach of each, in a window, and the weights of that
** one and the next two. The first lies (1 - fraction) cross - 1 from the bin. */
__attribute__((always_inline)) static inline void locate(const mb_project_path *p, int32_t at,
                                                         int32_t *places, float (*weights)[BINS])
{
    const float cross = p->cross, step = cross * (float)(1 / ONE);
#pragma omp simd
    for (int i = 0; i < BINS; i++) {
        const int32_t crossing = p->bins[i] + at;
        const float fraction = (float)(crossing & ((1 << BITS) - 1));
        const float first = cross - fraction * step, middle = first + cross;
        const float beyond = 2.0F - middle, third = beyond - cross;
        places[i] = crossing >> BITS;
        weights[0][i] = first;
        weights[1][i] = middle < beyond ? middle : beyond;
        weights[2][i] = third > 0 ? third : 0;
    }
}

/* The same by the overlaps of shadows (mb_parallel_share). */
__attribute__((always_inline)) static inline void by_distance(mb_parallel_shadow shadow,
                                                              float (*weights)[BINS])
{
    for (int k = 0; k < 3; k++)
#pragma omp simd
        for (int i = 0; i < BINS; i++)
            weights[k][i] = mb_parallel_share(weights[k][i], shadow);
}

__attribute__((always_inline)) static inline void add(const float *window, const int32_t *places,
                                                      float (*weights)[BINS], float *sums)
{
#pragma omp simd
    for (int i = 0; i < BINS; i++) {
        const float *from = window + places[i];
        float sum = sums[i];
        sum += weights[0][i] * from[0];
        sum += weights[1][i] * from[1];
        sum += weights[2][i] * from[2];
        sums[i] = sum;
    }
}

#define GATHER_(name) name##_by
#define GATHER(name) GATHER_(name)
#ifdef MB_AVX512
/* The same where a 32-entry table look-up is one instruction. */
MB_AVX512
__attribute__((always_inline)) static inline void
add_by_table(const float *window, const int32_t *places, float (*weights)[BINS], float *sums)
{
    const mb_floats_anywhere *table = (const mb_floats_anywhere *)(const void *)window;
    const mb_floats *weight = (const mb_floats *)(const void *)weights;
    mb_floats low = table[0], high = table[1];
    const mb_ints place = *(const mb_ints *)(const void *)places;
    /* Kept in registers: loads across cache lines are what binds. */
    __asm__("" : "+v"(low), "+v"(high));
    mb_floats *sum = (mb_floats *)(void *)sums;
    *sum += weight[0] * __builtin_shuffle(low, high, place);
    *sum += weight[1] * __builtin_shuffle(low, high, place + 1);
    *sum += weight[2] * __builtin_shuffle(low, high, place + 2);
}
#define NAME gather_avx512
#define TARGET MB_AVX512
#define INNER MB_AVX512
#define ADD add_by_table
#include "ops/tomography/project_gather.h"
#endif
#define NAME gather
#define TARGET MB_MULTIVERSION
#define INNER
#define ADD add
#include "ops/tomography/project_gather.h"

static void add_lines(bool wide, bool distance, const strip *s, const mb_project_path *p,
                      float *const *rows, int64_t cols)
{
#ifdef MB_AVX512
    if (mb_has_avx512()) {
        gather_avx512(wide, distance, s, p, rows, cols);
        return;
    }
#endif
    gather(wide, distance, s, p, rows, cols);
}

/* ---- strips ---- */

/* The pixels of a line that lie inside the mask: first and one past the last. */
static void inside_of(const mb_parallel_geometry *g, bool by_rows, int64_t line, int64_t *first,
                      int64_t *end)
{
    const int64_t across = by_rows ? g->nx : g->ny, lines = by_rows ? g->ny : g->nx;
    const double away = (double)line - 0.5 * (double)(lines - 1),
                 middle = 0.5 * (double)(across - 1);
    const double half = g->radius2 > away * away ? sqrt(g->radius2 - away * away) : 0;
    int64_t p = half < middle ? (int64_t)(middle - half) : 0;
    *first = 0;
    *end = across;
    if (g->radius2 < 0)
        return;
    while (p > 0 && mb_parallel_inside(g, by_rows ? line : p - 1, by_rows ? p - 1 : line))
        p--;
    while (2 * p < across && !mb_parallel_inside(g, by_rows ? line : p, by_rows ? p : line))
        p++;
    *first = p;
    *end = across - p > p ? across - p : p;
}

/* Pixels `first` to `end` of image columns x ... x + lines - 1 as lines. */
MB_MULTIVERSION
static void turn_columns(const float *from, int64_t stride, int64_t lines, int64_t first,
                         int64_t end, float *to, int64_t pitch)
{
    for (int64_t y = first; y < end; y += 16) {
        const int64_t high = end - y < 16 ? end - y : 16;
        if (lines == LINES && high == 16)
            for (int64_t line = 0; line < LINES; line++)
                for (int64_t i = 0; i < 16; i++)
                    to[line * pitch + y + i] = from[(y + i) * stride + line];
        else
            for (int64_t line = 0; line < lines; line++)
                for (int64_t i = 0; i < high; i++)
                    to[line * pitch + y + i] = from[(y + i) * stride + line];
    }
}

/* One thread's job: `count` rays of one kind through slices z ... z + many - 1, 4 or 1. */
typedef struct job {
    const mb_op_call *call;
    const mb_parallel_geometry *g;
    const mb_project_path *paths;
    int64_t count, z, many;
    float *lines; /* the thread's own */
} job;

/* Copies the lines from `first`; what they are outside the mask is 0. */
static strip copy_strip(const job *j, int64_t first)
{
    const mb_array *volume = j->call->arrays[MB_PROJECT_VOLUME];
    const bool by_rows = j->paths->by_rows;
    const int rank = volume->shape.rank;
    const int64_t stride_z = rank == 3 ? volume->strides[0] : 0, stride = volume->strides[rank - 2],
                  lines = by_rows ? j->g->ny : j->g->nx;
    strip s = {.first = first, .across = by_rows ? j->g->nx : j->g->ny};
    int64_t least[LINES], end[LINES];
    s.lines = lines - first < LINES ? (int)(lines - first) : LINES;
    s.pitch = mb_project_line(s.across);
    s.slice = LINES * s.pitch;
    s.low = s.across;
    s.high = -1;
    for (int line = 0; line < s.lines; line++) {
        inside_of(j->g, by_rows, first + line, &least[line], &end[line]);
        s.low = end[line] > least[line] && least[line] < s.low ? least[line] : s.low;
        s.high = end[line] > least[line] && end[line] - 1 > s.high ? end[line] - 1 : s.high;
    }
    s.data = j->lines + EDGE;
    if (s.high < s.low)
        return s;
    for (int64_t z = 0; z < j->many; z++) {
        const float *from = (const float *)volume->data + (j->z + z) * stride_z;
        float *to = j->lines + z * s.slice + EDGE;
        if (!by_rows)
            turn_columns(from + first, stride, s.lines, s.low, s.high + 1, to, s.pitch);
        for (int64_t line = 0; line < s.lines; line++, to += s.pitch) {
            const int64_t a = least[line], n = end[line] - a;
            if (by_rows && n > 0)
                memcpy(to + a, from + (first + line) * stride + a, sizeof(float) * (size_t)n);
            memset(to - EDGE, 0, sizeof(float) * (size_t)(EDGE + a));
            memset(to + a + n, 0, sizeof(float) * (size_t)(s.pitch - EDGE - a - n));
        }
    }
    return s;
}

static void project_job(const job *j)
{
    const mb_project_params *params = j->call->params;
    const mb_array *result = j->call->arrays[MB_PROJECT_RESULT];
    const mb_parallel_geometry *g = j->g;
    const int rank = result->shape.rank;
    const int64_t stride_z = rank == 3 ? result->strides[0] : 0, stride = result->strides[rank - 2],
                  lines = j->paths->by_rows ? g->ny : g->nx;
    const bool wide = j->many > 1, distance = params->method == MB_PARALLEL_DISTANCE;
    const float scale = (float)g->scale;
    float *const first = (float *)result->data + j->z * stride_z, *rows[MB_PROJECT_WIDE] = {NULL};
    for (int64_t k = 0; k < j->count; k++)
        for (int64_t z = 0; z < j->many; z++)
            memset(first + z * stride_z + j->paths[k].index * stride, 0,
                   sizeof(float) * (size_t)g->cols);
    for (int64_t line = 0; line < lines && !mb_cancelled(); line += LINES) {
        const strip s = copy_strip(j, line);
        for (int64_t k = 0; s.high >= s.low && k < j->count; k++) {
            for (int64_t z = 0; z < j->many; z++)
                rows[z] = first + z * stride_z + j->paths[k].index * stride;
            add_lines(wide, distance, &s, &j->paths[k], rows, g->cols);
        }
    }
    for (int64_t k = 0; scale != 1 && k < j->count; k++)
        for (int64_t z = 0; z < j->many; z++) {
            float *row = first + z * stride_z + j->paths[k].index * stride;
            for (int64_t u = 0; u < g->cols; u++)
                row[u] *= scale;
        }
}

/* ---- rays ---- */

static mb_project_path path_of(const mb_project_params *params, const mb_parallel_geometry *g,
                               int64_t index)
{
    const mb_parallel_angle a = mb_project_angle(params, g, index);
    mb_project_path p = {.index = index, .by_rows = fabs(a.cosine) >= fabs(a.sine)};
    /* u = offset + p cross + q along, p being the place and q the line; u = bin is within reach of
    ** the places nearer than 1 / |cross|. */
    const double cross = p.by_rows ? a.cosine : -a.sine, along = p.by_rows ? -a.sine : a.cosine;
    p.inverse = 1 / cross;
    p.slope = -along / cross;
    p.start = -a.offset / cross - 1 / fabs(cross);
    p.cross = (float)fabs(cross);
    for (int i = 0; i < LINES; i++) {
        p.bins[i] = (int32_t)lrint(p.inverse * i * ONE);
        p.drifts[i] = (int32_t)lrint(p.slope * i * ONE);
        p.least = p.bins[i] < p.least ? p.bins[i] : p.least;
        p.most = p.bins[i] > p.most ? p.bins[i] : p.most;
    }
    return p;
}

/* Rays whose lines are rows first; returns how many these are. */
static int64_t make_paths(const mb_project_params *params, const mb_parallel_geometry *g,
                          mb_project_path *paths)
{
    int64_t rows = 0, columns = g->angles;
    for (int64_t k = 0; k < g->angles; k++) {
        const mb_project_path path = path_of(params, g, k);
        paths[path.by_rows ? rows++ : --columns] = path;
    }
    return rows;
}

static int64_t least_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

mb_status mb_project_host(const mb_op_call *call)
{
    const mb_project_params *params = call->params;
    const mb_parallel_geometry g =
        mb_project_geometry(params, &call->arrays[MB_PROJECT_VOLUME]->shape);
    mb_project_path *paths = call->slots[MB_PROJECT_ANGLES];
    const int threads = call->device->facts.threads;
    const int64_t by_rows = make_paths(params, &g, paths), together = mb_project_together(&g),
                  wide = together > 1 ? g.rows / together : 0,
                  groups = wide + g.rows - wide * together;
    int64_t step = g.angles * groups / (4 * threads);
    step = step < 8 ? 8 : least_of(step, MOST_ANGLES);
    const int64_t row_blocks = (by_rows + step - 1) / step,
                  blocks = row_blocks + (g.angles - by_rows + step - 1) / step;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int64_t item = 0; item < groups * blocks; item++) {
        const int64_t group = item / blocks, block = item % blocks;
        const int64_t k = block < row_blocks ? block * step : by_rows + (block - row_blocks) * step,
                      end = block < row_blocks ? by_rows : g.angles;
        const job j = {.call = call,
                       .g = &g,
                       .paths = paths + k,
                       .count = least_of(step, end - k),
                       .z = group < wide ? group * together : wide * together + group - wide,
                       .many = group < wide ? together : 1,
                       .lines = (float *)(void *)((char *)call->slots[MB_PROJECT_STRIPS] +
                                                  mb_project_strip_bytes(&g) *
                                                      (uint64_t)omp_get_thread_num())};
        project_job(&j);
    }
    return mb_cancel_check();
}
