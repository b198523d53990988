/*
** double_wedge on CUDA. Columns are transposed, padded and transformed by the library, transposed
** back, and the rows transformed: C and U of op_double_wedge.h. Then a block takes tiles of four
** rows and 128 columns of the spectrum, a thread a column, and walks over the shifts with all sums
** in registers; C of the columns that come next lies in shared memory. Each block keeps sums of its
** own for every trial, which are added in a fixed order.
*/
#include "shared/cuda_launch.cuh"
#include "ops/axis/op_double_wedge.h"

#define ROWS MB_DOUBLE_WEDGE_TILE_ROWS
#define COLUMNS MB_DOUBLE_WEDGE_TILE_COLUMNS
#define WARPS (COLUMNS / 32)
#define RESTART 32   /* steps of the walk between exact phases; columns in shared memory */
#define UPLOADED 512 /* trials that are sent at once */
#define TILE 32      /* of a transpose */

/* ---- the spectra ---- */

/* Column x of the sinogram, and zeros, at to + x * pitch. */
__global__ void pad_columns(const float *from, int64_t stride, int64_t height, int64_t width,
                            float *to)
{
    __shared__ float part[TILE][TILE + 1];
    const int64_t pitch = 2 * height + 2, down = (pitch + TILE - 1) / TILE;
    const int64_t across = (width + TILE - 1) / TILE;
    for (int64_t tile = blockIdx.x; tile < down * across; tile += gridDim.x) {
        const int64_t r0 = tile / across * TILE, x0 = tile % across * TILE;
        for (int y = threadIdx.y; y < TILE; y += blockDim.y) {
            const int64_t r = r0 + y, x = x0 + threadIdx.x;
            part[y][threadIdx.x] = r < height && x < width ? from[r * stride + x] : 0.0f;
        }
        __syncthreads();
        for (int y = threadIdx.y; y < TILE; y += blockDim.y) {
            const int64_t x = x0 + y, r = r0 + threadIdx.x;
            if (x < width && r < pitch)
                to[x * pitch + r] = part[threadIdx.x][y];
        }
        __syncthreads();
    }
}

/* to[q][x] = from[x][q], q <= H. */
__global__ void turn_spectrum(const float2 *from, int64_t half, int64_t width, float2 *to)
{
    __shared__ float2 part[TILE][TILE + 1];
    const int64_t down = (width + TILE - 1) / TILE, across = (half + TILE - 1) / TILE;
    for (int64_t tile = blockIdx.x; tile < down * across; tile += gridDim.x) {
        const int64_t x0 = tile / across * TILE, q0 = tile % across * TILE;
        for (int y = threadIdx.y; y < TILE; y += blockDim.y) {
            const int64_t x = x0 + y, q = q0 + threadIdx.x;
            if (x < width && q < half)
                part[y][threadIdx.x] = from[x * half + q];
        }
        __syncthreads();
        for (int y = threadIdx.y; y < TILE; y += blockDim.y) {
            const int64_t q = q0 + y, x = x0 + threadIdx.x;
            if (x < width && q < half)
                to[q * width + x] = part[threadIdx.x][y];
        }
        __syncthreads();
    }
}

struct spline_taps {
    float at[MB_DOUBLE_WEDGE_TAPS];
};

/* to[q][x] = C between columns. */
__global__ void __launch_bounds__(MB_THREADS)
    interpolate(const float2 *from, int64_t half, int64_t width,
                const __grid_constant__ spline_taps taps, float2 *to)
{
    MB_GRID_LOOP(i, half * width)
    {
        const int64_t q = i / width, x = i - q * width;
        const float2 *row = from + q * width;
        float2 sum = make_float2(0.0f, 0.0f);
        if (x < width - 1)
            for (int t = 0; t < MB_DOUBLE_WEDGE_TAPS; t++) {
                const float2 value =
                    row[mb_double_wedge_mirrored(x + t - (MB_DOUBLE_WEDGE_TAPS / 2 - 1), width)];
                sum.x += taps.at[t] * value.x;
                sum.y += taps.at[t] * value.y;
            }
        to[i] = sum;
    }
}

/* ---- the walk ---- */

struct walk {
    const float2 *c, *u;   /* C and U */
    const float2 *mc, *mu; /* those of the mirrored columns */
    const int2 *trials;    /* steps to each trial of this side, and its number */
    int trial_count;
    float *parts; /* [blocks][all trials] */
    int64_t all_trials;
    int64_t tiles, tiles_across;
    mb_double_wedge_mask mask;
};

/* exp(-+ 2 pi i k n / W). */
__device__ static inline float2 turn_of(int64_t k, int64_t n, int64_t width, bool down)
{
    float s, c;
    sincospif(2.0f * (float)((double)(k * n % width) / (double)width), &s, &c);
    return make_float2(c, down ? s : -s);
}

__device__ static inline float2 times(float2 a, float2 b)
{
    return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

/* P or M, A or B, for one row. */
struct pair {
    float2 p, m;
};

__device__ static inline void gain(pair &sum, float2 value, float2 turn)
{
    sum.p.x += value.x * turn.x;
    sum.p.y += value.x * turn.y;
    sum.m.x += value.y * turn.x;
    sum.m.y += value.y * turn.y;
}

/* A and B from a row of U. */
__device__ static inline pair sums_of(const float2 *u, int64_t k, int64_t width)
{
    const float2 here = u[k], back = u[k > 0 ? width - k : 0];
    pair sum;
    sum.p = make_float2(0.5f * (here.x + back.x), 0.5f * (here.y - back.y));
    sum.m = make_float2(0.5f * (here.y + back.y), 0.5f * (back.x - here.x));
    return sum;
}

/* |E(q)| + |E(-q)|. v: w^(n - 1); sums: A, B; msums, md: those of the mirrored columns and what is
** filled of them; d: P, M; phase: (g, h). */
__device__ static inline float magnitudes(const pair &sums, const pair &msums, const pair &d,
                                          const pair &md, float2 v, float2 phase, float sign)
{
    const float xr = msums.p.x - md.p.x, xi = msums.p.y - md.p.y;
    const float yr = msums.m.x - md.m.x, yi = msums.m.y - md.m.y;
    const float g = phase.x, h = phase.y;
    const float z1r = sums.p.x + sign * (v.x * xr + v.y * xi + g * d.p.x + h * d.m.x);
    const float z1i = sums.p.y + sign * (v.y * xr - v.x * xi + g * d.p.y + h * d.m.y);
    const float z2r = sums.m.x + sign * (v.x * yr + v.y * yi + h * d.p.x - g * d.m.x);
    const float z2i = sums.m.y + sign * (v.y * yr - v.x * yi + h * d.p.y - g * d.m.y);
    const float ar = z1r - z2i, ai = z1i + z2r, br = z1r + z2i, bi = z1i - z2r;
    return __fsqrt_rn(ar * ar + ai * ai) + __fsqrt_rn(br * br + bi * bi);
}

template <bool DOWN, bool BETWEEN>
struct tile_state {
    pair sums[ROWS], d[ROWS];
    pair msums[BETWEEN ? ROWS : 1], md[BETWEEN ? ROWS : 1];
    float2 phase[ROWS];
    float weight[ROWS];
    float2 turn, before, step;

    /* The weighted magnitudes of the thread's column. */
    __device__ float value() const
    {
        float sum = 0.0f;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const pair &ms = BETWEEN ? msums[BETWEEN ? r : 0] : sums[r];
            const pair &m = BETWEEN ? md[BETWEEN ? r : 0] : d[r];
            sum += weight[r] * magnitudes(sums[r], ms, d[r], m, DOWN ? turn : before, phase[r],
                                          r % 2 == 0 ? -1.0f : 1.0f);
        }
        return sum;
    }
};

/* Rows q0 + 1 ... q0 + ROWS, column k. q0 is even, so that signs are known. */
template <bool DOWN, bool BETWEEN>
__device__ static inline void open_tile(tile_state<DOWN, BETWEEN> &state, const walk &w, int64_t q0,
                                        int64_t k)
{
    const int64_t height = w.mask.height, width = w.mask.width;
    const int64_t own = k < width ? k : 0;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const int64_t q = q0 + 1 + r, row = q <= height ? q : height;
        float s, c;
        sincospif((float)((double)(q * (height - 1) % (2 * height)) / (double)height), &s, &c);
        state.phase[r] = make_float2(c, -s);
        state.weight[r] =
            q <= height ? mb_double_wedge_weight(&w.mask, q, k, mb_double_wedge_reach(&w.mask, q),
                                                 mb_double_wedge_reach(&w.mask, -q))
                        : 0.0f;
        state.sums[r] = sums_of(w.u + row * width, own, width);
        state.d[r] = pair{{0.0f, 0.0f}, {0.0f, 0.0f}};
        if (BETWEEN) {
            state.msums[BETWEEN ? r : 0] = sums_of(w.mu + row * width, own, width);
            state.md[BETWEEN ? r : 0] = pair{{0.0f, 0.0f}, {0.0f, 0.0f}};
        }
    }
    state.step = turn_of(own, 1, width, DOWN);
}

/* The columns of the steps at ... at + RESTART - 1, of ROWS rows. */
template <bool DOWN>
__device__ static inline void load_columns(const float2 *c, float2 (*columns)[ROWS],
                                           const mb_double_wedge_mask &mask, int64_t q0, int64_t at)
{
    for (int i = threadIdx.x; i < RESTART * ROWS; i += COLUMNS) {
        const int r = i / RESTART, n = i % RESTART;
        const int64_t q = q0 + 1 + r < mask.height ? q0 + 1 + r : mask.height;
        const int64_t x = DOWN ? mask.width - 1 - (at + n) : at + n;
        columns[n][r] = x >= 0 && x < mask.width ? c[q * mask.width + x] : make_float2(0.0f, 0.0f);
    }
}

/* Adds what lanes hold, one trial each from `first` on, to the block's sums. */
__device__ static inline void put_values(const walk &w, float *parts, float (*folded)[32],
                                         float held, int first, int count)
{
    folded[threadIdx.x / 32][threadIdx.x % 32] = held;
    __syncthreads();
    if (threadIdx.x < count) {
        float sum = 0.0f;
#pragma unroll
        for (int warp = 0; warp < WARPS; warp++)
            sum += folded[warp][threadIdx.x];
        parts[w.trials[first + threadIdx.x].y] += sum;
    }
    __syncthreads();
}

template <bool DOWN, bool BETWEEN>
__global__ void __launch_bounds__(COLUMNS) walk_over(const __grid_constant__ walk w)
{
    __shared__ float2 columns[RESTART][ROWS], mirrored[BETWEEN ? RESTART : 1][ROWS];
    __shared__ float folded[WARPS][32];
    const int64_t height = w.mask.height, width = w.mask.width;
    const int lane = threadIdx.x % 32;
    float *parts = w.parts + blockIdx.x * w.all_trials;
    for (int i = threadIdx.x; i < w.trial_count; i += COLUMNS)
        parts[w.trials[i].y] = 0.0f;
    __syncthreads();
    for (int64_t tile = blockIdx.x; tile < w.tiles; tile += gridDim.x) {
        const int64_t q0 = tile / w.tiles_across * ROWS, k0 = tile % w.tiles_across * COLUMNS;
        const int64_t last = q0 + ROWS < height ? q0 + ROWS : height;
        const int64_t above = mb_double_wedge_reach(&w.mask, last);
        const int64_t below = mb_double_wedge_reach(&w.mask, -last);
        if (k0 > (above > below ? above : below) || last <= w.mask.drop)
            continue;
        tile_state<DOWN, BETWEEN> state;
        open_tile(state, w, q0, k0 + threadIdx.x);
        float held = 0.0f;
        int trial = 0, flushed = 0, next = w.trials[0].x;
        const auto evaluate = [&](int at) {
            while (next == at) {
                float value = state.value();
#pragma unroll
                for (int step = 16; step > 0; step >>= 1)
                    value += __shfl_xor_sync(0xffffffffu, value, step);
                held = lane == trial - flushed ? value : held;
                trial++;
                next = trial < w.trial_count ? w.trials[trial].x : -1;
                if (trial - flushed == 32) {
                    put_values(w, parts, folded, held, flushed, 32);
                    flushed = trial;
                }
            }
        };
        for (int at = 0; next >= 0 && at < width; at++) {
            const int n = at % RESTART;
            if (n == 0) {
                const int64_t k = k0 + threadIdx.x < width ? k0 + threadIdx.x : 0;
                __syncthreads();
                load_columns<DOWN>(w.c, columns, w.mask, q0, at);
                if (BETWEEN)
                    load_columns<DOWN>(w.mc, mirrored, w.mask, q0, at);
                __syncthreads();
                state.turn = turn_of(k, at + (DOWN ? 1 : 0), width, DOWN);
                state.before = times(state.turn, make_float2(state.step.x, -state.step.y));
            }
            if (!DOWN && !BETWEEN)
                evaluate(at);
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                gain(state.d[r], columns[n][r], state.turn);
            if (!DOWN && BETWEEN)
                evaluate(at);
            if (BETWEEN)
#pragma unroll
                for (int r = 0; r < ROWS; r++)
                    gain(state.md[BETWEEN ? r : 0], mirrored[BETWEEN ? n : 0][r], state.turn);
            state.before = state.turn;
            state.turn = times(state.turn, state.step);
            if (DOWN)
                evaluate(at);
        }
        if (trial > flushed)
            put_values(w, parts, folded, held, flushed, trial - flushed);
    }
}

/* The metric: the blocks' sums in their order. 32 trials a block, 16 threads each. */
#define FOLDING 16
__global__ void __launch_bounds__(32 * FOLDING)
    add_parts(const float *parts, int64_t blocks, int64_t trials, double values, float *to,
              int64_t step)
{
    __shared__ double folded[FOLDING][32];
    for (int64_t first = blockIdx.x * 32; first < trials; first += gridDim.x * 32) {
        const int64_t trial = first + threadIdx.x;
        double sum = 0;
        if (trial < trials)
#pragma unroll 8
            for (int64_t b = threadIdx.y; b < blocks; b += FOLDING)
                sum += parts[b * trials + trial];
        folded[threadIdx.y][threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.y == 0 && trial < trials) {
            for (int i = 1; i < FOLDING; i++)
                sum += folded[i][threadIdx.x];
            to[trial * step] = (float)(sum / values);
        }
        __syncthreads();
    }
}

/* ---- launches ---- */

struct job {
    const mb_op_call *call;
    const mb_double_wedge_params *p;
    mb_double_wedge_size size;
    walk w;
};

static mb_status make_spectra(const job &j, const float *sino, int64_t stride)
{
    const int64_t height = j.size.height, width = j.size.width, half = height + 1;
    const dim3 threads(TILE, 8);
    float *columns = (float *)j.call->slots[MB_DOUBLE_WEDGE_COLUMNS];
    float2 *c = (float2 *)j.call->slots[MB_DOUBLE_WEDGE_SPECTRUM];
    float2 *u = (float2 *)j.call->slots[MB_DOUBLE_WEDGE_SUMS];
    const unsigned blocks = mb_blocks(j.call, 2 * half * width, TILE * TILE);
    pad_columns<<<blocks, threads, 0, mb_stream(j.call)>>>(sino, stride, height, width, columns);
    MB_LAUNCHED("pad_columns");
    MB_TRY(mb_cuda_transform(j.call, MB_DOUBLE_WEDGE_COLUMNS_FFT, columns, columns,
                             MB_DOUBLE_WEDGE_COLUMNS_WORK));
    turn_spectrum<<<blocks, threads, 0, mb_stream(j.call)>>>((const float2 *)columns, half, width,
                                                             c);
    MB_LAUNCHED("turn_spectrum");
    return mb_cuda_transform(j.call, MB_DOUBLE_WEDGE_ROWS_FFT, c, u, MB_DOUBLE_WEDGE_ROWS_WORK);
}

/* Sends the trials of a class on one side, in the order of the walk; returns how many. */
static mb_status send_trials(const job &j, int64_t fraction, bool down, int *count)
{
    const mb_vector *centers = &j.p->centers;
    int2 *to = (int2 *)j.call->slots[MB_DOUBLE_WEDGE_TRIALS];
    int2 held[UPLOADED];
    int n = 0;
    *count = 0;
    for (int64_t i = 0; i <= centers->count; i++) {
        const int64_t trial = down ? centers->count - 1 - i : i;
        const bool end = i == centers->count;
        const int64_t shift = end ? 0 : mb_double_wedge_shift(centers->values[trial], j.size.width);
        if (!end && mb_double_wedge_fraction(shift) == fraction && (shift < 0) == down) {
            const int64_t whole = mb_double_wedge_whole(shift);
            held[n++] = make_int2((int)(down ? -whole - 1 : whole), (int)trial);
        }
        if (n == UPLOADED || (end && n > 0)) {
            MB_TRY(mb_upload(j.call, to + *count, held, n * sizeof *held));
            *count += n;
            n = 0;
        }
    }
    return MB_STATUS_OK;
}

template <bool DOWN, bool BETWEEN>
static mb_status run_side(const job &j, int64_t fraction)
{
    walk w = j.w;
    MB_TRY(send_trials(j, fraction, DOWN, &w.trial_count));
    if (w.trial_count == 0)
        return MB_STATUS_OK;
    w.mc = BETWEEN ? (const float2 *)j.call->slots[MB_DOUBLE_WEDGE_BETWEEN] : w.c;
    w.mu = BETWEEN ? (const float2 *)j.call->slots[MB_DOUBLE_WEDGE_OTHER] : w.u;
    walk_over<DOWN, BETWEEN>
        <<<(unsigned)mb_double_wedge_blocks(&j.size), COLUMNS, 0, mb_stream(j.call)>>>(w);
    return MB_LAUNCH_STATUS("walk_over");
}

static mb_status run_class(const job &j, int64_t fraction)
{
    if (fraction == 0) {
        MB_TRY((run_side<false, false>(j, fraction)));
        return run_side<true, false>(j, fraction);
    }
    const int64_t half = j.size.height + 1, width = j.size.width;
    float2 *c = (float2 *)j.call->slots[MB_DOUBLE_WEDGE_BETWEEN];
    float2 *u = (float2 *)j.call->slots[MB_DOUBLE_WEDGE_OTHER];
    spline_taps taps;
    mb_double_wedge_taps((double)fraction / MB_DOUBLE_WEDGE_GRAIN, taps.at);
    interpolate<<<mb_blocks(j.call, half * width, MB_THREADS), MB_THREADS, 0, mb_stream(j.call)>>>(
        (const float2 *)j.call->slots[MB_DOUBLE_WEDGE_SPECTRUM], half, width, taps, c);
    MB_LAUNCHED("interpolate");
    MB_TRY(mb_cuda_transform(j.call, MB_DOUBLE_WEDGE_ROWS_FFT, c, u, MB_DOUBLE_WEDGE_ROWS_WORK));
    MB_TRY((run_side<false, true>(j, fraction)));
    return run_side<true, true>(j, fraction);
}

extern "C" mb_status mb_cuda_double_wedge(const mb_op_call *call)
{
    const mb_array *sino = call->arrays[MB_DOUBLE_WEDGE_SINO];
    const mb_array *result = call->arrays[MB_DOUBLE_WEDGE_RESULT];
    const int rank = sino->shape.rank;
    job j = {};
    j.call = call;
    j.p = (const mb_double_wedge_params *)call->params;
    j.size = mb_double_wedge_size_of(&sino->shape);
    j.w.c = (const float2 *)call->slots[MB_DOUBLE_WEDGE_SPECTRUM];
    j.w.u = (const float2 *)call->slots[MB_DOUBLE_WEDGE_SUMS];
    j.w.trials = (const int2 *)call->slots[MB_DOUBLE_WEDGE_TRIALS];
    j.w.parts = (float *)call->slots[MB_DOUBLE_WEDGE_PARTS];
    j.w.all_trials = j.p->centers.count;
    j.w.tiles = mb_double_wedge_tiles(&j.size);
    j.w.tiles_across = mb_double_wedge_tiles_across(j.size.width);
    j.w.mask = mb_double_wedge_mask_of(j.p, &j.size);
    const mb_vector *centers = &j.p->centers;
    const int64_t columns = rank - 1;
    for (int64_t z = 0; z < j.size.rows; z++) {
        if (mb_cuda_core->cancelled())
            return MB_STATUS_CANCELLED;
        MB_TRY(make_spectra(j, (const float *)sino->data + (rank == 3 ? z * sino->strides[0] : 0),
                            sino->strides[rank - 2]));
        for (int64_t i = 0; i < centers->count; i++)
            if (mb_double_wedge_opens(centers, i, j.size.width))
                MB_TRY(run_class(j, mb_double_wedge_fraction(
                                        mb_double_wedge_shift(centers->values[i], j.size.width))));
        add_parts<<<mb_blocks(call, centers->count, 32), dim3(32, FOLDING), 0, mb_stream(call)>>>(
            j.w.parts, mb_double_wedge_blocks(&j.size), centers->count,
            2.0 * (double)j.size.height * (double)j.size.width,
            (float *)result->data + (rank == 3 ? z * result->strides[0] : 0),
            result->strides[columns - 1]);
        MB_LAUNCHED("add_parts");
    }
    return MB_STATUS_OK;
}
