/*
** apply_otf: convolution with a transfer function in one operator, in place: transform, product,
** transform back. As one it needs the memory once less than rfft, complex_multiply and irfft where
** the backend can join the product to the transforms along the first axis.
*/
#include "ops/fft/op_apply_otf.h"
#include "ops/op_args.h"
#include "ops/fft/op_complex_multiply.h"
#include "ops/fft/op_otf.h"
#include "ops/fft/otf_planes.h"

#define PARAMS mb_apply_otf_params

static const mb_op_arg args[] = {
    MB_ARRAY_INOUT(
        "grid", MB_BIT(MB_F32), 1, 3,
        "padded rows of 2 * (n/2 + 1) floats, n of them samples; becomes the convolution"),
    MB_ARRAY_IN("otf", MB_BIT(MB_C64), 1, 3,
                "half spectrum (..., n/2 + 1), or planes of it, as otf makes them"),
    MB_INT(n, 0, 1e15, 0, NULL, "samples per row; 0: the last extent less 2, which is even"),
    MB_BOOL(conj, false, "multiply by the conjugate of otf: the adjoint"),
    MB_BOOL(both, false, "multiply by otf and by its conjugate"),
    MB_FLOAT(scale, MB_ANY, 1, NULL, "factor; 1/N if otf does not contain it")};

static const char *const samples[] = {
    "{inputs = {{'f32', 5, 6, 10}, {'c64', 5, 6, 5}}}",
    "{inputs = {{'f32', 4, 8}, {'c64', 4, 4}}, params = {n = 7, conj = true, scale = 0.25}}",
    "{inputs = {{'f32', 12}, {'c64', 6}}}",
    "{inputs = {{'f32', 12, 6, 10}, {'c64', 3, 6, 5}}, params = {both = true, scale = 0.1}}"};

/* The planes of a transfer function that is not whole: an odd number of few. */
static bool are_planes(const mb_shape *otf, const mb_shape *whole)
{
    mb_shape rest = *otf;
    if (otf->rank != 3 || otf->dims[0] % 2 == 0 || !mb_otf_few_of(otf->dims[0], whole->dims[0]))
        return false;
    rest.dims[0] = whole->dims[0];
    return mb_shape_equal(&rest, whole);
}

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_apply_otf_params *p = params;
    const mb_shape *grid = &arrays[MB_APPLY_OTF_GRID].shape, *otf = &arrays[MB_APPLY_OTF_OTF].shape;
    char left[128], right[128];
    int last = grid->rank - 1;
    int64_t n = mb_apply_otf_samples(p, grid->dims[last]);
    mb_shape expected = *grid;
    for (int i = 0; i <= last; i++)
        if (grid->dims[i] < 1)
            return mb_fail(MB_STATUS_SHAPE, "grid",
                           "axis %d is empty; a grid needs at least one element on each axis",
                           i + 1);
    if (n < 1 || grid->dims[last] != mb_grid_pitch(n))
        return mb_fail(MB_STATUS_ARGUMENT, "n",
                       "rows of n = %lld samples have %lld elements, not %lld", (long long)n,
                       (long long)(n < 1 ? 0 : mb_grid_pitch(n)), (long long)grid->dims[last]);
    expected.dims[last] = n / 2 + 1;
    if (!mb_shape_equal(otf, &expected) && !are_planes(otf, &expected))
        return mb_fail(MB_STATUS_SHAPE, "otf", "otf is %s; the half spectrum of this grid is %s",
                       mb_shape_format(otf, left, sizeof left),
                       mb_shape_format(&expected, right, sizeof right));
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_apply_otf_params *p = params;
    const mb_shape *grid = &arrays[MB_APPLY_OTF_GRID].shape;
    const mb_device_facts *facts = &planner->device->facts;
    int64_t dims[3], n[3];
    int work, rank = grid->rank;
    for (int i = 0; i < rank; i++)
        dims[i] = grid->dims[i];
    dims[rank - 1] = mb_apply_otf_samples(p, dims[rank - 1]);
    mb_grid_dims(grid, n);
    n[2] = dims[rank - 1];
    bool fused = mb_apply_otf_fused(facts, n);
    for (int i = 0; i < 2; i++)
        if (fused) {
            mb_planner_slot(planner, "work", 0, 0, 0);
        } else {
            mb_fft_desc desc =
                mb_fft_describe(i == 0 ? MB_FFT_R2C : MB_FFT_C2R, rank, dims, 1, true);
            mb_planner_fft(planner, &desc, i == 0 ? "forward work" : "inverse work", i, i, &work);
        }
    mb_planner_slot(planner, "counters", fused ? 4 * (uint64_t)mb_apply_otf_counters(facts, n) : 0,
                    0, 1);
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_apply_otf_params *p = call->params;
    const mb_array *grid = call->arrays[MB_APPLY_OTF_GRID], *otf = call->arrays[MB_APPLY_OTF_OTF];
    float *data = grid->data;
    int64_t pitch = grid->shape.dims[grid->shape.rank - 1], n = mb_apply_otf_samples(p, pitch),
            count = (int64_t)mb_array_elements(grid) / 2, rows = 2 * count / pitch, dims[3];
    mb_grid_dims(&grid->shape, dims);
    const int planes = mb_apply_otf_planes(&otf->shape, dims);
    MB_TRY(mb_fft_exec(call->device, call->ffts[MB_APPLY_OTF_FORWARD], data, data,
                       call->slots[MB_APPLY_OTF_FORWARD_WORK]));
    for (int i = 0; i < (p->both ? 2 : 1); i++) {
        const double scale = i == 0 ? p->scale : 1;
        const bool conj = i == 0 ? p->conj : !p->conj;
        if (planes > 0)
            mb_otf_planes_multiply_host(call->device, data, otf->data, planes, dims[0],
                                        dims[1] * pitch / 2, scale, conj);
        else
            mb_complex_multiply_host(call->device, data, otf->data, count, count, scale, conj);
    }
    MB_TRY(mb_fft_exec(call->device, call->ffts[MB_APPLY_OTF_INVERSE], data, data,
                       call->slots[MB_APPLY_OTF_INVERSE_WORK]));
    for (int64_t row = 0; row < rows; row++)
        for (int64_t x = n; x < pitch; x++)
            data[row * pitch + x] = 0;
    return MB_STATUS_OK;
}

const mb_op mb_op_apply_otf = {
    .name = "apply_otf",
    .summary = "Convolves or correlates a grid with a transfer function, in place.",
    .doc = "The grid has the padded rows of an in-place transform over all its axes (embed makes "
           "them); otf makes the transfer function. Nothing is divided by the number of points N: "
           "otf or scale must contain the factor 1/N. A transfer function of fewer planes than the "
           "grid has (an odd number of them) is one in planes, as otf makes it with form "
           "\"planes\".\n"
           "On a GPU, grids of three axes whose extents are powers of two (16 to 2048, 64 to 2048, "
           "128 to 4096) are transformed by kernels of Moonbeam, which combine the product with "
           "the transforms along the first axis, or convolve along it with up to 17 planes, and "
           "need no work area. The largest of these grids "
           "need a GPU with enough shared memory per block. All other grids are transformed by the "
           "FFT library.",
    .reference = "convolution theorem",
    MB_OP_PLANNED_PARTS,
    .uncut = "it is one transform over all axes",
    .strides = MB_STRIDES_CONTIGUOUS,
    .tolerance = 2e-6, /* float transforms of two libraries */
};
