/*
** normal_operator: q = M H M p for slices (rank 2 or 3, f32), with H a convolution whose spectrum
** normal_kernel makes. On the host, threads share the rows and then the columns of one pair of
** slices after the other (op_normal_operator.h); the columns of a tile pass through buffers of the
** thread.
*/
#include "ops/iterative/op_normal_operator.h"
#include "core/multiversion.h"
#include "ops/each_item.h"
#include "ops/op_args.h"
#include <string.h>

#define PARAMS mb_normal_operator_params

enum { LANES = 8 };

static const mb_op_arg args[] = {
    MB_ARRAY_IN("a", MB_BIT(MB_F32), 2, 3, "slices (z, y, x), or one (y, x); rows dense"),
    MB_ARRAY_IN("kernel", MB_BIT(MB_F32), 2, 2,
                "spectrum (px / 2 + 1, py) of normal_kernel or ramp_preconditioner"),
    MB_ARRAY_IN_OPTION("growth", MB_BIT(MB_F64), 1, 1,
                       "with direction: its factor, a number for each slice"),
    MB_ARRAY_IN_OPTION("over", MB_BIT(MB_F64), 1, 1,
                       "with growth: what it is divided by; a factor over 0 is 0"),
    MB_CIRCLE_ARG("outside, a counts as 0 and the result is 0"),
    MB_BOOL(dot, false, "return the sums of squares <p, q> too, one for each slice"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 2, 3, "q, same shape; may be a"),
    MB_ARRAY_OUT("dots", MB_BIT(MB_F64), 1, 1, "with dot: <p, q> of each slice"),
    MB_ARRAY_INOUT_OPTION(
        "direction", MB_BIT(MB_F32), 2, 3,
        "like a: becomes a + growth / over * direction inside the circle, and the "
        "operator works on it instead of a")};

static const mb_op_split split[] = {
    MB_SPLIT_AXIS(0, .when = "there are three axes", .adapt = mb_stack_adapt,
                  .packet = mb_packet_pair,
                  .alike = 1u << MB_NORMAL_OPERATOR_GROWTH | 1u << MB_NORMAL_OPERATOR_OVER |
                           1u << MB_NORMAL_OPERATOR_DOTS | 1u << MB_NORMAL_OPERATOR_DIRECTION),
    MB_SPLIT_END};

static const char *const samples[] = {
    "{inputs = {{'f32', 5, 9, 12}, {'f32', 13, 20}}, params = {dot = true}}",
    "{inputs = {{'f32', 13, 7}, {'f32', 9, 30}}, params = {circle = 0.9}}",
    "{inputs = {a = {'f32', 3, 11, 11, low = -1}, kernel = {'f32', 13, 22}, growth = {'f64', 3}, "
    "over = {'f64', 3}, direction = {'f32', 3, 11, 11}}, params = {dot = true, circle = 1}}",
    "{inputs = {{'f32', 3, 200, 250}, {'f32', 257, 512}}, params = {dot = true, circle = 1}}"};

/* The grid {py, px} of a spectrum. */
static void grid_of(const mb_shape *kernel, int64_t grid[2])
{
    grid[0] = kernel->dims[1];
    grid[1] = 2 * (kernel->dims[0] - 1);
}

static mb_status check_direction(const mb_spec *arrays)
{
    const mb_spec *a = &arrays[MB_NORMAL_OPERATOR_A],
                  *direction = &arrays[MB_NORMAL_OPERATOR_DIRECTION];
    const bool growth = arrays[MB_NORMAL_OPERATOR_GROWTH].present;
    char text[128];
    if (direction->present != growth)
        return mb_fail(MB_STATUS_ARGUMENT, growth ? "growth" : "direction",
                       "%s is given without %s; give both or none", growth ? "growth" : "direction",
                       growth ? "direction" : "growth");
    if (arrays[MB_NORMAL_OPERATOR_OVER].present && !growth)
        return mb_fail(MB_STATUS_ARGUMENT, "over", "over is given without growth; give both");
    if (direction->present && !mb_shape_equal(&direction->shape, &a->shape))
        return mb_fail(MB_STATUS_SHAPE, "direction", "direction must have the shape of a, %s",
                       mb_shape_format(&a->shape, text, sizeof text));
    MB_TRY(mb_slice_check_factor("growth", &arrays[MB_NORMAL_OPERATOR_GROWTH], &a->shape));
    return mb_slice_check_factor("over", &arrays[MB_NORMAL_OPERATOR_OVER], &a->shape);
}

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_normal_operator_params *p = params;
    const mb_shape *shape = &arrays[MB_NORMAL_OPERATOR_A].shape,
                   *kernel = &arrays[MB_NORMAL_OPERATOR_KERNEL].shape;
    int64_t grid[2];
    if (kernel->dims[0] < 2 || kernel->dims[1] < 2 || kernel->dims[1] % 2)
        return mb_fail(MB_STATUS_SHAPE, "kernel",
                       "kernel is %lld x %lld; a spectrum of normal_kernel has at least 2 rows and "
                       "an even number of columns",
                       (long long)kernel->dims[0], (long long)kernel->dims[1]);
    grid_of(kernel, grid);
    for (int i = 0; i < 2; i++) {
        const int64_t n = shape->dims[shape->rank - 2 + i];
        if (2 * n > grid[i] || grid[i] > 1 << 24)
            return mb_fail(
                MB_STATUS_SHAPE, "kernel",
                "kernel is of a grid of %lld %s, for slices of at most %lld; a has %lld: "
                "make the kernel with size of at least that",
                (long long)grid[i], i ? "columns" : "rows", (long long)(grid[i] / 2), (long long)n);
    }
    MB_TRY(check_direction(arrays));
    arrays[MB_NORMAL_OPERATOR_RESULT] = arrays[MB_NORMAL_OPERATOR_A];
    if (p->dot)
        arrays[MB_NORMAL_OPERATOR_DOTS] = (mb_spec){true, MB_F64, {1, {mb_slice_count(shape)}}};
    return MB_STATUS_OK;
}

/* ---- plan ---- */

static uint64_t tiles_of(const int64_t grid[2])
{
    return (uint64_t)((grid[1] + MB_NORMAL_COLUMNS - 1) / MB_NORMAL_COLUMNS);
}

/* Rows of a tile. Odd, or the lines of a row in all tiles would compete for a few lines of the
** cache. */
static int64_t rows_of(int64_t ny)
{
    return ny | 1;
}

static void plan_host(mb_planner *planner, int64_t ny, const int64_t grid[2], uint64_t partials)
{
    int work;
    mb_planner_slot(planner, "spectrum",
                    mb_bytes_mul(8 * MB_NORMAL_COLUMNS * tiles_of(grid), (uint64_t)rows_of(ny)), 0,
                    0);
    mb_planner_slot(planner, "partials", partials, 0, 0);
    mb_planner_slot(planner, "lines",
                    mb_bytes_mul(4 * (uint64_t)mb_normal_host_line(grid),
                                 (uint64_t)planner->device->facts.threads),
                    0, 0);
    mb_planner_slot(planner, "tables", 0, 0, 0);
    for (int i = 0; i < 4; i++) {
        mb_fft_desc desc = mb_fft_describe(i % 2 ? MB_FFT_C2C_INVERSE : MB_FFT_C2C_FORWARD, 1,
                                           &grid[i < 2], 1, true);
        desc.in_distance = desc.out_distance = mb_normal_host_line(grid) / 2; /* aligned */
        mb_planner_fft(planner, &desc, "work", 0, 0, &work);
    }
}

static void plan_cuda(mb_planner *planner, int64_t slices, int64_t ny, const int64_t grid[2],
                      uint64_t partials)
{
    const bool fused = mb_normal_fused(&planner->device->facts, grid);
    const int64_t pairs = (slices + 1) / 2;
    const uint64_t points = fused ? mb_bytes_mul((uint64_t)(ny * grid[1]),
                                                 (uint64_t)mb_normal_batch(pairs, ny, grid[1]))
                                  : mb_bytes_mul((uint64_t)grid[0], (uint64_t)grid[1]);
    int work;
    mb_planner_slot(planner, "spectrum", mb_bytes_mul(8, points), 0, 0);
    mb_planner_slot(planner, "partials", partials, 0, 0);
    mb_planner_slot(planner, "lines", 0, 0, 0);
    mb_planner_slot(planner, "tables",
                    fused ? mb_bytes_add((uint64_t)mb_normal_tables_of(grid, ny).factors,
                                         mb_bytes_mul(4, (uint64_t)slices))
                          : 0,
                    0, 0);
    for (int i = 0; i < 2 && !fused; i++) {
        mb_fft_desc desc =
            mb_fft_describe(i ? MB_FFT_C2C_INVERSE : MB_FFT_C2C_FORWARD, 2, grid, 1, true);
        mb_planner_fft(planner, &desc, "work", 0, 0, &work);
    }
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_normal_operator_params *p = params;
    const mb_shape *shape = &arrays[MB_NORMAL_OPERATOR_A].shape;
    const mb_device_facts *facts = &planner->device->facts;
    const bool host = facts->compute_capability == 0;
    const int64_t slices = mb_slice_count(shape), ny = shape->dims[shape->rank - 2];
    int64_t grid[2];
    grid_of(&arrays[MB_NORMAL_OPERATOR_KERNEL].shape, grid);
    const int64_t sums = mb_normal_partials(!host && mb_normal_fused(facts, grid), ny, grid[1]);
    const uint64_t partials =
        p->dot ? mb_bytes_mul(8 * (uint64_t)sums, (uint64_t)(host ? 2 : slices)) : 0;
    if (host)
        plan_host(planner, ny, grid, partials);
    else
        plan_cuda(planner, slices, ny, grid, partials);
}

/* ---- the host's kernel ---- */

typedef struct job {
    const mb_op_call *call;
    int64_t ny, nx, grid[2];
    mb_circle circle;
    float *spectrum; /* [tile][row][MB_NORMAL_COLUMNS], complex */
    const mb_array *kernel;
    int slices;           /* of the pair: 1 or 2 */
    const float *from[2]; /* slices */
    float *direction[2], *to[2];
    int64_t from_pitch, direction_pitch, to_pitch;
    float growth[2];
    float scale;
    double *sums; /* [2][ny], or NULL */
} job;

static mb_status transform(const job *j, int fft, float *data)
{
    return mb_fft_exec(j->call->device, j->call->ffts[fft], data, data,
                       j->call->slots[MB_NORMAL_OPERATOR_WORK + fft]);
}

static float *line_of(const job *j, int thread)
{
    return (float *)j->call->slots[MB_NORMAL_OPERATOR_LINES] +
           mb_normal_host_line(j->grid) * thread;
}

/* direction = from + growth * direction. A direction that does not grow is not read. */
MB_MULTIVERSION
static void grow(float *direction, const float *from, int64_t n, float growth)
{
    if (growth == 0)
        memcpy(direction, from, (size_t)n * sizeof *from);
    else
        for (int64_t x = 0; x < n; x++)
            direction[x] = (float)((double)from[x] + (double)growth * (double)direction[x]);
}

/* The row that the operator works on: of `a`, or of the direction. */
static const float *row_of(const job *j, int i, int64_t y)
{
    return j->direction[i] ? j->direction[i] + y * j->direction_pitch
                           : j->from[i] + y * j->from_pitch;
}

/* A part of the spectrum of a row, of which `left` are left, to or from a tile. */
static void copy_part(float *to, const float *from, int64_t left)
{
    memcpy(to, from, 8 * (size_t)(left < MB_NORMAL_COLUMNS ? left : MB_NORMAL_COLUMNS));
}

static mb_status row_forth(const void *of, int64_t y, int thread)
{
    const job *j = of;
    const mb_circle_run run = mb_circle_row(&j->circle, y, j->nx);
    const int64_t step = 2 * MB_NORMAL_COLUMNS * rows_of(j->ny), px = j->grid[1];
    float *line = line_of(j, thread), *to = j->spectrum + 2 * MB_NORMAL_COLUMNS * y;
    memset(line, 0, (size_t)px * 8);
    for (int i = 0; i < j->slices; i++) {
        if (j->direction[i])
            grow(j->direction[i] + y * j->direction_pitch + run.first,
                 j->from[i] + y * j->from_pitch + run.first, run.end - run.first, j->growth[i]);
        const float *row = row_of(j, i, y);
        for (int64_t x = run.first; x < run.end; x++)
            line[2 * x + i] = row[x];
    }
    if (run.first < run.end)
        MB_TRY(transform(j, MB_NORMAL_OPERATOR_ROW_FORTH, line));
    for (int64_t k = 0; k < px; k += MB_NORMAL_COLUMNS, to += step)
        copy_part(to, line + 2 * k, px - k);
    return MB_STATUS_OK;
}

/* Multiplies a column by its spectrum, forwards or from the other end. */
MB_MULTIVERSION
static void multiply(float *column, const float *kernel, int64_t step, int64_t n, bool mirrored)
{
    if (!mirrored && step == 1)
        for (int64_t k = 0; k < n; k++) {
            column[2 * k] *= kernel[k];
            column[2 * k + 1] *= kernel[k];
        }
    else
        for (int64_t k = 0; k < n; k++) {
            const float value = kernel[(mirrored && k > 0 ? n - k : k) * step];
            column[2 * k] *= value;
            column[2 * k + 1] *= value;
        }
}

static mb_status filter_tile(const void *of, int64_t item, int thread)
{
    const job *j = of;
    float *tile = j->spectrum + 2 * MB_NORMAL_COLUMNS * rows_of(j->ny) * item,
          *columns = line_of(j, thread);
    const int64_t py = j->grid[0], px = j->grid[1], pitch = mb_normal_host_column(py);
    const int64_t x0 = item * MB_NORMAL_COLUMNS,
                  count = px - x0 < MB_NORMAL_COLUMNS ? px - x0 : MB_NORMAL_COLUMNS;
    for (int64_t y = 0; y < j->ny; y++)
        for (int64_t c = 0; c < count; c++)
            memcpy(columns + c * pitch + 2 * y, tile + 2 * (MB_NORMAL_COLUMNS * y + c), 8);
    for (int64_t c = 0; c < count; c++) {
        const int64_t x = x0 + c;
        const bool mirrored = 2 * x > px;
        float *column = columns + c * pitch;
        memset(column + 2 * j->ny, 0, 8 * (size_t)(py - j->ny));
        MB_TRY(transform(j, MB_NORMAL_OPERATOR_COLUMN_FORTH, column));
        multiply(column,
                 (const float *)j->kernel->data + (mirrored ? px - x : x) * j->kernel->strides[0],
                 j->kernel->strides[1], py, mirrored);
        MB_TRY(transform(j, MB_NORMAL_OPERATOR_COLUMN_BACK, column));
    }
    for (int64_t y = 0; y < j->ny; y++)
        for (int64_t c = 0; c < count; c++)
            memcpy(tile + 2 * (MB_NORMAL_COLUMNS * y + c), columns + c * pitch + 2 * y, 8);
    return MB_STATUS_OK;
}

/* Takes pixels of a slice out of a line, and returns the sum of them times p. Products of floats
** are exact in double, and each lane has its own sum, so that the order is always the same. */
MB_MULTIVERSION
static double take(float *to, const float *line, const float *p, int64_t n, float scale)
{
    double lanes[LANES] = {0}, sum = 0;
    int64_t x = 0;
    for (; x + LANES <= n; x += LANES)
        for (int k = 0; k < LANES; k++) {
            const float q = line[2 * (x + k)] * scale;
            lanes[k] += (double)q * (double)p[x + k];
            to[x + k] = q;
        }
    for (int k = 0; x < n; x++, k++) {
        const float q = line[2 * x] * scale;
        lanes[k] += (double)q * (double)p[x];
        to[x] = q;
    }
    for (int k = 0; k < LANES; k++)
        sum += lanes[k];
    return sum;
}

static mb_status row_back(const void *of, int64_t y, int thread)
{
    const job *j = of;
    const mb_circle_run run = mb_circle_row(&j->circle, y, j->nx);
    const int64_t step = 2 * MB_NORMAL_COLUMNS * rows_of(j->ny), px = j->grid[1];
    const float *from = j->spectrum + 2 * MB_NORMAL_COLUMNS * y;
    float *line = line_of(j, thread);
    for (int64_t k = 0; k < px; k += MB_NORMAL_COLUMNS, from += step)
        copy_part(line + 2 * k, from, px - k);
    if (run.first < run.end)
        MB_TRY(transform(j, MB_NORMAL_OPERATOR_ROW_BACK, line));
    for (int i = 0; i < j->slices; i++) {
        float *to = j->to[i] + y * j->to_pitch;
        const double sum = take(to + run.first, line + 2 * run.first + i,
                                row_of(j, i, y) + run.first, run.end - run.first, j->scale);
        if (j->sums)
            j->sums[i * j->ny + y] = sum;
        memset(to, 0, (size_t)run.first * sizeof *to);
        memset(to + run.end, 0, (size_t)(j->nx - run.end) * sizeof *to);
    }
    return MB_STATUS_OK;
}

static mb_status make_pair(job *j, int64_t slice)
{
    const mb_op_call *call = j->call;
    const mb_array *dots = call->arrays[MB_NORMAL_OPERATOR_DOTS];
    MB_TRY(mb_each_item(call, j->ny, row_forth, j));
    MB_TRY(mb_each_item(call, (int64_t)tiles_of(j->grid), filter_tile, j));
    MB_TRY(mb_each_item(call, j->ny, row_back, j));
    for (int i = 0; i < j->slices && dots; i++) {
        double sum = 0;
        for (int64_t y = 0; y < j->ny; y++)
            sum += j->sums[i * j->ny + y];
        ((double *)dots->data)[(slice + i) * dots->strides[0]] = sum;
    }
    return MB_STATUS_OK;
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_normal_operator_params *p = call->params;
    const mb_array *a = call->arrays[MB_NORMAL_OPERATOR_A];
    const mb_array *direction = call->arrays[MB_NORMAL_OPERATOR_DIRECTION],
                   *result = call->arrays[MB_NORMAL_OPERATOR_RESULT];
    const mb_slice_factor factor = mb_slice_factor_of(call->arrays[MB_NORMAL_OPERATOR_GROWTH],
                                                      call->arrays[MB_NORMAL_OPERATOR_OVER]);
    const int rank = a->shape.rank;
    const int64_t slices = mb_slice_count(&a->shape);
    job j = {.call = call,
             .ny = a->shape.dims[rank - 2],
             .nx = a->shape.dims[rank - 1],
             .spectrum = call->slots[MB_NORMAL_OPERATOR_SPECTRUM],
             .kernel = call->arrays[MB_NORMAL_OPERATOR_KERNEL],
             .sums = p->dot ? call->slots[MB_NORMAL_OPERATOR_PARTIALS] : NULL,
             .from_pitch = a->strides[rank - 2],
             .direction_pitch = direction ? direction->strides[rank - 2] : 0,
             .to_pitch = result->strides[rank - 2]};
    grid_of(&j.kernel->shape, j.grid);
    j.circle = mb_circle_of(p->circle, j.ny, j.nx);
    j.scale = (float)(1.0 / ((double)j.grid[0] * (double)j.grid[1]));
    if (j.ny == 0 || j.nx == 0) {
        const mb_array *dots = call->arrays[MB_NORMAL_OPERATOR_DOTS];
        for (int64_t z = 0; dots && z < slices; z++)
            ((double *)dots->data)[z * dots->strides[0]] = 0;
        return MB_STATUS_OK;
    }
    for (int64_t slice = 0; slice < slices; slice += 2) {
        j.slices = slices - slice < 2 ? 1 : 2;
        for (int64_t i = 0; i < j.slices; i++) {
            const int64_t z = slice + i;
            j.from[i] = (const float *)a->data + (rank == 3 ? z * a->strides[0] : 0);
            j.to[i] = (float *)result->data + (rank == 3 ? z * result->strides[0] : 0);
            if (!direction)
                continue;
            j.direction[i] = (float *)direction->data + (rank == 3 ? z * direction->strides[0] : 0);
            j.growth[i] = mb_slice_factor_at(&factor, z);
        }
        MB_TRY(make_pair(&j, slice));
    }
    return MB_STATUS_OK;
}

const mb_op mb_op_normal_operator = {
    .name = "normal_operator",
    .summary = "Applies the normal operator A'A of parallel beams, a convolution, to slices.",
    .doc =
        "q = M H M p: a slice, 0 outside the circle, is convolved with the kernel whose spectrum "
        "normal_kernel made, and cut to the circle. It takes two Fourier transforms of a doubled "
        "grid, whatever the number of angles, and equals projecting and back-projecting in the "
        "model that normal_kernel describes. It is symmetric and not negative. With the spectrum "
        "of ramp_preconditioner it preconditions.\n"
        "Two slices are computed as one complex image: a NaN in one reaches its partner. With dot "
        "the sum of p times q comes too, for each slice: in double precision, but for the few "
        "products that a thread of a GPU sums in single precision first. With direction, growth "
        "and over it makes the conjugate direction p = a + growth / over * direction first, "
        "and works on that: growth and over are arrays with a number for each slice, so that "
        "nothing waits for a number. What direction has outside the circle stays, and where the "
        "factor is 0 direction is not read.\n"
        "On an NVIDIA GPU of compute capability 8.0 or later, grids whose extents are 512 to 8192, "
        "powers of two or 3 times such (as the shared memory permits), go through kernels of "
        "Moonbeam, up to 2 GiB of spectra at a time or one pair; other grids through the FFT "
        "library, a pair at a time. The host has one pair at a time.",
    .reference = "A. H. Delaney and Y. Bresler, IEEE Trans. Image Process. 5 (1996) 740",
    MB_OP_ALL_PARTS,
    .strides = MB_STRIDES_ROWS,
    .alias = 1u << MB_NORMAL_OPERATOR_A,
    .tolerance = 5e-6, /* float transforms of two libraries */
};
