/*
** vertical_shift on CUDA: a thread walks down (or up) one column of one frame and reads each source
** row once. In place, the column is one walk, in the direction of op_vertical_shift.h; out of
** place, it is cut into pieces of rows. The frames' shifts are kernel arguments, so there is no
** table and no scratch.
*/
#include "shared/cuda_launch.cuh"
#include "ops/corrections/op_vertical_shift.h"
#include "ops/frames.h"

#define VS_FRAMES 128 /* per launch: 16 bytes each, of the 4 KB of arguments */
#define VS_PIECE 64   /* rows of a thread, out of place */
#define VS_AHEAD 8    /* rows loaded before the first is stored */

struct vs_frames {
    int32_t whole[VS_FRAMES]; /* clamped to rows + 1 */
    float near[VS_FRAMES], far[VS_FRAMES];
};

__global__ void __launch_bounds__(MB_THREADS)
    vertical_shift_kernel(mb_frames s, vs_frames frames, int64_t piece)
{
    const int64_t x = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (x >= s.cols)
        return;
    const int j = blockIdx.y;
    const int64_t whole = frames.whole[j];
    const float near = frames.near[j], far = frames.far[j];
    const float *from = s.from + j * s.from_frame + x;
    float *to = s.to + j * s.to_frame + x;
    for (int64_t z0 = blockIdx.z * piece; z0 < s.rows; z0 += gridDim.z * piece) {
        const int64_t z1 = z0 + piece < s.rows ? z0 + piece : s.rows;
        const bool down = whole >= 0;
        const int64_t step = down ? 1 : -1, start = down ? z0 : z1 - 1;
        /* Going down, the new source of row z is z + whole + 1; going up, it is z + whole. */
        const int64_t ahead = whole + (down ? 1 : 0);
        const int64_t first = start + whole + (down ? 0 : 1);
        float carry = first >= 0 && first < s.rows ? from[first * s.from_pitch] : 0.0f;
        for (int64_t i = 0; i < z1 - z0; i += VS_AHEAD) {
            float next[VS_AHEAD];
#pragma unroll
            for (int k = 0; k < VS_AHEAD; k++) {
                const int64_t source = start + (i + k) * step + ahead;
                next[k] = i + k < z1 - z0 && source >= 0 && source < s.rows
                              ? from[source * s.from_pitch]
                              : 0.0f;
            }
#pragma unroll
            for (int k = 0; k < VS_AHEAD; k++) {
                const float low = down ? carry : next[k], high = down ? next[k] : carry;
                if (i + k < z1 - z0)
                    to[(start + (i + k) * step) * s.to_pitch] =
                        far != 0.0f ? near * low + far * high : low;
                carry = next[k];
            }
        }
    }
}

extern "C" mb_status mb_cuda_vertical_shift(const mb_op_call *call)
{
    const mb_vertical_shift_params *p = (const mb_vertical_shift_params *)call->params;
    mb_frames s =
        mb_frames_of(call->arrays[MB_VERTICAL_SHIFT_A], call->arrays[MB_VERTICAL_SHIFT_RESULT]);
    const int64_t piece = s.from == s.to ? s.rows : VS_PIECE, pieces = (s.rows + piece - 1) / piece;
    for (int64_t first = 0; first < s.count; first += VS_FRAMES) {
        vs_frames frames;
        const int64_t n = s.count - first < VS_FRAMES ? s.count - first : VS_FRAMES;
        for (int64_t j = 0; j < n; j++) {
            const mb_vertical_shift_frame f = mb_vertical_shift_at(p, first + j, s.rows);
            frames.whole[j] = (int32_t)f.whole;
            frames.near[j] = f.near;
            frames.far[j] = f.far;
        }
        const dim3 blocks((unsigned)((s.cols + 127) / 128), (unsigned)n,
                          (unsigned)(pieces < 65535 ? pieces : 65535));
        vertical_shift_kernel<<<blocks, 128, 0, mb_stream(call)>>>(s, frames, piece);
        MB_LAUNCHED("vertical_shift_kernel");
        s.from += n * s.from_frame;
        s.to += n * s.to_frame;
    }
    return MB_STATUS_OK;
}
