/*
** normal_operator: what the host and the CUDA kernels share. Arrays: a, kernel (in), growth, over
** (in, optional), result (out; may be a), dots (out, optional), direction (inout, optional).
**
** Two slices are one complex image: the kernel is real and even, so they never mix. Of the grid of
** py x px points only the ny rows of the slices are transformed along x, half of them zeros;
** columns are transformed along y, multiplied by the spectrum and transformed back, and of what
** comes back only the rows and pixels of the slices are made. So scratch for a pair is ny rows of
** px complex numbers. A pair does not depend on the others of the call: two slices, counted from
** the first, are a packet. The host has one pair at a time, CUDA mb_normal_batch of them.
**
** Spectra of a pair: tiles of W frequencies along x, a tile is [ny][W] complex numbers.
** The host sums the products of a slice in double: those of a row in the order of the pixels, then
** the rows. CUDA sums the few products of a thread's pixels in float, and these sums in double, in
** the order of the threads and of the blocks.
*/
#ifndef MB_OPS_OP_NORMAL_OPERATOR_H
#define MB_OPS_OP_NORMAL_OPERATOR_H

#include "ops/fft/fused_fft.h"
#include "ops/iterative/slice_rows.h"

typedef struct mb_normal_operator_params {
    double circle; /* half-width; 0: none */
    bool dot;
} mb_normal_operator_params;

enum {
    MB_NORMAL_OPERATOR_A,
    MB_NORMAL_OPERATOR_KERNEL,
    MB_NORMAL_OPERATOR_GROWTH,
    MB_NORMAL_OPERATOR_OVER,
    MB_NORMAL_OPERATOR_RESULT,
    MB_NORMAL_OPERATOR_DOTS,
    MB_NORMAL_OPERATOR_DIRECTION
};
/* FFTs. Host: of a row and of a column, forth and back. CUDA: of a grid, unless fused. */
enum { MB_NORMAL_OPERATOR_ROW_FORTH, MB_NORMAL_OPERATOR_ROW_BACK };
enum { MB_NORMAL_OPERATOR_COLUMN_FORTH = 2, MB_NORMAL_OPERATOR_COLUMN_BACK };
enum {
    MB_NORMAL_OPERATOR_SPECTRUM, /* of a batch; CUDA, not fused: a grid */
    MB_NORMAL_OPERATOR_PARTIALS, /* double: sums to be added, of every slice of the call */
    MB_NORMAL_OPERATOR_LINES,    /* host: a line or a few columns of each thread */
    MB_NORMAL_OPERATOR_TABLES,   /* CUDA, fused: mb_normal_tables */
    MB_NORMAL_OPERATOR_WORK      /* and more: work areas of the FFTs */
};

/* Columns that the host transforms together: a line of memory. */
#define MB_NORMAL_COLUMNS 8
/* Bytes of spectra that CUDA holds at a time, where a pair does not need more: 64 slices of 2048^2.
** Each of the three launches for a batch begins and ends with multiprocessors that wait, which costs
** 5 % with a quarter of this. */
#define MB_NORMAL_CUDA_BYTES ((int64_t)2 << 30)

/* ---- CUDA: the fused transforms ---- */

static inline bool mb_normal_fused_extent(int64_t n)
{
    static const int extents[] = {512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192};
    for (int i = 0; i < (int)(sizeof extents / sizeof *extents); i++)
        if (n == extents[i])
            return true;
    return false;
}

/* Lines that a block transforms side by side: rows, or the columns of a tile. */
#define MB_NORMAL_LANES(n) ((n) > 4096 ? 2 : (n) >= 2048 ? 4 : 8)
/* Points of a thread. */
#define MB_NORMAL_POINTS(n) ((n) % 3 == 0 ? 48 : 32)
#define MB_NORMAL_THREADS(n) ((n) / MB_NORMAL_POINTS(n) * MB_NORMAL_LANES(n))
/* Complex numbers of the table of a transform, and of the room of one line in an exchange: those of
** the cuts in cuda/iterative/normal_lines.cuh, which compares them. */
#define MB_NORMAL_TABLE(n)                                                                         \
    ((n) + ((n) % 3 == 0 ? ((n) < 3072 ? 128 : 256) : (n) <= 1024 ? 0 : (n) == 8192 ? 512 : 1024))
#define MB_NORMAL_ROOM(n) ((n) + (n) / ((n) % 3 == 0 ? 16 : 32))
static inline int64_t mb_normal_shared(int64_t n)
{
    return 8 * (MB_NORMAL_TABLE(n) + MB_NORMAL_LANES(n) * MB_NORMAL_ROOM(n));
}

/* The same of rows. Those of 2048 and 4096 points are cut into radices of 16, with half the points
** a thread: their loads and stores are many for their sums, and want more threads. */
#define MB_NORMAL_ROW_SHORT(n) ((n) == 2048 || (n) == 4096)
#define MB_NORMAL_ROW_THREADS(n)                                                                   \
    (MB_NORMAL_ROW_SHORT(n) ? 2 * MB_NORMAL_THREADS(n) : MB_NORMAL_THREADS(n))
#define MB_NORMAL_ROW_TABLE(n) (MB_NORMAL_ROW_SHORT(n) ? (n) + 256 : MB_NORMAL_TABLE(n))
#define MB_NORMAL_ROW_ROOM(n) (MB_NORMAL_ROW_SHORT(n) ? (n) + (n) / 16 : MB_NORMAL_ROOM(n))
static inline int64_t mb_normal_row_shared(int64_t n)
{
    return 8 * (MB_NORMAL_ROW_TABLE(n) + MB_NORMAL_LANES(n) * MB_NORMAL_ROW_ROOM(n));
}

/* What is worked out once for a call, in bytes from the start of the slot: the factors of rows and
** of columns, complex; the pixels of each row that lie in the circle, mb_circle_run; and the factor
** of each slice's direction, float, with which it ends. */
typedef struct mb_normal_tables {
    int64_t columns, runs, factors;
} mb_normal_tables;

static inline mb_normal_tables mb_normal_tables_of(const int64_t grid[2], int64_t ny)
{
    mb_normal_tables t;
    t.columns = 8 * MB_NORMAL_ROW_TABLE(grid[1]);
    t.runs = t.columns + 8 * MB_NORMAL_TABLE(grid[0]);
    t.factors = t.runs + (int64_t)sizeof(mb_circle_run) * ny;
    return t;
}

/* `grid` is {py, px}. */
static inline bool mb_normal_fused(const mb_device_facts *facts, const int64_t grid[2])
{
    const mb_fused_fft_room room = mb_fused_fft_device(facts);
    return room.threads > 0 && mb_normal_fused_extent(grid[0]) && mb_normal_fused_extent(grid[1]) &&
           mb_normal_shared(grid[0]) <= room.shared_bytes &&
           mb_normal_row_shared(grid[1]) <= room.shared_bytes;
}

/* Pairs that are transformed together. */
static inline int64_t mb_normal_batch(int64_t pairs, int64_t ny, int64_t px)
{
    const int64_t most = MB_NORMAL_CUDA_BYTES / (8 * ny * px);
    return most < 1 ? 1 : most < pairs ? most : pairs;
}

/* Sums of a slice that are added at the end: of each row, or of each warp of the blocks of rows. */
static inline int64_t mb_normal_partials(bool fused, int64_t ny, int64_t px)
{
    const int64_t lanes = MB_NORMAL_LANES(px);
    return fused ? (ny + lanes - 1) / lanes * (MB_NORMAL_ROW_THREADS(px) / 32) : ny;
}

/* ---- host ---- */

/* Floats of a thread's line: a row, or columns with room between them. */
static inline int64_t mb_normal_host_column(int64_t n)
{
    return (2 * n + 15) / 16 * 16 + 16;
}
static inline int64_t mb_normal_host_line(const int64_t grid[2])
{
    const int64_t row = 2 * grid[1], columns = MB_NORMAL_COLUMNS * mb_normal_host_column(grid[0]);
    return ((row > columns ? row : columns) + 15) / 16 * 16;
}

#endif
