/*
** rl_ratio: the first pointwise step of a Richardson-Lucy iteration, fused: image / max(blurred,
** eps) in place of the blurred estimate, 0 outside the image, and on demand the I-divergence of the
** two in the same pass.
*/
#include "ops/deconvolution/op_rl_ratio.h"
#include "ops/op_args.h"

#define PARAMS mb_rl_ratio_params

static const mb_op_arg args[] = {
    MB_ARRAY_INOUT("blurred", MB_BIT(MB_F32), 1, 3,
                   "blurred estimate on the grid, padded rows; becomes the ratio"),
    MB_GRID_IMAGE_ARG("measured image"),
    MB_GRID_WEIGHTS_ARG("the ratio"),
    MB_FLOAT(eps, 1e-38, 1e38, 1e-12, NULL, "least value of blurred to divide by"),
    MB_GRID_BACKGROUND_ARG,
    MB_BOOL(tile, false, "blurred is a part of the estimate and has the shape of image"),
    MB_GRID_METRIC_ARGS("return the misfit",
                        "with metrics: I-divergence, and the sum of blurred, over the image")};

static const char *const samples[] = {
    "{inputs = {{'f32', 4, 6, 10, low = 0.5}, {'f32', 3, 5, 7}}, params = {metrics = true}}",
    "{inputs = {{'f32', 6, 10, low = 0.5}, {'u16', 5, 9}, {'f32', 5, 9}}, params = {eps = 0.6}}",
    "{inputs = {{'f32', 12, low = 0.5}, {'f32', 11}, {'f32', 11}}, params = {metrics = true}}",
    "{inputs = {{'f32', 4, 6, 10, low = 0.5}, {'f32', 4, 6, 10}}, params = {tile = true, metrics = "
    "true}}",
    "{inputs = {{'f32', 12, low = 0.5}, {'u8', 12}}, params = {tile = true, metrics = true}}"};

static mb_status infer(const void *params, mb_spec *arrays)
{
    const mb_rl_ratio_params *p = params;
    const mb_spec *image = &arrays[MB_RL_RATIO_IMAGE], *weights = &arrays[MB_RL_RATIO_WEIGHTS];
    const mb_shape *blurred = &arrays[MB_RL_RATIO_BLURRED].shape;
    if (p->tile && !mb_shape_equal(blurred, &image->shape))
        return mb_fail(MB_STATUS_SHAPE, "image", "image must have the shape of blurred");
    MB_TRY(p->tile ? mb_grid_check_weights(image, weights)
                   : mb_grid_check_image(blurred, image, weights));
    if (p->metrics)
        arrays[MB_RL_RATIO_METRIC] = (mb_spec){true, MB_F64, {1, {2}}};
    return MB_STATUS_OK;
}

static void plan(const void *params, const mb_spec *arrays, mb_planner *planner)
{
    const mb_rl_ratio_params *p = params;
    (void)arrays;
    mb_grid_plan(planner, p->metrics ? sizeof(mb_rl_ratio_cell) : 0);
}

/* A row of the grid and the row of the image that lies on it; steps in elements. */
typedef struct ratio_row {
    float *blurred;
    const void *image;
    const float *weights; /* NULL: 1 */
    int64_t step, image_step, weight_step;
} ratio_row;

#define RATIO(type)                                                                                \
    do {                                                                                           \
        const type *y = r.image;                                                                   \
        if (cell)                                                                                  \
            for (int64_t i = 0; i < n; i++) {                                                      \
                float value = row[i * r.step] + under, b = value > eps ? value : eps;              \
                float w = r.weights ? r.weights[i * r.weight_step] : 1;                            \
                float counts = mb_grid_counts((float)y[i * r.image_step]);                         \
                cell->divergence += (double)w * mb_grid_divergence((double)counts, (double)b);     \
                cell->blurred += (double)value;                                                    \
            }                                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                          \
            float value = row[i * r.step] + under;                                                 \
            row[i * r.step] =                                                                      \
                mb_grid_counts((float)y[i * r.image_step]) / (value > eps ? value : eps);          \
        }                                                                                          \
    } while (0)
/* n elements, for steps that the compiler knows where the caller does. */
__attribute__((always_inline)) static inline void divide_row(mb_dtype dtype, const ratio_row r,
                                                             int64_t n, float eps, float under,
                                                             mb_rl_ratio_cell *cell)
{
    float *row = r.blurred;
    if (dtype == MB_U8)
        RATIO(uint8_t);
    else if (dtype == MB_U16)
        RATIO(uint16_t);
    else
        RATIO(float);
    for (int64_t i = 0; r.weights && i < n; i++)
        row[i * r.step] *= r.weights[i * r.weight_step];
}

static mb_status run_host(const mb_op_call *call)
{
    const mb_rl_ratio_params *p = call->params;
    const mb_array *weights = call->arrays[MB_RL_RATIO_WEIGHTS];
    const mb_grid_view grid = mb_grid_view_of(call->arrays[MB_RL_RATIO_BLURRED]);
    const mb_grid_view image = mb_grid_view_of(call->arrays[MB_RL_RATIO_IMAGE]);
    const mb_grid_view factors = weights ? mb_grid_view_of(weights) : image;
    const mb_dtype dtype = call->arrays[MB_RL_RATIO_IMAGE]->dtype;
    const bool dense = grid.step[2] == 1 && image.step[2] == 1 && factors.step[2] == 1;
    mb_rl_ratio_cell *partials = call->slots[MB_RL_RATIO_PARTIALS];
    const int64_t rows = grid.n[0] * grid.n[1], bytes = (int64_t)mb_dtype_bytes(dtype);
    int threads = rows * grid.n[2] < 32768 ? 1 : call->device->facts.threads;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t block = 0; block < MB_GRID_BLOCKS; block++) {
        if (mb_cancelled())
            continue;
        mb_rl_ratio_cell cell = {0, 0}, *sums = partials ? &cell : NULL;
        for (int64_t row = rows * block / MB_GRID_BLOCKS; row < rows * (block + 1) / MB_GRID_BLOCKS;
             row++) {
            int64_t z = row / grid.n[1], y = row % grid.n[1];
            int64_t n = z < image.n[0] && y < image.n[1] ? image.n[2] : 0;
            ratio_row r = {(float *)grid.data + mb_grid_row(&grid, z, y),
                           (const char *)image.data + mb_grid_row(&image, z, y) * bytes,
                           weights ? (const float *)factors.data + mb_grid_row(&factors, z, y)
                                   : NULL,
                           grid.step[2],
                           image.step[2],
                           factors.step[2]};
            if (dense)
                divide_row(dtype, (ratio_row){r.blurred, r.image, r.weights, 1, 1, 1}, n,
                           (float)p->eps, (float)p->background, sums);
            else
                divide_row(dtype, r, n, (float)p->eps, (float)p->background, sums);
            for (int64_t x = n; x < grid.n[2]; x++)
                r.blurred[x * r.step] = 0;
        }
        if (partials)
            partials[block] = cell;
    }
    mb_grid_fold(partials, sizeof *partials, call->arrays[MB_RL_RATIO_METRIC]);
    return MB_STATUS_OK;
}

const mb_op mb_op_rl_ratio = {
    .name = "rl_ratio",
    .summary = "Richardson-Lucy: measured image over blurred estimate, in place, with the misfit.",
    .doc = "blurred is the estimate after the transfer function, on the padded rows of the inverse "
           "transform. Where the grid exceeds the image, the ratio is 0: values that wrapped "
           "around do not count. Values of the image below 0 count as 0. With `tile`, blurred and "
           "image are the same part of a larger grid "
           "and of its image.\n"
           "The I-divergence, the sum of y log(y/b) - y + b, is the function that Richardson-Lucy "
           "minimizes. It adds up over tiles.",
    .reference =
        "W. H. Richardson, J. Opt. Soc. Am. 62, 55 (1972); I. Csiszar, Ann. Stat. 19, 2032 (1991)",
    MB_OP_PLANNED_PARTS,
    .uncut = "it is a step over the grid of an iteration, at whose start the image lies",
    .strides = MB_STRIDES_ANY,
    .tolerance = 2e-6,
};
