/*
** stripes_all: removes stripes of all kinds (stripes_vo.h, stripes_detect.h).
*/
#include "ops/stripes/stripes_host.h"
#include "ops/op_args.h"

#define PARAMS mb_stripes_params

static const mb_op_arg args[] = {
    MB_ARRAY_IN("sino", MB_BIT(MB_F32), 2, 3, "sinograms (row, angle, column), or one"),
    MB_INT(large_size, 1, 1 << 20, 51, "columns", "window for dead columns and wide stripes"),
    MB_INT(small_size, 1, 1 << 20, 21, "columns", "window for all other stripes"),
    MB_FLOAT(snr, 0, 1e6, 3, NULL, "how far a stripe stands out of the noise; less finds more"),
    MB_FLOAT(drop_ratio, 0, 0.8, 0.1, NULL,
             "part of a column's values that its mean leaves out, half of it at each end"),
    MB_BOOL(normalize, 1, "divide the columns that are no stripes by their factors, too"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 2, 3, "same shape; may be sino")};

static const char *const samples[] = {
    "{inputs = {{'f32', 3, 23, 37}}, params = {large_size = 9, small_size = 5, snr = 1.5}}",
    "{inputs = {{'f32', 2, 140, 18}}, params = {large_size = 6, small_size = 3, snr = 0.2, "
    "normalize = false}}",
    "{inputs = {{'f32', 11, 7}}, params = {large_size = 3, small_size = 3}}",
    "{inputs = {{'f32', 2, 1601, 12}}, params = {large_size = 5, small_size = 3, snr = 1}}"};

MB_STRIPES_FUNCTIONS(MB_STRIPES_BY_ALL)

const mb_op mb_op_stripes_all = {
    .name = "stripes_all",
    .summary = "Removes stripes of sinograms of all kinds: dead, wide and small ones.",
    .doc = "In this order: dead and fluctuating columns are filled in (stripes_dead without "
           "residual), wide stripes are replaced (stripes_large), and all columns are "
           "filtered (stripes_sorting). Columns are sorted once: dividing by a factor or "
           "filtering keeps the order of values. Values that become equal by rounding stay "
           "in that order, otherwise the result is that of the three operators.\n"
           "Borders, even windows, equal values, NaN and -0 are as in stripes_sorting. A "
           "sinogram may be a permuted view of projections.",
    .reference =
        "N. T. Vo, R. C. Atwood, M. Drakopoulos, Superior techniques for eliminating ring "
        "artifacts in X-ray micro-tomography, Optics Express 26, 28396 (2018), algorithms 3 to 6",
    MB_OP_PLANNED_PARTS,
    .strides = MB_STRIDES_ROWS,
    .alias = 1u << MB_STRIPES_SINO,
    .split = mb_stack_split,
    .tolerance = 1e-6,
};
