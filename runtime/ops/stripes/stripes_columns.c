/*
** Columns of a sinogram on the host. A column is sorted by its bytes, least significant first: the
** order of equal values stays. Medians of 16 ranks are found together: the sorted window of each
** slides along the columns, in vectors, and loses a value and takes another in one pass.
*/
#include "ops/stripes/stripes_columns.h"
#include "core/multiversion.h"

#define LANES MB_STRIPES_LANES

/* Columns of a piece of the medians: long, because its first window is built value by value. */
enum { PIECE = 512 };

uint64_t mb_stripes_work_bytes(const mb_stripes_sinos *s, int64_t size)
{
    uint64_t columns = mb_bytes_mul((uint64_t)s->pitch, 4 * LANES + 16);
    uint64_t window = mb_bytes_mul((uint64_t)size + 1, 4 * LANES);
    return columns > window ? columns : window;
}

/* ---- sorting ---- */

/* The counts of each of the four bytes become first places; `alike` says where all values have the
** same byte. */
static void first_places(uint32_t (*counts)[256], uint32_t n, bool *alike)
{
    for (int digit = 0; digit < 4; digit++) {
        uint32_t sum = 0;
        alike[digit] = false;
        for (int i = 0; i < 256; i++) {
            uint32_t count = counts[digit][i];
            alike[digit] |= count == n;
            counts[digit][i] = sum;
            sum += count;
        }
    }
}

/* `tile` holds the keys of a column; pairs has room for two lists of n. */
static void sort_column(const int32_t *tile, uint32_t n, uint64_t *pairs, int32_t *keys,
                        uint32_t *order)
{
    uint32_t counts[4][256];
    uint64_t *from = pairs, *to = pairs + n;
    bool alike[4];
    memset(counts, 0, sizeof counts);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t key = (uint32_t)tile[i] ^ 0x80000000U;
        from[i] = (uint64_t)key << 32 | i;
        counts[0][key & 255]++;
        counts[1][key >> 8 & 255]++;
        counts[2][key >> 16 & 255]++;
        counts[3][key >> 24]++;
    }
    first_places(counts, n, alike);
    for (int digit = 0; digit < 4; digit++) {
        uint32_t *places = counts[digit];
        uint64_t *swap = from;
        if (alike[digit])
            continue;
        for (uint32_t i = 0; i < n; i++)
            to[places[from[i] >> (32 + 8 * digit) & 255]++] = from[i];
        from = to;
        to = swap;
    }
    for (uint32_t i = 0; i < n; i++) {
        keys[i] = (int32_t)((uint32_t)(from[i] >> 32) ^ 0x80000000U);
        order[i] = (uint32_t)from[i];
    }
}

MB_MULTIVERSION
static void load_columns(const float *from, int64_t stride, int64_t n, int64_t lanes, int32_t *tile,
                         int64_t pitch)
{
    for (int64_t a = 0; a < n; a++)
        for (int64_t j = 0; j < lanes; j++)
            tile[j * pitch + a] = mb_stripes_key(from[a * stride + j]);
}

void mb_stripes_sort(const mb_stripes_sinos *s, const float *from, int64_t stride, int32_t *keys,
                     uint32_t *order, void *work)
{
    int32_t *tile = work;
    uint64_t *pairs = (uint64_t *)(tile + LANES * s->pitch);
    int64_t blocks = (s->columns + LANES - 1) / LANES;
#pragma omp for schedule(dynamic, 1)
    for (int64_t b = 0; b < blocks; b++) {
        int64_t c = b * LANES, lanes = s->columns - c < LANES ? s->columns - c : LANES;
        if (mb_cancelled())
            continue;
        load_columns(from + c, stride, s->angles, lanes, tile, s->pitch);
        for (int64_t j = 0; j < lanes; j++) {
            int64_t at = (c + j) * s->pitch;
            sort_column(tile + j * s->pitch, (uint32_t)s->angles, pairs, keys + at, order + at);
            for (int64_t r = s->angles; r < s->pitch; r++)
                keys[at + r] = 0;
        }
    }
}

/* ---- medians ---- */

/* window[size][LANES] loses the value `gone` and takes x, lane by lane, and stays sorted. The place
** behind it holds the largest key. */
static inline void slide(int32_t *restrict window, int64_t size, const int32_t *restrict gone,
                         const int32_t *restrict x)
{
    int32_t low[LANES], leave[LANES], enter[LANES];
    for (int l = 0; l < LANES; l++) {
        low[l] = INT32_MIN;
        leave[l] = gone[l];
        enter[l] = x[l];
    }
    for (int64_t i = 0; i < size; i++) {
        int32_t *w = window + i * LANES;
#pragma omp simd
        for (int l = 0; l < LANES; l++) {
            int32_t d = w[l] < leave[l] ? w[l] : w[l + LANES];
            int32_t least = d < enter[l] ? d : enter[l];
            w[l] = low[l] > least ? low[l] : least;
            low[l] = d;
        }
    }
}

/* A window of 2^16 columns slides 256 of them in some 30 ms. */
static inline bool is_cancelled_at(int64_t c)
{
    return c % 256 == 0 && mb_cancelled();
}

/* LANES ranks, columns [c0, c1). Each column takes time in proportion to `size`. */
MB_MULTIVERSION
static void median_piece(const int32_t *keys, int32_t *medians, int64_t pitch, int64_t columns,
                         int64_t c0, int64_t c1, int64_t size, int32_t *window)
{
    static const int32_t none[LANES] = {
        INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX,
        INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX};
    int64_t before = size / 2, after = size - 1 - before;
    const int32_t *gone = none;
    for (int64_t i = 0; i < (size + 1) * LANES; i++)
        window[i] = INT32_MAX;
    for (int64_t c = c0 - before; c < c0 + after && !is_cancelled_at(c); c++)
        slide(window, size, none, keys + mb_stripes_reflect(c, columns) * pitch);
    for (int64_t c = c0; c < c1 && !is_cancelled_at(c); c++) {
        slide(window, size, gone, keys + mb_stripes_reflect(c + after, columns) * pitch);
        memcpy(medians + c * pitch, window + before * LANES, 4 * LANES);
        gone = keys + mb_stripes_reflect(c - before, columns) * pitch;
    }
}

void mb_stripes_medians(const mb_stripes_sinos *s, const int32_t *keys, int32_t *medians,
                        int64_t size, void *work)
{
    int64_t strips = s->pitch / LANES, length = 4 * size > PIECE ? 4 * size : PIECE;
    int64_t pieces = (s->columns + length - 1) / length;
#pragma omp for schedule(dynamic, 1)
    for (int64_t i = 0; i < strips * pieces; i++) {
        int64_t rank = i / pieces * LANES, c0 = i % pieces * length;
        int64_t c1 = c0 + length < s->columns ? c0 + length : s->columns;
        if (!mb_cancelled())
            median_piece(keys + rank, medians + rank, s->pitch, s->columns, c0, c1, size, work);
    }
}

/* ---- putting back ---- */

void mb_stripes_put_back(const mb_stripes_sinos *s, const int32_t *keys, const uint32_t *order,
                         float *to, int64_t stride, void *work)
{
    float *tile = work; /* [angle][LANES] */
    int64_t blocks = (s->columns + LANES - 1) / LANES;
#pragma omp for schedule(dynamic, 1)
    for (int64_t b = 0; b < blocks; b++) {
        int64_t c = b * LANES, lanes = s->columns - c < LANES ? s->columns - c : LANES;
        if (mb_cancelled())
            continue;
        for (int64_t j = 0; j < lanes; j++) {
            const int32_t *own = keys + (c + j) * s->pitch;
            const uint32_t *angles = order + (c + j) * s->pitch;
            for (int64_t r = 0; r < s->angles; r++)
                tile[(int64_t)angles[r] * LANES + j] = mb_stripes_value(own[r]);
        }
        for (int64_t a = 0; a < s->angles; a++)
            memcpy(to + a * stride + c, tile + a * LANES, (size_t)lanes * 4);
    }
}
