/*
** The CUDA backend's own transforms (cuda/fft_*.cuh): which devices and lengths they take. Plans
** ask here whether an operator will need the library and its work areas; launchers ask the same, so
** that estimate and run agree.
*/
#ifndef MB_OPS_FUSED_FFT_H
#define MB_OPS_FUSED_FFT_H

#include "device/device.h"

/* Points of a transform that one thread keeps, and complex numbers of its table: see mb_fft_cut_of
** in cuda/shared/fft_registers.cuh. */
static inline int mb_fused_fft_per_thread(int64_t points)
{
    return points == 32 || points >= 512 ? 32 : points == 16 || points >= 128 ? 16 : 8;
}
static inline int64_t mb_fused_fft_table(int64_t points)
{
    return points <= 32 ? 0 : points <= 1024 ? points : points + 1024;
}

/* What a device has: threads of a block of the fused passes (the more, the wider the tiles; 0: it
** has none), and shared memory of a block of any kernel. */
typedef struct mb_fused_fft_room {
    int threads, shared_bytes;
} mb_fused_fft_room;

static inline mb_fused_fft_room mb_fused_fft_device(const mb_device_facts *facts)
{
    const int capability = facts->compute_capability;
    const bool wide = capability == 90 || capability == 100 || capability == 103;
    const bool narrow =
        capability == 80 || capability == 86 || capability == 87 || capability == 89;
    mb_fused_fft_room room;
    room.threads = wide ? 512 : narrow ? 256 : 0;
    room.shared_bytes = (int)(facts->block_shared_bytes > 0 ? facts->block_shared_bytes
                                                            : mb_block_shared_bytes(capability));
    return room;
}

/* Can a block exchange so many lines of complex numbers through shared memory
** (cuda/tomography/fourier_block.cuh: fourier_room)? */
static inline bool mb_fused_fft_fits(const mb_device_facts *facts, int64_t points, int lines)
{
    return 8 * lines * (points + points / 16) <= mb_fused_fft_device(facts).shared_bytes;
}

/* Transforms along the first axis: lengths 16 to 2048, powers of two. */
static inline bool mb_fused_fft_depth(const mb_device_facts *facts, int64_t n)
{
    return mb_fused_fft_device(facts).threads > 0 && n >= 16 && n <= 2048 && (n & (n - 1)) == 0;
}

#endif
