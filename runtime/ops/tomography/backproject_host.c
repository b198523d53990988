/*
** The host kernel of backproject.
**
** 16 slices are interleaved bin by bin, a block of angles at a time, into scratch; a thread sums a
** tile of 16 x 16 pixels over the block, eight angles at a time, so that the detector windows stay
** in the first cache: per angle a pixel loads an index, a weight and two packets of 16 slices. Few
** slices left over go one by one: there the 16 pixels of a tile's row are the vector, and with
** AVX-512 its window of 32 bins is a register table. Both ways do the same arithmetic in the same
** order, so a slice comes out bit by bit the same whatever its company. Tiles, positions and
** guards: parallel_tiles.h. Shares out tiles with OpenMP; no state but the scratch.
*/
#include "ops/tomography/backproject_host.h"
#include "core/multiversion.h"
#include <omp.h>
#include <string.h>

enum {
    TILE = MB_TILE,
    LANES = MB_TILE,
    GUARD = MB_TILE_GUARD,
    STEP = 8 /* angles per pass over the tile */
};

/* Where in a window of bins of `pitch` the 16 pixels of a tile's row lie at angle k, and their
** weights; with a shadow, by overlaps. */
__attribute__((always_inline)) static inline void locate(const mb_tile_angles *t, int64_t k, int dy,
                                                         const mb_parallel_shadow *shadow,
                                                         uint32_t pitch, uint32_t *place,
                                                         float *weight)
{
    float row = t->first[k] - (float)dy * t->sine[k], cosine = t->cosine[k];
#pragma omp simd
    for (int dx = 0; dx < TILE; dx++) {
        float u = row + (float)dx * cosine;
        int32_t index = (int32_t)u;
        place[dx] = (uint32_t)index * pitch;
        weight[dx] = u - (float)index;
    }
    if (shadow)
#pragma omp simd
        for (int dx = 0; dx < TILE; dx++)
            weight[dx] = mb_parallel_share(weight[dx], *shadow);
}

#define VECTOR_(name) name##_vector
#define VECTOR(name) VECTOR_(name)
#ifdef MB_AVX512
/* Element i of a row in every lane: by shuffles, because it is loads that bind. */
MB_AVX512
__attribute__((always_inline)) static inline mb_floats splat(const float *row, int i)
{
    const mb_ints quarter = {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3},
                  element = {0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12};
    mb_floats four = __builtin_shuffle(*(const mb_floats *)(const void *)row, quarter + i / 4 * 4);
    return __builtin_shuffle(four, element + i % 4);
}
#define NAME add_lanes_avx512
#define TARGET MB_AVX512
#define WIDTH 16
#define PIXELS 16
#define WEIGHT(row, i) splat(row, i)
#include "ops/tomography/backproject_lanes.h"
#define NAME add_lanes_avx2
#define TARGET MB_AVX2
#define WIDTH 8
#define PIXELS 4
#define WEIGHT(row, i) ((vector){0} + (row)[i])
#include "ops/tomography/backproject_lanes.h"
#endif
#define NAME add_lanes
#define TARGET
#define WIDTH 4
#define PIXELS 2
#define WEIGHT(row, i) ((vector){0} + (row)[i])
#include "ops/tomography/backproject_lanes.h"

/* The same for one slice: sums [pixel of the tile]. */
MB_MULTIVERSION
static void add_single(bool distance, float *sums, const float *packed, int64_t pitch,
                       const mb_tile_angles *t, int64_t count)
{
    for (int dy = 0; dy < TILE; dy++) {
        float sum[TILE];
        memcpy(sum, sums + dy * TILE, sizeof sum);
        for (int64_t k = 0; k < count; k++) {
            const mb_parallel_shadow shadow = mb_parallel_shadow_of(t->cosine[k], t->sine[k]);
            const float *window = packed + k * pitch + t->start[k];
            uint32_t index[TILE];
            float weight[TILE];
            locate(t, k, dy, distance ? &shadow : NULL, 1, index, weight);
#pragma omp simd
            for (int dx = 0; dx < TILE; dx++) {
                const float *q = window + index[dx];
                float lerp = q[1] - q[0];
                lerp = q[0] + weight[dx] * lerp;
                sum[dx] += lerp;
            }
        }
        memcpy(sums + dy * TILE, sum, sizeof sum);
    }
}

#ifdef MB_AVX512
/* The same where a 32-entry table look-up is one instruction: the whole window of a tile fits two
** registers. */
MB_AVX512
__attribute__((always_inline)) static inline void
add_single_by_table(bool distance, float *sums, const float *packed, int64_t pitch,
                    const mb_tile_angles *t, int64_t count)
{
    const mb_floats iota = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const mb_ints after = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 15};
    const mb_floats one = (mb_floats){0} + 1.0F;
    mb_floats sum[TILE];
    memcpy(sum, sums, sizeof sum);
    for (int64_t k = 0; k < count; k++) {
        const mb_floats_anywhere *window =
            (const mb_floats_anywhere *)(const void *)(packed + k * pitch + t->start[k]);
        const mb_floats_anywhere *next =
            (const mb_floats_anywhere *)(const void *)(packed + k * pitch + t->start[k] + 1);
        mb_floats low = window[0], high = window[1];
        /* Bin 32 may be past the end of the scratch; a tile's shadow ends before. */
        mb_floats rise_low = next[0] - low, rise_high = __builtin_shuffle(high, after) - high;
        const mb_parallel_shadow shadow = mb_parallel_shadow_of(t->cosine[k], t->sine[k]);
#pragma GCC unroll 16
        for (int dy = 0; dy < TILE; dy++) {
            float row = t->first[k] - (float)dy * t->sine[k];
            mb_floats u = row + iota * t->cosine[k];
            mb_ints index = __builtin_convertvector(u, mb_ints);
            mb_floats weight = u - __builtin_convertvector(index, mb_floats);
            if (distance) { /* mb_parallel_share */
                weight = (weight - shadow.lead) * shadow.inverse;
                weight = (mb_floats)((mb_ints)weight & (weight > 0.0F));
                const mb_ints whole = weight >= 1.0F;
                weight = (mb_floats)(((mb_ints)weight & ~whole) | ((mb_ints)one & whole));
            }
            mb_floats lerp = __builtin_shuffle(rise_low, rise_high, index);
            lerp = __builtin_shuffle(low, high, index) + weight * lerp;
            sum[dy] += lerp;
        }
    }
    memcpy(sums, sum, sizeof sum);
}

MB_AVX512
static void add_single_avx512(bool distance, float *sums, const float *packed, int64_t pitch,
                              const mb_tile_angles *t, int64_t count)
{
    if (distance)
        add_single_by_table(true, sums, packed, pitch, t, count);
    else
        add_single_by_table(false, sums, packed, pitch, t, count);
}
#endif

static void add_angles(int lanes, bool distance, float *sums, const float *packed, int64_t pitch,
                       const mb_tile_angles *t, int64_t count)
{
#ifdef MB_AVX512
    if (mb_has_avx512()) {
        (lanes == LANES ? add_lanes_avx512 : add_single_avx512)(distance, sums, packed, pitch, t,
                                                                count);
        return;
    }
    if (lanes == LANES && mb_has_avx2()) {
        add_lanes_avx2(distance, sums, packed, pitch, t, count);
        return;
    }
#endif
    (lanes == LANES ? add_lanes : add_single)(distance, sums, packed, pitch, t, count);
}

/* Slices that share a pass when `left` remain: no more than were planned for. */
static int lanes_of(int64_t left)
{
#ifdef MB_AVX512
    /* There a slice by itself takes a tenth of the time that 16 take together. */
    if (mb_has_avx512() && left < 10)
        return 1;
#endif
    return mb_tile_lanes(left);
}

/* One angle of slices z ... z + many - 1 into its packed row; lanes without a slice and guards are
** 0. */
MB_MULTIVERSION
static void pack_angle(const float *sino, int64_t row_stride, int64_t many, int64_t cols, int lanes,
                       float *to)
{
    memset(to, 0, sizeof(float) * GUARD * (size_t)lanes);
    memset(to + (GUARD + cols) * lanes, 0, sizeof(float) * GUARD * (size_t)lanes);
    to += GUARD * lanes;
    if (lanes == 1) {
        memcpy(to, sino, (size_t)cols * sizeof(float));
        return;
    }
    for (int64_t x0 = 0; x0 < cols; x0 += LANES) { /* a few cache lines of every slice at a time */
        int64_t wide = cols - x0 < LANES ? cols - x0 : LANES;
        for (int64_t z = 0; z < many; z++)
            for (int64_t x = 0; x < wide; x++)
                to[(x0 + x) * LANES + z] = sino[z * row_stride + x0 + x];
        for (int64_t z = many; z < LANES; z++)
            for (int64_t x = 0; x < wide; x++)
                to[(x0 + x) * LANES + z] = 0;
    }
}

/* The part of a job that all tiles share. */
typedef struct pass {
    const mb_op_call *call;
    mb_parallel_geometry g;
    bool distance; /* the method */
    int lanes;
    int64_t z, many;                  /* slices of this group */
    int64_t k, count;                 /* angles of this block */
    bool first, last;                 /* block of angles */
    int64_t pitch;                    /* bins of a packed row */
    int64_t ty, tx, tiles_y, tiles_x; /* first tile, and how many there are */
} pass;

/* A row of the tile's sums from [pixel][lane] to [lane][pixel]. */
MB_MULTIVERSION
static void turn_row(float *row)
{
    for (int z = 0; z < LANES; z++)
        for (int dx = 0; dx < z; dx++) {
            float other = row[z * TILE + dx];
            row[z * TILE + dx] = row[dx * LANES + z];
            row[dx * LANES + z] = other;
        }
}

#ifdef MB_AVX512
/* By shuffles: at each step the blocks of half the size off the diagonal change places. */
MB_AVX512
static void turn_row_avx512(float *row)
{
    const mb_ints iota = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    mb_floats v[TILE];
    memcpy(v, row, sizeof v);
#pragma GCC unroll 4
    for (int half = 1; half < TILE; half *= 2) {
        const mb_ints low = (iota & ~half) + (iota & half) * (TILE / half), high = low + half;
#pragma GCC unroll 16
        for (int i = 0; i < TILE; i++)
            if ((i & half) == 0) {
                mb_floats a = v[i], b = v[i + half];
                v[i] = __builtin_shuffle(a, b, low);
                v[i + half] = __builtin_shuffle(a, b, high);
            }
    }
    memcpy(row, v, sizeof v);
}
#endif

__attribute__((always_inline)) static inline void
add_row(float *restrict to, const float *restrict from, int64_t count, bool first, float scale)
{
    for (int64_t x = 0; x < count; x++)
        to[x] = (first ? from[x] : to[x] + from[x]) * scale;
}

/* A row of a slice: set or add, and scale. */
MB_MULTIVERSION
static void store_row(float *to, const float *from, int64_t count, bool first, float scale)
{
    if (count == TILE && first)
        add_row(to, from, TILE, true, scale);
    else if (count == TILE)
        add_row(to, from, TILE, false, scale);
    else
        add_row(to, from, count, first, scale);
}

/* Writes the tile's sums into the slices: set or add, and after the last block scale and mask.
** Turns the sums. */
static void store_tile(const pass *p, float *sums, int64_t y0, int64_t x0, bool inside)
{
    const mb_backproject_params *params = p->call->params;
    const mb_parallel_geometry *g = &p->g;
    const mb_array *result = p->call->arrays[MB_BACKPROJECT_RESULT];
    int64_t row_stride = result->strides[result->shape.rank - 2];
    int64_t slice_stride = result->shape.rank == 3 ? result->strides[0] : 0;
    int64_t top = y0 > g->y0 ? y0 : g->y0, bottom = y0 + TILE < g->y1 ? y0 + TILE : g->y1;
    int64_t left = x0 > g->x0 ? x0 : g->x0, right = x0 + TILE < g->x1 ? x0 + TILE : g->x1;
    float outside = (float)params->circle_value, scale = p->last ? (float)g->scale : 1.0F;
    if (inside && p->lanes == LANES)
        for (int64_t y = 0; y < TILE; y++) {
            float *row = sums + y * TILE * LANES;
#ifdef MB_AVX512
            (mb_has_avx512() ? turn_row_avx512 : turn_row)(row);
#else
            turn_row(row);
#endif
        }
    for (int64_t z = 0; z < p->many; z++)
        for (int64_t y = top; y < bottom; y++) {
            const float *from = sums + ((y - y0) * p->lanes + z) * TILE - x0;
            float *to = (float *)result->data + (p->z + z) * slice_stride +
                        (y - g->y0) * row_stride - g->x0;
            if (inside)
                store_row(to + left, from + left, right - left, p->first, scale);
            if (p->last && g->radius2 >= 0)
                for (int64_t x = left; x < right; x++)
                    if (!mb_parallel_inside(g, y, x))
                        to[x] = outside;
        }
}

MB_MULTIVERSION
static void place_tile(const mb_parallel_geometry *g, const mb_parallel_angle *angles,
                       int64_t count, int64_t y, int64_t x, mb_tile_angles *t)
{
    mb_tile_place(g, angles, count, y, x, t);
}

static void run_tile(const pass *p, int64_t tile)
{
    const mb_parallel_angle *angles = p->call->slots[MB_BACKPROJECT_ANGLES];
    int threads = p->call->device->facts.threads;
    uint64_t bytes = p->call->slot_bytes[MB_BACKPROJECT_TILES] / (uint64_t)threads;
    float *sums = (float *)(void *)((char *)p->call->slots[MB_BACKPROJECT_TILES] +
                                    bytes * (uint64_t)omp_get_thread_num());
    int64_t y = (p->ty + tile / p->tiles_x) * TILE, x = (p->tx + tile % p->tiles_x) * TILE;
    bool inside = p->g.radius2 < 0 || mb_tile_inside(&p->g, y, x);
    if (inside) {
        mb_tile_angles t;
        place_tile(&p->g, angles + p->k, p->count, y, x, &t);
        memset(sums, 0, sizeof(float) * TILE * TILE * (size_t)p->lanes);
        add_angles(p->lanes, p->distance, sums, p->call->slots[MB_BACKPROJECT_PACKED], p->pitch, &t,
                   p->count);
    }
    store_tile(p, sums, y, x, inside);
}

static void run_pass(const pass *p)
{
    const mb_array *sino = p->call->arrays[MB_BACKPROJECT_SINO];
    int rank = sino->shape.rank, threads = p->call->device->facts.threads;
    int64_t slice_stride = rank == 3 ? sino->strides[0] : 0, angle_stride = sino->strides[rank - 2];
    float *packed = p->call->slots[MB_BACKPROJECT_PACKED];
#pragma omp parallel num_threads(threads)
    {
#pragma omp for schedule(static)
        for (int64_t k = 0; k < p->count; k++)
            pack_angle((const float *)sino->data + p->z * slice_stride + (p->k + k) * angle_stride,
                       slice_stride, p->many, p->g.cols, p->lanes,
                       packed + k * p->pitch * p->lanes);
#pragma omp for schedule(dynamic, 4)
        for (int64_t tile = 0; tile < p->tiles_y * p->tiles_x; tile++)
            if (!mb_cancelled())
                run_tile(p, tile);
    }
}

mb_status mb_backproject_host(const mb_op_call *call)
{
    const mb_backproject_params *params = call->params;
    mb_parallel_angle *angles = call->slots[MB_BACKPROJECT_ANGLES];
    pass p = {.call = call,
              .distance = params->method == MB_PARALLEL_DISTANCE,
              .g = mb_backproject_geometry(params, &call->arrays[MB_BACKPROJECT_SINO]->shape)};
    if (params->angles.count != p.g.angles)
        return mb_fail(MB_STATUS_ARGUMENT, "angles", "angles is missing: %lld numbers are needed",
                       (long long)p.g.angles);
    p.pitch = mb_tile_row(&p.g);
    p.ty = p.g.y0 / TILE;
    p.tx = p.g.x0 / TILE;
    p.tiles_y = (p.g.y1 + TILE - 1) / TILE - p.ty;
    p.tiles_x = (p.g.x1 + TILE - 1) / TILE - p.tx;
    for (int64_t k = 0; k < p.g.angles; k++)
        angles[k] = mb_backproject_angle(params, &p.g, k);
    for (p.z = 0; p.z < p.g.rows; p.z += p.many) {
        int64_t left = p.g.rows - p.z;
        p.lanes = lanes_of(left);
        p.many = left < p.lanes ? left : p.lanes;
        for (p.k = 0; p.k < p.g.angles; p.k += p.count) {
            p.count = p.g.angles - p.k < MB_TILE_ANGLES ? p.g.angles - p.k : MB_TILE_ANGLES;
            p.first = p.k == 0;
            p.last = p.k + p.count == p.g.angles;
            run_pass(&p);
            MB_TRY(mb_cancel_check());
        }
    }
    return MB_STATUS_OK;
}
