/*
** Modes of the angles on the host. Work is shared out in strips of tiles, wide enough for memory to
** be read in long runs. A strip is copied, a few angles at a time, so that a tile of them stays in
** the first-level cache while all modes are summed over it. Profiles are filtered in blocks of
** columns, for which all taps are summed, the smallest first.
*/
#include "core/multiversion.h"
#include "ops/stripes/profile_filter.h"
#include <string.h>

#define TILE MB_MODES_TILE
#define BLOCK MB_MODES_BLOCK
#define RUN 64     /* angles of a copied tile: 8 KB */
#define SHORT 16   /* angles of a sum where there is one mode */
#define STRIP 16   /* tiles */
#define COLUMNS 64 /* of a profile, at a time */

#define VECTOR_(name) vector_##name
#define VECTOR(name) VECTOR_(name)

#ifdef MB_AVX512
#define NAME sums_avx512
#define TARGET MB_AVX512
#define WIDTH 16
#include "ops/stripes/angle_modes_lanes.h"
#define NAME sums_avx2
#define TARGET MB_AVX2
#define WIDTH 8
#include "ops/stripes/angle_modes_lanes.h"
#endif
#define NAME sums_any
#define TARGET
#define WIDTH 4
#include "ops/stripes/angle_modes_lanes.h"

static void sums_of(float *sums, const float *weights, const float *values, int64_t count)
{
#ifdef MB_AVX512
    if (mb_has_avx512()) {
        sums_avx512(sums, weights, values, count);
        return;
    }
    if (mb_has_avx2()) {
        sums_avx2(sums, weights, values, count);
        return;
    }
#endif
    sums_any(sums, weights, values, count);
}

void mb_modes_plan(mb_planner *planner, int64_t count, int64_t angles, int64_t columns,
                   int64_t modes)
{
    const mb_device *device = planner->device;
    uint64_t table = mb_bytes_mul((uint64_t)mb_modes_table(angles, modes), sizeof(float));
    uint64_t group = (uint64_t)mb_modes_group(device, count, angles, columns, modes);
    uint64_t profiles = mb_bytes_mul(
        mb_bytes_mul(group * (uint64_t)modes, (uint64_t)mb_modes_pitch(device, columns)),
        sizeof(float));
    mb_planner_slot(planner, "angle table", table, 0, 0);
    mb_planner_slot(planner, "mode table", table, 0, 0);
    mb_planner_slot(planner, "profiles",
                    mb_bytes_mul(profiles, (uint64_t)mb_modes_parts(device, angles, modes)), 0, 0);
    mb_planner_slot(planner, "filtered profiles", profiles, 0, 0);
}

mb_modes mb_modes_of(const mb_op_call *call, int64_t modes)
{
    mb_modes m = {.sinograms = mb_sinograms_of(call->arrays[0], call->arrays[1]), .modes = modes};
    int64_t angles = m.sinograms.angles;
    m.tiles = mb_modes_up(m.sinograms.columns, TILE);
    m.p = call->slots[MB_MODES_P];
    m.q = call->slots[MB_MODES_Q];
    m.t = call->slots[MB_MODES_T];
    m.s = call->slots[MB_MODES_S];
    m.threads = call->device->facts.threads;
    memset(m.p, 0, sizeof(float) * (size_t)(angles * mb_modes_up(modes, BLOCK) * BLOCK));
    memset(m.q, 0, sizeof(float) * (size_t)(mb_modes_up(angles, BLOCK) * BLOCK * modes));
    return m;
}

/* The width of a tile that is within the columns. */
static int64_t width_of(const mb_modes *m, int64_t tile)
{
    int64_t left = m->sinograms.columns - tile * TILE;
    return left < TILE ? left : TILE;
}

static float *tile_of(const mb_modes *m, float *tiles, int64_t i, int64_t tile)
{
    return tiles + (i * m->tiles + tile) * m->modes * TILE;
}

void mb_modes_gather(const mb_modes *m, const float *tiles, int64_t i, int64_t mode, float *row)
{
    const float *from = tiles + (i * m->tiles * m->modes + mode) * TILE;
    for (int64_t tile = 0; tile < m->tiles; tile++)
        memcpy(row + tile * TILE, from + tile * m->modes * TILE,
               sizeof(float) * (size_t)width_of(m, tile));
}

void mb_modes_scatter(const mb_modes *m, float *tiles, int64_t i, int64_t mode, const float *row)
{
    float *to = tiles + (i * m->tiles * m->modes + mode) * TILE;
    for (int64_t tile = 0; tile < m->tiles; tile++) {
        int64_t width = width_of(m, tile);
        float *part = to + tile * m->modes * TILE;
        memcpy(part, row + tile * TILE, sizeof(float) * (size_t)width);
        memset(part + width, 0, sizeof(float) * (size_t)(TILE - width));
    }
}

/* The columns of `many` angles from the first tile of a strip on: values[tile][RUN][TILE]. */
static void copy_strip(const mb_modes *m, const float *from, int64_t first, int64_t end,
                       int64_t many, float *values)
{
    for (int64_t a = 0; a < many; a++)
        for (int64_t tile = first; tile < end; tile++)
            memcpy(values + ((tile - first) * RUN + a) * TILE,
                   from + a * m->sinograms.from_angle + tile * TILE,
                   sizeof(float) * (size_t)width_of(m, tile));
}

static int64_t end_of(const mb_modes *m, int64_t first)
{
    return m->tiles < first + STRIP ? m->tiles : first + STRIP;
}

/* One mode: t += p x for a few angles of the columns of a tile. */
MB_MULTIVERSION
static void add_single(float *restrict t, const float *p, const float *from, int64_t step,
                       int64_t many, int64_t width)
{
    float sum[TILE] = {0};
    if (width == TILE) {
        for (int64_t a = 0; a < many; a++)
            for (int c = 0; c < TILE; c++)
                sum[c] += p[a * BLOCK] * from[a * step + c];
    } else {
        for (int64_t a = 0; a < many; a++)
            for (int64_t c = 0; c < width; c++)
                sum[c] += p[a * BLOCK] * from[a * step + c];
    }
    for (int c = 0; c < TILE; c++)
        t[c] += sum[c];
}

MB_MULTIVERSION
static void subtract_single(float *to, const float *from, const float *profile, float q,
                            int64_t width)
{
    for (int64_t c = 0; c < width; c++)
        to[c] = from[c] - q * profile[c];
}

MB_MULTIVERSION
static void divide_single(float *to, const float *from, const float *profile, int64_t width)
{
    for (int64_t c = 0; c < width; c++)
        to[c] = from[c] / profile[c];
}

static void project_strip(const mb_modes *m, int64_t sinogram, int64_t i, int64_t first)
{
    _Alignas(64) float values[STRIP * RUN * TILE], sums[BLOCK * TILE];
    const mb_sinograms *s = &m->sinograms;
    const float *from = s->from + sinogram * s->from_row;
    int64_t end = end_of(m, first);
    memset(tile_of(m, m->t, i, first), 0,
           sizeof(float) * (size_t)((end - first) * m->modes * TILE));
    if (m->modes == 1) {
        for (int64_t a0 = 0; a0 < s->angles; a0 += SHORT)
            for (int64_t tile = first; tile < end; tile++)
                add_single(tile_of(m, m->t, i, tile), mb_modes_p(m, 0, a0),
                           from + a0 * s->from_angle + tile * TILE, s->from_angle,
                           s->angles - a0 < SHORT ? s->angles - a0 : SHORT, width_of(m, tile));
        return;
    }
    if (width_of(m, end - 1) < TILE)
        memset(values + (end - 1 - first) * RUN * TILE, 0, sizeof(float) * RUN * TILE);
    for (int64_t a0 = 0; a0 < s->angles; a0 += RUN) {
        int64_t many = s->angles - a0 < RUN ? s->angles - a0 : RUN;
        copy_strip(m, from + a0 * s->from_angle, first, end, many, values);
        for (int64_t tile = first; tile < end; tile++) {
            float *t = tile_of(m, m->t, i, tile);
            for (int64_t r0 = 0; r0 < m->modes; r0 += BLOCK) {
                int64_t rows = m->modes - r0 < BLOCK ? m->modes - r0 : BLOCK;
                sums_of(sums, mb_modes_p(m, r0, a0), values + (tile - first) * RUN * TILE, many);
                for (int64_t k = 0; k < rows * TILE; k++)
                    t[r0 * TILE + k] += sums[k];
            }
        }
    }
}

void mb_modes_project(const mb_modes *m, int64_t first, int64_t many)
{
    int64_t strips = mb_modes_up(m->tiles, STRIP);
#pragma omp parallel for schedule(static) num_threads(m->threads)
    for (int64_t job = 0; job < many * strips; job++) {
        int64_t i = job / strips;
        if (!mb_cancelled())
            project_strip(m, first + i, i, job % strips * STRIP);
    }
}

static void subtract_strip(const mb_modes *m, int64_t sinogram, int64_t i, int64_t first)
{
    _Alignas(64) float sums[BLOCK * TILE];
    const mb_sinograms *s = &m->sinograms;
    int64_t end = end_of(m, first);
    for (int64_t a0 = 0; a0 < s->angles; a0 += BLOCK) {
        int64_t many = s->angles - a0 < BLOCK ? s->angles - a0 : BLOCK;
        const float *from = s->from + sinogram * s->from_row + a0 * s->from_angle;
        float *to = s->to + sinogram * s->to_row + a0 * s->to_angle;
        for (int64_t tile = first; tile < end; tile++) {
            int64_t width = width_of(m, tile);
            sums_of(sums, mb_modes_q(m, a0, 0), tile_of(m, m->s, i, tile), m->modes);
            for (int64_t a = 0; a < many; a++) {
                const float *x = from + a * s->from_angle + tile * TILE;
                float *y = to + a * s->to_angle + tile * TILE;
                for (int64_t c = 0; c < width; c++)
                    y[c] = x[c] - sums[a * TILE + c];
            }
        }
    }
}

static void change_single(const mb_modes *m, int64_t sinogram, int64_t i, int64_t first,
                          bool divide)
{
    const mb_sinograms *s = &m->sinograms;
    int64_t end = end_of(m, first);
    for (int64_t a = 0; a < s->angles; a++) {
        const float *from = s->from + sinogram * s->from_row + a * s->from_angle;
        float *to = s->to + sinogram * s->to_row + a * s->to_angle, q = *mb_modes_q(m, a, 0);
        for (int64_t tile = first; tile < end; tile++) {
            const float *profile = tile_of(m, m->s, i, tile);
            int64_t width = width_of(m, tile), c = tile * TILE;
            if (divide)
                divide_single(to + c, from + c, profile, width);
            else
                subtract_single(to + c, from + c, profile, q, width);
        }
    }
}

void mb_modes_subtract(const mb_modes *m, int64_t first, int64_t many, bool divide)
{
    int64_t strips = mb_modes_up(m->tiles, STRIP);
#pragma omp parallel for schedule(static) num_threads(m->threads)
    for (int64_t job = 0; job < many * strips; job++) {
        int64_t i = job / strips;
        if (mb_cancelled())
            continue;
        if (m->modes == 1)
            change_single(m, first + i, i, job % strips * STRIP, divide);
        else
            subtract_strip(m, first + i, i, job % strips * STRIP);
    }
}

/* ---- filters of profiles (profile_filter.h) ---- */

int64_t mb_profile_filter_room(const mb_profile_filter *f)
{
    return mb_modes_up(f->columns, COLUMNS) * COLUMNS + 2 * f->reach;
}

uint64_t mb_profile_filter_rows_bytes(const mb_profile_filter *f, const mb_device *device)
{
    return mb_modes_on_cuda(device) ? 0
                                    : mb_bytes_mul(2 * (uint64_t)mb_profile_filter_room(f),
                                                   sizeof(float) * (uint64_t)device->facts.threads);
}

void mb_profile_filter_extend(const mb_profile_filter *f, const float *row, float *extended)
{
    int64_t used = f->columns + 2 * f->reach, room = mb_profile_filter_room(f);
    for (int64_t i = 0; i < f->reach; i++)
        extended[i] = row[mb_profile_column(f, f->left - f->reach + i)];
    memcpy(extended + f->reach, row, sizeof(float) * (size_t)f->columns);
    for (int64_t i = f->reach + f->columns; i < used; i++)
        extended[i] = row[mb_profile_column(f, f->left - f->reach + i)];
    memset(extended + used, 0, sizeof(float) * (size_t)(room - used));
}

MB_MULTIVERSION
static void even_taps(const float *restrict at, const float *taps, int64_t reach,
                      float *restrict sum)
{
    float own[COLUMNS] = {0};
    for (int64_t d = reach; d > 0; d--)
        for (int c = 0; c < COLUMNS; c++)
            own[c] += taps[d] * (at[c - d] + at[c + d]);
    for (int c = 0; c < COLUMNS; c++)
        sum[c] = own[c] + taps[0] * at[c];
}

MB_MULTIVERSION
static void odd_taps(const float *restrict at, const float *taps, int64_t reach,
                     float *restrict sum)
{
    float own[COLUMNS] = {0};
    for (int64_t d = reach; d > 0; d--)
        for (int c = 0; c < COLUMNS; c++)
            own[c] += taps[d] * (at[c - d] - at[c + d]);
    for (int c = 0; c < COLUMNS; c++)
        sum[c] += own[c];
}

void mb_profile_filter_run(const mb_profile_filter *f, const float *extended, const float *even,
                           const float *other, const float *odd, float *to)
{
    for (int64_t c = 0; c < f->columns; c += COLUMNS) {
        float sum[COLUMNS];
        int64_t left = f->columns - c;
        even_taps(extended + f->reach + c, even, f->reach, sum);
        if (other)
            odd_taps(other + f->reach + c, odd, f->reach, sum);
        memcpy(to + c, sum, sizeof(float) * (size_t)(left < COLUMNS ? left : COLUMNS));
    }
}
