/*
** stripes_sorting: removes stripes by sorting (stripes_vo.h).
*/
#include "ops/stripes/stripes_host.h"
#include "ops/op_args.h"

#define PARAMS mb_stripes_params

static const mb_op_arg args[] = {
    MB_ARRAY_IN("sino", MB_BIT(MB_F32), 2, 3, "sinograms (row, angle, column), or one"),
    MB_INT(size, 1, 1 << 20, 21, "columns", "window of the median; wider than the stripes"),
    MB_ARRAY_OUT("result", MB_BIT(MB_F32), 2, 3, "same shape; may be sino")};

static const char *const samples[] = {"{inputs = {{'f32', 3, 23, 37}}, params = {size = 5}}",
                                      "{inputs = {{'f32', 2, 1, 9}}, params = {size = 30}}",
                                      "{inputs = {{'f32', 40, 16}}, params = {size = 4}}",
                                      "{inputs = {{'f32', 2, 1601, 10}}, params = {size = 3}}"};

MB_STRIPES_FUNCTIONS(MB_STRIPES_BY_SORTING)

const mb_op mb_op_stripes_sorting = {
    .name = "stripes_sorting",
    .summary = "Removes stripes of sinograms by sorting: full, partial and small ones.",
    .doc = "The values of each column are sorted along the angles. At each rank a median over size "
           "neighboring columns replaces the value, which goes back to its angle. A window that is "
           "too small leaves wide stripes, one that is too large blurs. Columns beyond the border "
           "are reflected, with the border column itself. An even window has one column more "
           "before than after, and the larger of the two middle values.\n"
           "Equal values keep the order of their angles. NaN counts as larger than every number, "
           "so a single one becomes a finite value of the neighboring columns. -0 counts as 0 and "
           "becomes 0.\n"
           "A sinogram may be a permuted view of projections.",
    .reference =
        "N. T. Vo, R. C. Atwood, M. Drakopoulos, Superior techniques for eliminating ring "
        "artifacts in X-ray micro-tomography, Optics Express 26, 28396 (2018), algorithm 3",
    MB_OP_PLANNED_PARTS,
    .strides = MB_STRIDES_ROWS,
    .alias = 1u << MB_STRIPES_SINO,
    .split = mb_stack_split,
    .tolerance = 0, /* values of the sinogram */
};
