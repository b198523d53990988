/*
** apply_otf: what the host and the CUDA kernel share. Arrays: grid (inout f32, padded rows of n
** samples), otf (in c64, its half spectrum). Transform, times otf (or its conjugate) times scale,
** transform back, in the memory of grid; the room behind the samples of a row becomes 0.
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
    bool conj;
    double scale;
} mb_apply_otf_params;

enum { MB_APPLY_OTF_GRID, MB_APPLY_OTF_OTF };
enum { MB_APPLY_OTF_FORWARD, MB_APPLY_OTF_INVERSE }; /* FFTs */
enum { MB_APPLY_OTF_FORWARD_WORK, MB_APPLY_OTF_INVERSE_WORK, MB_APPLY_OTF_COUNTERS };

static inline int64_t mb_apply_otf_samples(const mb_apply_otf_params *params, int64_t last)
{
    return params->n > 0 ? params->n : last - 2;
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
static inline int64_t mb_apply_otf_shared(const mb_device_facts *facts, const int64_t n[3])
{
    int x = mb_fused_fft_per_thread(n[2] / 2), y = mb_fused_fft_per_thread(n[1]);
    return mb_apply_otf_exchange(n) + mb_fused_fft_device(facts).threads * ((x > y ? x : y) + 1);
}

/* Whether the fused passes take a grid of n samples: three axes, powers of two. */
static inline bool mb_apply_otf_fused(const mb_device_facts *facts, const int64_t n[3])
{
    static const int64_t low[3] = {16, 64, 128}, high[3] = {2048, 2048, 4096};
    mb_fused_fft_room room = mb_fused_fft_device(facts);
    for (int i = 0; i < 3; i++)
        if (n[i] < low[i] || n[i] > high[i] || (n[i] & (n[i] - 1)))
            return false;
    return room.threads > 0 && 8 * mb_apply_otf_shared(facts, n) + 1024 <= room.shared_bytes;
}

/* Rows, or columns, of that many points in a tile of a plane. */
static inline int mb_apply_otf_tile(const mb_device_facts *facts, int64_t points)
{
    return (int)(mb_fused_fft_device(facts).threads * mb_fused_fft_per_thread(points) / points);
}

/* A ticket, and per plane a count of finished tiles and a flag for each tile of rows. */
static inline int64_t mb_apply_otf_counters(const mb_device_facts *facts, const int64_t n[3])
{
    return 1 + n[0] * (1 + n[1] / mb_apply_otf_tile(facts, n[2] / 2));
}

#endif
