/*
** stripes_dead: fills in dead and fluctuating columns (stripes_vo.h, stripes_detect.h).
*/
#include "ops/stripes/stripes_host.h"
#include "ops/op_args.h"

#define PARAMS mb_stripes_params

static const mb_op_arg args[] = {
    MB_ARRAY_IN("sino", MB_BIT(MB_F32), 2, 3, "sinograms (row, angle, column), or one"),
    MB_INT(size, 1, 1 << 20, 51, "columns", "window of the median; wider than the stripes"),
    MB_FLOAT(snr, 0, 1e6, 3, NULL, "how far a stripe stands out of the noise; less finds more"),
    MB_BOOL(residual, 1, "remove wide stripes afterwards, as stripes_large does"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 2, 3, "same shape; may be sino")};

static const char *const samples[] = {
    "{inputs = {{'f32', 3, 23, 37}}, params = {size = 9, snr = 1.5}}",
    "{inputs = {{'f32', 2, 140, 18}}, params = {size = 6, residual = false, snr = 0.2}}",
    "{inputs = {{'f32', 11, 7}}, params = {size = 3}}"};

MB_STRIPES_FUNCTIONS(MB_STRIPES_BY_DEAD)

const mb_op mb_op_stripes_dead = {
    .name = "stripes_dead",
    .summary = "Fills in columns of sinograms that do not respond, or that fluctuate.",
    .doc = "A column's fluctuation is the sum of the absolute differences between its values and "
           "their means over 10 angles. Its factor is the fluctuation over the median of those of "
           "size columns. Columns whose factor stands out, as in stripes_large, or that have "
           "values that are not finite, are interpolated linearly between the nearest columns that "
           "do not. The two first and the two last columns stay as they are; so do all if a third "
           "of them or more stand out, or if there are fewer than 8. With residual, stripes_large "
           "follows, with the same size and snr.\n"
           "Borders, even windows, equal values, NaN and -0 are as in stripes_sorting. A sinogram "
           "may be a permuted view of projections.",
    .reference =
        "N. T. Vo, R. C. Atwood, M. Drakopoulos, Superior techniques for eliminating ring "
        "artifacts in X-ray micro-tomography, Optics Express 26, 28396 (2018), algorithms 4 and 6",
    MB_OP_PLANNED_PARTS,
    .strides = MB_STRIDES_ROWS,
    .alias = 1u << MB_STRIPES_SINO,
    .split = mb_stack_split,
    .tolerance = 1e-6,
};
