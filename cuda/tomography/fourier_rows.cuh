/*
** Rows of fourier_reconstruct on CUDA in one kernel: a block pads, filters, crops, transforms and
** stores one pair of rows; nothing in between leaves the chip.
**
** T = P / 16 threads; thread t holds points t + T e (fourier_block.cuh) of rows and of spectra, so
** that the filter is applied in registers, and cropping to N = m T points is keeping the first m of
** a thread's 16. Rows are rotated so that the detector begins at point 0: the filter's convolution
** is circular.
*/
#ifndef MB_CUDA_FOURIER_ROWS_CUH
#define MB_CUDA_FOURIER_ROWS_CUH

#include "tomography/fourier_block.cuh"
#include "ops/tomography/op_fourier_reconstruct.h"

#define FOURIER_ROWS_THREADS                                                                       \
    1024 /* on a multiprocessor, at least: limits registers; in at most 16 blocks, which all hold */

struct fourier_rows { /* slices first ... of the sinogram or the result */
    float *data;
    int64_t stride_z, stride_row;
    int64_t slices; /* from the first of this batch on */
};

__device__ static inline const float *row_of(const fourier_rows &rows, int64_t z, int64_t row)
{
    return rows.data + z * rows.stride_z + row * rows.stride_row;
}

struct fourier_row_job {
    fourier_rows from;
    const mb_fourier_angle *angles;
    const mb_gridding_ray *rays;
    const float *response; /* real parts; imaginary parts, 0 where keep is */
    float2 *samples;
    int count, cols, kept; /* rays; kept = N / T */
    int pairs;
    float keep;
    bool edge;
};

/* Point k <= P / 2 of a spectrum times the response; CONJUGATE: point P - k. */
template <bool CONJUGATE>
__device__ static inline float2 fourier_filtered(float2 v, const float *response, int64_t padded,
                                                 int64_t k)
{
    const float re = response[k], im = response[padded / 2 + 1 + k];
    return fourier_times(v, make_float2(re, CONJUGATE ? -im : im));
}

template <int T>
__global__ void __launch_bounds__(T, T >= 1024 ? 1 : FOURIER_ROWS_THREADS / (T > 64 ? T : 64))
    fourier_row_spectra(const __grid_constant__ fourier_row_job job)
{
    extern __shared__ float2 fourier_shared[];
    constexpr int H = FOURIER_HELD, P = T * H;
    using R = fourier_radices<T>;
    constexpr int LAST = R::C > 1 ? R::C : R::B;
    const int t = threadIdx.x, q = blockIdx.x % job.pairs, s = blockIdx.x / job.pairs;
    const int a = job.rays[s].angle, points = job.kept * T;
    const mb_fourier_angle angle = job.angles[a];
    const bool has_even = angle.weight != 0 && 2 * q < job.from.slices,
               has_odd = angle.weight != 0 && 2 * q + 1 < job.from.slices;
    const int lanes = job.pairs > 1 ? 2 : 1;
    float2 *to = job.samples + ((int64_t)(q / lanes) * job.count + s) * points * lanes + q % lanes;
    if (!has_even) {
        for (int i = t; i < points; i += T)
            to[i * lanes] = make_float2(0, 0);
        return;
    }
    const float *even = row_of(job.from, 2 * q, a),
                *odd = row_of(job.from, has_odd ? 2 * q + 1 : 2 * q, a);
    float2 v[H];
    {
        const int cols = job.cols, left = (P - cols) / 2;
        float2 before = make_float2(0, 0), after = before;
        if (job.edge) {
            before = make_float2(even[0], has_odd ? odd[0] : 0.0f);
            after = make_float2(even[cols - 1], has_odd ? odd[cols - 1] : 0.0f);
        }
        const auto at = [&](int i) {
            return i < cols       ? make_float2(even[i], has_odd ? odd[i] : 0.0f)
                   : i < P - left ? after
                                  : before;
        };
#pragma unroll
        for (int e = 0; e < H; e++)
            v[e] = at(t + T * e);
        if (job.keep != 0)
#pragma unroll
            for (int e = 0; e < H; e++) {
                const int i = t + T * e;
                const float2 previous = at(i > 0 ? i - 1 : P - 1);
                v[e].x = fmaf(-job.keep, previous.x, v[e].x);
                v[e].y = fmaf(-job.keep, previous.y, v[e].y);
            }
    }
    fourier_pass<H, T, -1, true>(v, t, 1);
    fourier_put<H, T, true>(v, t, 1, P, fourier_shared);
    fourier_passes<T, -1, true>(v, t, H, P, fourier_shared, 0);
    /* Point t + T e of the spectrum is v[e], whatever the radix of the last pass. */
    if (job.keep != 0) {
#pragma unroll
        for (int e = 0; e < H; e++) {
            const int i = t + T * e;
            v[e] = e < H / 2 ? fourier_filtered<false>(v[e], job.response, P, i)
                             : fourier_filtered<true>(v[e], job.response, P, P - i);
        }
    } else {
#pragma unroll
        for (int e = 0; e < H; e++) {
            const int i = t + T * e;
            const float h = job.response[e < H / 2 ? i : P - i];
            v[e].x *= h;
            v[e].y *= h;
        }
    }
    fourier_pass<H, T, 1, true>(v, t, 1);
    fourier_put<H, T, true>(v, t, 1, P, fourier_shared);
    fourier_passes<T, 1, true>(v, t, H, P, fourier_shared, 0);
#pragma unroll
    for (int e = 0; e < H; e++)
        if (t + T * e >= job.cols)
            v[e] = make_float2(0, 0);
    fourier_first<T, -1>(v, t, job.kept, fourier_shared);
    fourier_passes<T, -1, false>(v, t, job.kept, points, fourier_shared, 0);
    /* Frequency b + r N / LAST, less N from N / 2 on; its place is N / 2 further. */
    constexpr int Q = H / LAST;
    const int step = points / LAST;
    float2 power[LAST / 2 + 1];
    const double turns = angle.axis / LAST;
    fourier_powers<LAST / 2 + 1>(fourier_turn((float)(2 * (turns - rint(turns)))), power);
#pragma unroll
    for (int k = 0; k < Q; k++) {
        const int b = t + T * k;
        if (b >= step)
            break;
        float2 phase = fourier_turn((float)(2 * mb_fourier_turns(angle.axis, b, points)));
        phase.x *= (float)angle.weight;
        phase.y *= (float)angle.weight;
#pragma unroll
        for (int r = 0; r < LAST; r++) {
            float2 turn = power[r < LAST / 2 ? r : LAST - r];
            if (r >= LAST / 2)
                turn.y = -turn.y;
            float2 value = fourier_times(v[k + Q * r], fourier_times(phase, turn));
            if (r == LAST / 2 && b == 0)
                value = make_float2(0, 0); /* the lowest frequency has no partner */
            to[(b + (r < LAST / 2 ? r + LAST / 2 : r - LAST / 2) * step) * lanes] = value;
        }
    }
}

#endif
