/*
** stripes_large: replaces wide stripes (stripes_vo.h, stripes_detect.h).
*/
#include "ops/stripes/stripes_host.h"
#include "ops/op_args.h"

#define PARAMS mb_stripes_params

static const mb_op_arg args[] = {
    MB_ARRAY_IN("sino", MB_BIT(MB_F32), 2, 3, "sinograms (row, angle, column), or one"),
    MB_INT(size, 1, 1 << 20, 51, "columns", "window of the median; wider than the stripes"),
    MB_FLOAT(snr, 0, 1e6, 3, NULL, "how far a stripe stands out of the noise; less finds more"),
    MB_FLOAT(drop_ratio, 0, 0.8, 0.1, NULL,
             "part of a column's values that its mean leaves out, half of it at each end"),
    MB_BOOL(normalize, 1, "divide the columns that are no stripes by their factors, too"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 2, 3, "same shape; may be sino")};

static const char *const samples[] = {
    "{inputs = {{'f32', 3, 23, 37}}, params = {size = 9, snr = 1.5}}",
    "{inputs = {{'f32', 2, 40, 18}}, params = {size = 6, normalize = false, snr = 0.5}}",
    "{inputs = {{'f32', 11, 7}}, params = {size = 3}}"};

MB_STRIPES_FUNCTIONS(MB_STRIPES_BY_LARGE)

const mb_op mb_op_stripes_large = {
    .name = "stripes_large",
    .summary = "Removes wide stripes of sinograms: finds them, and replaces them alone.",
    .doc = "The values of each column are sorted, and filtered with a median over size columns at "
           "each rank, as in stripes_sorting. A column's factor is its mean over that of its "
           "filtered values, without the drop_ratio of least and greatest ones. The factors of all "
           "columns are sorted and a line is fitted to the middle half of them; what the line "
           "spans is the noise, at least 1e-6. If the largest (smallest) factor is snr times the "
           "noise above (below) the line, columns beyond half of that are stripes, with a column "
           "on each side. So are columns whose factors are not finite. They get their filtered "
           "values. The other columns are divided by their factors if normalize is true, unless a "
           "factor is 0. Fewer than 8 columns stay as they are.\n"
           "Borders, even windows, equal values, NaN and -0 are as in stripes_sorting. A sinogram "
           "may be a permuted view of projections.",
    .reference =
        "N. T. Vo, R. C. Atwood, M. Drakopoulos, Superior techniques for eliminating ring "
        "artifacts in X-ray micro-tomography, Optics Express 26, 28396 (2018), algorithms 4 and 5",
    MB_OP_PLANNED_PARTS,
    .strides = MB_STRIDES_ROWS,
    .alias = 1u << MB_STRIPES_SINO,
    .split = mb_stack_split,
    .tolerance = 1e-6,
};
