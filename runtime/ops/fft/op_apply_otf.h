/*
** apply_otf: what the host and the CUDA kernel share. Arrays: grid (inout f32, padded rows of n
** samples), otf (in c64, its half spectrum, or planes of it, as in op_otf.h). Transform, times otf
** (or its conjugate, or both) times scale, transform back, in the memory of grid; the room behind
** the samples of a row becomes 0.
**
** Two ways, told apart by mb_apply_otf_fused. By the library: two FFTs (R2C, C2R; in place), slots
** for their work areas. Fused, on CUDA: no FFT and no work area, slot MB_APPLY_OTF_COUNTERS alone,
** of mb_apply_otf_counters 32-bit numbers, which order the tiles of a plane
** (cuda/shared/fft_planes.cuh). A slot that is not needed has 0 bytes.
*/
#ifndef MB_OPS_OP_APPLY_OTF_H
#define MB_OPS_OP_APPLY_OTF_H

#include "ops/fft/fused_fft.h"
#include "ops/array/padded_grid.h"

typedef struct mb_apply_otf_params {
    int64_t n; /* samples per row; 0 = the last extent of grid less 2 */
    bool conj, both;
    double scale;
} mb_apply_otf_params;

enum { MB_APPLY_OTF_GRID, MB_APPLY_OTF_OTF };
enum { MB_APPLY_OTF_FORWARD, MB_APPLY_OTF_INVERSE }; /* FFTs */
enum { MB_APPLY_OTF_FORWARD_WORK, MB_APPLY_OTF_INVERSE_WORK, MB_APPLY_OTF_COUNTERS };

static inline int64_t mb_apply_otf_samples(const mb_apply_otf_params *params, int64_t last)
{
    return params->n > 0 ? params->n : last - 2;
}

/* The planes of a transfer function for a grid of n samples, or 0 if it is whole. */
static inline int mb_apply_otf_planes(const mb_shape *otf, const int64_t n[3])
{
    return otf->rank == 3 && otf->dims[0] < n[0] ? (int)otf->dims[0] : 0;
}

/* Shared memory of the passes along x and y of a grid of n samples, in complex numbers: where its
** parts begin behind the table of the rows (their roots, the table of the columns, the exchange of
** a tile), and its end. */
static inline int64_t mb_apply_otf_roots(const int64_t n[3])
{
    return mb_fused_fft_table(n[2] / 2);
}
static inline int64_t mb_apply_otf_column_table(const int64_t n[3])
{
    return mb_apply_otf_roots(n) + n[2] / 4;
}
static inline int64_t mb_apply_otf_exchange(const int64_t n[3])
{
    return mb_apply_otf_column_table(n) + mb_fused_fft_table(n[1]);
}
static inline int64_t mb_apply_otf_shared(int threads, const int64_t n[3])
{
    int x = mb_fused_fft_per_thread(n[2] / 2), y = mb_fused_fft_per_thread(n[1]);
    return mb_apply_otf_exchange(n) + threads * ((x > y ? x : y) + 1);
}

/* Whether the fused passes take a grid of n samples: three axes, powers of two. */
static inline bool mb_apply_otf_fused(const mb_device_facts *facts, const int64_t n[3])
{
    static const int64_t low[3] = {16, 64, 128}, high[3] = {2048, 2048, 4096};
    mb_fused_fft_room room = mb_fused_fft_device(facts);
    for (int i = 0; i < 3; i++)
        if (n[i] < low[i] || n[i] > high[i] || (n[i] & (n[i] - 1)))
            return false;
    return room.threads > 0 && 8 * mb_apply_otf_shared(room.threads, n) + 1024 <= room.shared_bytes;
}

/* Threads of a block of the passes along x and y: half as many, and two blocks of a multiprocessor
** at work in turn, where tiles of columns that come from memory are whole lines even so. Forward
** the columns come from the cache, and half a line will do. */
#define MB_APPLY_OTF_HALVED(back) ((back) ? 512 : 1024)
static inline int mb_apply_otf_threads(const mb_device_facts *facts, const int64_t n[3], bool back)
{
    const int threads = mb_fused_fft_device(facts).threads;
    return threads > 256 && n[1] <= MB_APPLY_OTF_HALVED(back) ? 256 : threads;
}

/* Rows, or columns, of that many points in a tile of a plane. */
static inline int mb_apply_otf_tile(int threads, int64_t points)
{
    return (int)(threads * mb_fused_fft_per_thread(points) / points);
}

/* Tiles of rows of all planes. */
static inline int64_t mb_apply_otf_row_tiles(const mb_device_facts *facts, const int64_t n[3],
                                             bool back)
{
    return n[0] * n[1] / mb_apply_otf_tile(mb_apply_otf_threads(facts, n, back), n[2] / 2);
}

/* Grids of DEPTH / R planes of ROWS R x 2 POINTS samples, R = 4, 8 or 16, have passes that read and
** write the grid once each (cuda/fft/fft_split.cuh), on devices with shared memory for ROWS rows.
** The result is R, or 0 for other grids and devices. Counters: a ticket for each launch, and per
** plane a count for the first and the last of them. */
enum {
    MB_APPLY_OTF_SPLIT_DEPTH = 1024,
    MB_APPLY_OTF_SPLIT_ROWS = 64,
    MB_APPLY_OTF_SPLIT_POINTS = 256,
    MB_APPLY_OTF_SPLIT_LAUNCHES = 3
};
#define MB_APPLY_OTF_SPLIT_SHARED(ny)                                                              \
    ((MB_APPLY_OTF_SPLIT_ROWS + 1) * 16 * 17 + MB_APPLY_OTF_SPLIT_POINTS + (ny))
static inline int mb_apply_otf_split(const mb_device_facts *facts, const int64_t n[3])
{
    const mb_fused_fft_room room = mb_fused_fft_device(facts);
    const int64_t parts = n[1] / MB_APPLY_OTF_SPLIT_ROWS;
    const bool sizes =
        n[2] == 2 * MB_APPLY_OTF_SPLIT_POINTS && n[1] == parts * MB_APPLY_OTF_SPLIT_ROWS &&
        n[0] * parts == MB_APPLY_OTF_SPLIT_DEPTH && (parts == 4 || parts == 8 || parts == 16);
    return sizes && room.threads == 512 && facts->threads >= parts &&
                   8 * MB_APPLY_OTF_SPLIT_SHARED(n[1]) + 1024 <= room.shared_bytes
               ? (int)parts
               : 0;
}

/* The counters of the other grids, and of rl_step, which needs fewer: tickets of the passes along x
** and y, and along z; per plane a count of finished tiles; a flag for each tile of rows, of which
** there are more forward than back. */
enum { MB_APPLY_OTF_TICKET = 1, MB_APPLY_OTF_DONE };
static inline int64_t mb_apply_otf_counters(const mb_device_facts *facts, const int64_t n[3])
{
    if (mb_apply_otf_split(facts, n))
        return MB_APPLY_OTF_SPLIT_LAUNCHES + 2 * n[0];
    return MB_APPLY_OTF_DONE + n[0] + mb_apply_otf_row_tiles(facts, n, false);
}

#endif
