/*
** phase_filter: what the host and the CUDA kernels share. Arrays: image (in), result (out; may be
** the same array): frames of n[0] rows and n[1] columns.
**
** A frame is padded to p[0] x p[1]: position y < n is its own row y, the others are those of a
** table, or a constant (-1). The image lies at the origin: the padding behind it is circular, so
** what is before it is at the end. One is subtracted from every value first, which keeps the digits
** of images near 1. Only the rows of the frame are transformed along x, because padded rows are
** copies of them; columns are padded where they are transformed, and of what comes back only the
** rows of the frame are kept. So scratch for a frame is n[0] rows of half a spectrum.
**
** The response at a frequency depends on the sums over both axes of numbers that the axes'
** tables have (mb_phase_axis): [3][p / 2 + 1] floats.
*/
#ifndef MB_OPS_OP_PHASE_FILTER_H
#define MB_OPS_OP_PHASE_FILTER_H

#include "core/both.h"
#include "ops/fft/fused_fft.h"
#include "ops/op_args.h"

typedef enum mb_phase_method {
    MB_PHASE_PAGANIN,
    MB_PHASE_GENERALIZED,
    MB_PHASE_CTF,
    MB_PHASE_FARAGO
} mb_phase_method;

typedef enum mb_phase_padding {
    MB_PHASE_PAD_EDGE,
    MB_PHASE_PAD_REFLECT,
    MB_PHASE_PAD_SYMMETRIC,
    MB_PHASE_PAD_CONSTANT,
    MB_PHASE_PAD_NONE
} mb_phase_padding;

typedef enum mb_phase_size { MB_PHASE_SIZE_POWER, MB_PHASE_SIZE_SMOOTH } mb_phase_size;

typedef struct mb_phase_filter_params {
    int method;
    mb_vector fresnel; /* wavelength * distance / pixel size^2: one, or of rows and columns */
    double delta_beta;
    double low, high; /* ctf: the regularization below and above the first maximum */
    int padding;
    double value; /* of constant padding */
    int size;
    mb_vector padded; /* extents: one, or of rows and columns; absent = chosen */
    bool log;
    double min; /* of values before the logarithm */
} mb_phase_filter_params;

enum { MB_PHASE_FILTER_IMAGE, MB_PHASE_FILTER_RESULT };
/* FFTs. Host: of a row, and of a column. CUDA: of a padded frame, unless fused. */
enum { MB_PHASE_FILTER_FORWARD, MB_PHASE_FILTER_INVERSE };
enum { MB_PHASE_FILTER_COLUMN_FORWARD = 2, MB_PHASE_FILTER_COLUMN_INVERSE };
enum {
    MB_PHASE_FILTER_ROW_TABLE,    /* mb_phase_axis of the frequencies along y */
    MB_PHASE_FILTER_COLUMN_TABLE, /* along x */
    MB_PHASE_FILTER_SOURCES,      /* int32_t[p[0] + p[1]]: the rows and columns of positions */
    MB_PHASE_FILTER_SPECTRUM,     /* rows of spectra; CUDA, not fused: a padded frame */
    MB_PHASE_FILTER_RESPONSE,     /* host: float[p[1] / 2 + 1][p[0] / 2 + 1], with the scale */
    MB_PHASE_FILTER_LINES,        /* host: a line or a few columns of each thread */
    MB_PHASE_FILTER_TWIDDLES,     /* CUDA, fused: the tables of the transforms, rows' first */
    MB_PHASE_FILTER_WORK          /* and more: work areas of the FFTs */
};

/* Columns that the host transforms together: a line of memory. */
#define MB_PHASE_COLUMNS 8
/* Bytes of spectra that CUDA holds at a time, where a frame does not need more. */
#define MB_PHASE_CUDA_BYTES ((int64_t)256 << 20)
/* In natural logarithms: how far the filter has decayed over the chosen padding on a side. */
#define MB_PHASE_DECAY 9.0

static inline double mb_phase_number(const mb_vector *vector, int axis)
{
    return vector->values[vector->count > 1 ? axis : 0];
}

/* The length, in pixels, over which the filter of Paganin decays by e along an axis. */
static inline double mb_phase_length(const mb_phase_filter_params *p, int axis)
{
    return sqrt(p->delta_beta * mb_phase_number(&p->fresnel, axis) / (4 * 3.14159265358979323846));
}

static inline bool mb_phase_decays(const mb_phase_filter_params *p)
{
    return p->method == MB_PHASE_PAGANIN || p->method == MB_PHASE_GENERALIZED;
}

static inline bool mb_phase_is_smooth(int64_t n)
{
    static const int primes[] = {2, 3, 5, 7};
    if (n % 2)
        return false;
    for (int i = 0; i < 4; i++)
        while (n % primes[i] == 0)
            n /= primes[i];
    return n == 1;
}

/* The extent of the padded frame along an axis of n elements. */
static inline int64_t mb_phase_padded(const mb_phase_filter_params *p, int axis, int64_t n)
{
    if (p->padding == MB_PHASE_PAD_NONE)
        return n;
    if (p->padded.count)
        return (int64_t)mb_phase_number(&p->padded, axis);
    double reach = 2 * ceil(MB_PHASE_DECAY * mb_phase_length(p, axis));
    int64_t least = n + (mb_phase_decays(p) && reach < (double)n ? (int64_t)reach : n), size = 2;
    if (p->size == MB_PHASE_SIZE_POWER) {
        while (size < least)
            size *= 2;
        return size;
    }
    while (!mb_phase_is_smooth(least))
        least++;
    return least;
}

/* The element that position i of the padded axis holds: a copy of element 0 ... n - 1, or -1. */
static inline int32_t mb_phase_source(int padding, int64_t i, int64_t n, int64_t padded)
{
    const int64_t front = (padded - n) / 2, at = i < padded - front ? i : i - padded;
    const bool twice = padding == MB_PHASE_PAD_SYMMETRIC;
    const int64_t period = twice ? 2 * n : n > 1 ? 2 * n - 2 : 1;
    if (at >= 0 && at < n)
        return (int32_t)at;
    if (padding == MB_PHASE_PAD_CONSTANT)
        return -1;
    if (padding == MB_PHASE_PAD_EDGE)
        return at < 0 ? 0 : (int32_t)(n - 1);
    int64_t rest = at % period;
    rest = rest < 0 ? rest + period : rest;
    return (int32_t)(rest < n ? rest : period - rest - twice);
}

/* Entry k of an axis' table, of the frequency k / padded: a term of the denominator of a rational
** response, or the cosine and the sine of the phase and the squared frequency. */
static inline void mb_phase_axis(const mb_phase_filter_params *p, int axis, int64_t padded,
                                 float *table)
{
    const double pi = 3.14159265358979323846, fresnel = mb_phase_number(&p->fresnel, axis);
    const int64_t count = padded / 2 + 1;
    for (int64_t k = 0; k < count; k++) {
        const double f = (double)k / (double)padded, wave = sin(pi * f) / pi;
        const double phase =
            pi * fresnel * (p->method == MB_PHASE_GENERALIZED ? wave * wave : f * f);
        const bool rational = mb_phase_decays(p);
        table[k] = (float)(rational ? p->delta_beta * phase : f * f);
        table[count + k] = rational ? 0 : (float)cos(phase);
        table[2 * count + k] = rational ? 0 : (float)sin(phase);
    }
}

/* What all frequencies have in common. */
typedef struct mb_phase_response {
    int method;
    float scale;      /* 1 / points, for the transforms, which are not normalized */
    float absorption; /* 1 / delta_beta */
    /* ctf: low has the weight part * erfc((f - cut) / 0.01), which is 1 at f = 0, high the rest of
    ** 1; rest = 1 - 2 part. */
    float low, high, cut, part, rest;
    float offset; /* added to what comes back */
} mb_phase_response;

static inline mb_phase_response mb_phase_response_of(const mb_phase_filter_params *p,
                                                     const int64_t padded[2])
{
    /* Along y, the first maximum of the contrast. */
    double fresnel = mb_phase_number(&p->fresnel, 0), cut = fresnel > 2 ? sqrt(0.5 / fresnel) : 0.5;
    mb_phase_response r;
    cut += 1.0 / (double)padded[0];
    r.method = p->method;
    r.scale = (float)(1.0 / ((double)padded[0] * (double)padded[1]));
    r.absorption = (float)(1 / p->delta_beta);
    r.low = (float)p->low;
    r.high = (float)p->high;
    r.cut = (float)cut;
    r.part = (float)(1 / erfc(-100 * cut));
    r.rest = (float)(1 - 2 / erfc(-100 * cut));
    r.offset = p->method == MB_PHASE_CTF ? 0 : 1;
    return r;
}

/* The response at entry y of the table of rows and entry x of that of columns, of so many entries
** each. */
MB_BOTH static inline float mb_phase_response_at(const mb_phase_response *r, const float *rows,
                                                 int64_t row_count, int64_t y, const float *columns,
                                                 int64_t column_count, int64_t x)
{
    const float sum = rows[y] + columns[x];
    if (r->method == MB_PHASE_PAGANIN || r->method == MB_PHASE_GENERALIZED)
        return r->scale / (1.0f + sum);
    const float cy = rows[row_count + y], sy = rows[2 * row_count + y],
                cx = columns[column_count + x], sx = columns[2 * column_count + x];
    const float c = cx * cy - sx * sy, s = sx * cy + cx * sy;
    if (r->method == MB_PHASE_FARAGO)
        return r->scale / (c + s / r->absorption);
    const float contrast = s + c * r->absorption;
    /* The complementary error function on both sides, exact in its tail. */
    const float from_cut = 100.0f * (sqrtf(sum) - r->cut), far = fabsf(from_cut);
    const float tail = far < 5.0f ? erfcf(far) : 0.0f;
    const float below = from_cut < 0 ? 2.0f - tail : tail,
                above = from_cut < 0 ? tail : 2.0f - tail;
    const float limit = r->low * (r->part * below) + r->high * (r->rest + r->part * above);
    return r->scale * contrast / (2.0f * contrast * contrast + limit);
}

/* ---- CUDA: the fused transforms ---- */

/* Rows y and y + mb_phase_apart are a pair, which is transformed as one complex row. Apart by a
** multiple of what a thread of the columns' kernel steps by, so that both rows are in one thread. */
static inline int mb_phase_apart_eighths(int64_t rows, int64_t padded)
{
    return 2 * rows <= padded ? 2 : 4 * rows <= 3 * padded ? 3 : 4;
}
static inline int64_t mb_phase_apart(int64_t rows, int64_t padded)
{
    return padded / 8 * mb_phase_apart_eighths(rows, padded);
}
static inline int64_t mb_phase_pairs(int64_t rows, int64_t padded)
{
    const int64_t apart = mb_phase_apart(rows, padded);
    return rows < apart ? rows : apart;
}

/* Spectra of pairs of rows: tiles of W frequencies, a tile is [2][pairs][W] complex numbers:
** frequencies m, then -m, where -0 stands for the highest. */
static inline int mb_phase_tile(int64_t rows) /* W, for a padded height */
{
    const int64_t width = 512 * mb_fused_fft_per_thread(rows) / rows;
    return (int)(width < 8 ? width : 8);
}
static inline int64_t mb_phase_tiles(const int64_t padded[2])
{
    const int64_t width = mb_phase_tile(padded[0]);
    return (padded[1] / 2 + width - 1) / width;
}
static inline int64_t mb_phase_frame_points(int64_t rows, const int64_t padded[2])
{
    return 2 * mb_phase_tiles(padded) * mb_phase_tile(padded[0]) * mb_phase_pairs(rows, padded[0]);
}

/* Complex numbers of the table of a transform of n points, and of the room of one exchange. */
static inline int64_t mb_phase_table(int64_t n)
{
    return n == 4096 ? 5120 : mb_fused_fft_table(n);
}
static inline int64_t mb_phase_room(int64_t n)
{
    return n + n / (n == 64 ? 8 : 32);
}

/* Rows that a block transforms together. */
static inline int mb_phase_rows(int64_t columns)
{
    const int64_t rows = 512 * mb_fused_fft_per_thread(columns) / columns;
    return (int)(rows < 8 ? rows : 8);
}

static inline bool mb_phase_fused_extent(int64_t n)
{
    return n == 64 || n == 512 || n == 1024 || n == 2048 || n == 4096;
}

static inline int64_t mb_phase_row_shared(int64_t n)
{
    return 8 * (mb_phase_table(n) + mb_phase_rows(n) * mb_phase_room(n));
}
static inline int64_t mb_phase_column_shared(int64_t n)
{
    return 8 * (mb_phase_table(n) + mb_phase_tile(n) * mb_phase_room(n));
}

static inline bool mb_phase_fused(const mb_device_facts *facts, const int64_t padded[2])
{
    const mb_fused_fft_room room = mb_fused_fft_device(facts);
    return room.threads > 0 && mb_phase_fused_extent(padded[0]) &&
           mb_phase_fused_extent(padded[1]) &&
           mb_phase_row_shared(padded[1]) <= room.shared_bytes &&
           mb_phase_column_shared(padded[0]) <= room.shared_bytes;
}

/* Frames that are transformed together. */
static inline int64_t mb_phase_batch(int64_t frames, int64_t rows, const int64_t padded[2])
{
    const int64_t most = MB_PHASE_CUDA_BYTES / (8 * mb_phase_frame_points(rows, padded));
    return most < 1 ? 1 : most < frames ? most : frames;
}

/* ---- host ---- */

/* Floats of a thread's line: a row, or columns with room between them. */
static inline int64_t mb_phase_host_column(int64_t n)
{
    return (2 * n + 15) / 16 * 16 + 16;
}
static inline int64_t mb_phase_host_line(const int64_t padded[2])
{
    const int64_t row = padded[1] + 2, columns = MB_PHASE_COLUMNS * mb_phase_host_column(padded[0]);
    return ((row > columns ? row : columns) + 15) / 16 * 16;
}

#endif
