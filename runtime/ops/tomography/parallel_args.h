/*
** Arguments of the operators of parallel beams: project, backproject, fourier_reconstruct,
** fourier_project and ramp_filter.
*/
#ifndef MB_OPS_PARALLEL_ARGS_H
#define MB_OPS_PARALLEL_ARGS_H

#include "ops/op_args.h"

#define MB_PARALLEL_SINO_ARG                                                                       \
    MB_ARRAY_IN("sino", MB_BIT(MB_F32), 2, 3,                                                      \
                "sinograms (row, angle, column), or one (angle, column); a permuted view of "      \
                "projections is accepted")

#define MB_PARALLEL_DETECTOR_ARGS                                                                  \
    MB_FLOAT(center, -MB_FARTHEST_PX, MB_FARTHEST_PX, NAN, "px",                                   \
             "rotation axis on the detector, 0-based pixel centers; default (cols - 1) / 2"),      \
        MB_VECTOR_OPTION(shifts, -MB_FARTHEST_PX, MB_FARTHEST_PX, "px",                            \
                         "added to the detector coordinate, one per angle")

/* The slice: `largest` is the largest extent. */
#define MB_PARALLEL_SLICE_ARGS(largest)                                                            \
    MB_VECTOR_OPTION(size, 1, largest, "px", "full slice {ny, nx} or n; default cols x cols"),     \
        MB_VECTOR_OPTION(roi, 0, largest, "px",                                                    \
                         "part of the slice to make, {y0, y1, x0, x1}, 0-based; y1 and x1 are "    \
                         "excluded; default the full slice"),                                      \
        MB_FLOAT(                                                                                  \
            circle, 0, 10, 0, "half-width",                                                        \
            "radius of the circular mask as a fraction of half the smaller side; 0: no mask"),     \
        MB_FLOAT(circle_value, MB_ANY, 0, NULL, "value outside the mask"),                         \
        MB_FLOAT(scale, MB_ANY, NAN, NULL, "factor on the sum over angles; default pi / angles")

/* Of fourier_reconstruct and fourier_project. */
#define MB_FOURIER_PERIOD_ARG                                                                      \
    MB_INT(period, 0, 1 << 22, 0, "px",                                                            \
           "length after which rows repeat, even, at least the columns; 0: so long that no pixel " \
           "sees a repetition")

/* Of project and backproject. */
#define MB_PARALLEL_METHOD_ARG                                                                     \
    MB_ENUM(method, ((const char *const[]){"pixel", "distance", NULL}), MB_PARALLEL_PIXEL,         \
            "how the two bins beside u share a pixel: linearly, or by overlap with its shadow")

/* The ramp filter: `widest` is the largest padded width. */
#define MB_PARALLEL_FILTER_ARGS(widest)                                                            \
    MB_ENUM(filter,                                                                                \
            ((const char *const[]){"ram-lak", "shepp-logan", "cosine", "hamming", "hann", "tukey", \
                                   "lanczos", "parzen", "none", NULL}),                            \
            MB_RAMP_RAM_LAK, "window that multiplies the ramp; none: no ramp either"),             \
        MB_FLOAT(                                                                                  \
            cutoff, 1e-6, 4, 1, "Nyquist frequency",                                               \
            "where the window ends; the response is 0 above; more than 1: a part of the window"),  \
        MB_ENUM(padding, ((const char *const[]){"zero", "edge", NULL}), MB_RAMP_PAD_ZERO,          \
                "what rows are padded with"),                                                      \
        MB_INT(pad_width, 0, widest, 0, "px",                                                      \
               "padded width, a multiple of 4, at least the width; 0: the smallest power of two "  \
               "that "                                                                             \
               "is at least 2 * width")

#endif
