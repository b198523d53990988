/*
** Warping frames by a map of coordinates: what undistort, rotate and remap share, on the host and
** on CUDA. A map gives, for each pixel of the result, a place of the frame, in pixels from 0. The
** place is computed in double and rounded to 2^-24 px: whole places stay whole, so that the map
** that moves nothing changes nothing.
**
** Order 3 interpolates cubic B-splines through the pixels. Their coefficients come from a filter
** that is cut off at SPAN elements, where its weights are below 1e-7, so that a pixel depends on
** rows near it alone; they go to scratch, as many frames at a time as fill SCRATCH bytes, but
** LEAST at least.
**
** A call may have a part of the rows: `a` is rows `first` to `first` + rows - 1 of frames of
** `height` rows, the result `count` rows from `from`. The rule beyond the edges is that of the
** whole frame.
*/
#ifndef MB_OPS_WARP_H
#define MB_OPS_WARP_H

#include "core/both.h"
#include "ops/op.h"
#include <math.h>

/* What lies beyond the edges of a frame. */
enum { MB_WARP_CONSTANT, MB_WARP_EDGE, MB_WARP_REFLECT, MB_WARP_SYMMETRIC };
extern const char *const mb_warp_modes[];

typedef struct mb_warp_params {
    int64_t order; /* 1 or 3 */
    int mode;
    double value;   /* of mode constant, and where a map is NaN */
    mb_vector part; /* {first row, height}, rows from 1; absent: frames are whole */
    mb_vector rows; /* {first, last}, from 1; absent: those of `a` */
} mb_warp_params;

/* The arguments that all have; `warp` is the member of PARAMS. */
#define MB_WARP_ARGS                                                                               \
    MB_NUMBER("order", MB_ARG_INT, false, warp.order, 1, 3, 1, NULL,                               \
              "1: linear interpolation; 3: cubic splines"),                                        \
        MB_ENUM_ARG("mode", false, warp.mode, mb_warp_modes, MB_WARP_EDGE,                         \
                    "values beyond the edges, as in pad"),                                         \
        MB_NUMBER("value", MB_ARG_FLOAT, false, warp.value, MB_ANY, 0, NULL,                       \
                  "constant of mode constant"),                                                    \
        MB_NUMBER(                                                                                 \
            "part", MB_ARG_VECTOR, false, warp.part, 1, 1e9, 0, "px",                              \
            "where a is a part of frames: {row of the frame, from 1, that is its first, rows "     \
            "of the frame}")
/* The splits along frames and rows of an operator with MB_WARP_ROWS_ARG; `map_` is the map of the
** parameters p for frames of this shape. */
#define MB_WARP_SPLIT(map_)                                                                        \
    static mb_rows needs(const void *params, const mb_spec *arrays, int axis, mb_rows rows)        \
    {                                                                                              \
        const PARAMS *p = params;                                                                  \
        const mb_shape *shape = &arrays[0].shape;                                                  \
        const mb_warp_map map = map_;                                                              \
        return mb_warp_split_needs(&p->warp, &map, shape, axis, rows);                             \
    }                                                                                              \
    static void piece(const mb_spec *arrays, int axis, mb_op_piece *piece, void *params,           \
                      double *room)                                                                \
    {                                                                                              \
        mb_warp_split_piece(&((PARAMS *)params)->warp, &arrays[0].shape, axis, piece, room);       \
    }                                                                                              \
    static const mb_op_split split[] = {MB_SPLIT_AXIS(0, .needs = needs, .piece = piece),          \
                                        MB_SPLIT_AXIS(1, .needs = needs, .piece = piece,           \
                                                      .adapt = mb_whole_rows_adapt,                \
                                                      .when = "there are three axes"),             \
                                        MB_SPLIT_END};
#define MB_WARP_ROWS_ARG                                                                           \
    MB_NUMBER("rows", MB_ARG_VECTOR, false, warp.rows, 1, 1e9, 0, "px",                            \
              "{first, last}: rows of the frame to make, from 1; default those of a")

typedef enum mb_warp_kind {
    MB_WARP_RADIAL,  /* place = center + (1 + g(r)) (pixel - center) */
    MB_WARP_INVERSE, /* the inverse of it */
    MB_WARP_AFFINE,  /* place = pixel + linear (pixel - center) */
    MB_WARP_TABLE    /* place = a table's */
} mb_warp_kind;

enum { MB_WARP_FACTORS = 12, MB_WARP_SPAN = 12, MB_WARP_SCRATCH = 16 << 20, MB_WARP_LEAST = 4 };

typedef struct mb_warp_map {
    mb_warp_kind kind;
    double row, column;             /* center */
    double row_scale, column_scale; /* of a pixel, where r is computed */
    int count;                      /* of factors */
    double g[MB_WARP_FACTORS];      /* g(r) = sum g[i] r^i */
    double yy, yx, xy, xx;          /* affine: what is added */
} mb_warp_map;

typedef struct mb_warp_window {
    int64_t first, height; /* of `a` in the frame */
    int64_t from, count;   /* rows of the result in the frame */
    int64_t cols;          /* of the frame */
} mb_warp_window;

static inline mb_warp_window mb_warp_window_of(const mb_warp_params *p, const mb_shape *shape)
{
    mb_warp_window w;
    int64_t rows = shape->dims[shape->rank - 2];
    w.cols = shape->dims[shape->rank - 1];
    w.first = 0;
    w.height = rows;
    if (p->part.count) {
        w.first = (int64_t)p->part.values[0] - 1;
        w.height = (int64_t)p->part.values[1];
    }
    w.from = w.first;
    w.count = rows;
    if (p->rows.count) {
        w.from = (int64_t)p->rows.values[0] - 1;
        w.count = (int64_t)p->rows.values[1] - w.from;
    }
    return w;
}

/* g(r) and, with `slope`, its derivative. */
static MB_BOTH inline double mb_warp_g(const mb_warp_map *map, double r, double *slope)
{
    double g = 0, d = 0;
    for (int i = map->count - 1; i >= 0; i--) {
        if (slope)
            d = d * r + g;
        g = g * r + map->g[i];
    }
    if (slope)
        *slope = d;
    return g;
}

/* g of the inverse: with u (1 + g(u)) = r, that is u / r - 1. Newton's method; for r where the map
** is not invertible the place is anywhere. */
static MB_BOTH inline double mb_warp_inverse(const mb_warp_map *map, double r)
{
    double u = r, slope;
    for (int i = 0; i < 12; i++) {
        double g = mb_warp_g(map, u, &slope);
        u -= (u * (1 + g) - r) / (1 + g + u * slope);
    }
    return r > 0 ? (u - r) / r : 1 / (1 + map->g[0]) - 1;
}

/* The place of a pixel of the frame. `kind` is map->kind, known to the compiler. */
static MB_BOTH inline void mb_warp_at(mb_warp_kind kind, const mb_warp_map *map, double y, double x,
                                      double *to_y, double *to_x)
{
    const double dy = y - map->row, dx = x - map->column;
    if (kind == MB_WARP_AFFINE) {
        *to_y = y + (map->yx * dx + map->yy * dy);
        *to_x = x + (map->xx * dx + map->xy * dy);
    } else {
        const double v = dy * map->row_scale, u = dx * map->column_scale;
        const double r = sqrt(v * v + u * u);
        const double g =
            kind == MB_WARP_INVERSE ? mb_warp_inverse(map, r) : mb_warp_g(map, r, NULL);
        *to_y = y + g * dy;
        *to_x = x + g * dx;
    }
}

/* A place along one axis: between elements `low` and low + 1. */
typedef struct mb_warp_tap {
    int32_t low;
    float far;   /* the place less `low`, in [0, 1) */
    bool inside; /* false: the result is `value` */
} mb_warp_tap;

/* Of linear interpolation `low` is in the frame, and low + 1 too if far > 0. Splines are clamped
** in the same way unless the edge is halfway between two pixels: there `low` may be -1 and `far`
** positive at the last pixel. */
static MB_BOTH inline mb_warp_tap mb_warp_tap_at(int mode, bool cubic, double place, int64_t extent)
{
    const double last = (double)(extent - 1), margin = cubic && mode == MB_WARP_SYMMETRIC ? 0.5 : 0;
    double c = rint(place * 16777216.0) * (1 / 16777216.0), low;
    mb_warp_tap tap;
    tap.inside = mode == MB_WARP_CONSTANT ? c >= 0 && c <= last : c == c;
    if (mode == MB_WARP_REFLECT) { /* a triangle wave of period 2 last */
        const double period = last > 0 ? 2 * last : 1;
        c = fabs(c);
        c -= period * floor(c / period);
        c = c > last ? period - c : c;
    } else if (mode == MB_WARP_SYMMETRIC) { /* the same about half pixels */
        const double period = 2 * last + 2;
        c = fabs(c + 0.5);
        c -= period * floor(c / period);
        c = (c > last + 1 ? period - c : c) - 0.5;
    }
    c = c > -margin ? c : -margin; /* NaN too */
    c = c < last + margin ? c : last + margin;
    low = floor(c);
    tap.low = (int32_t)low;
    tap.far = (float)(c - low);
    return tap;
}

/* The element that stands for one beyond the edge, for splines: constant and edge take them as
** reflect does. */
static MB_BOTH inline int32_t mb_warp_fold(int mode, int32_t i, int32_t extent)
{
    const int32_t half = mode == MB_WARP_SYMMETRIC, period = 2 * (extent - 1 + half);
    if (i >= 0 && i < extent)
        return i;
    if (period == 0)
        return 0;
    i = i < 0 ? -i - half : i; /* even about the first edge */
    i %= period;
    return i < extent ? i : period - i - half;
}

/* Weights of elements low - 1 to low + 2. */
static MB_BOTH inline void mb_warp_spline(float far, float w[4])
{
    const float near = 1 - far;
    w[0] = near * near * near * (1.0f / 6);
    w[1] = 2.0f / 3 - far * far * (1 - 0.5f * far);
    w[2] = 2.0f / 3 - near * near * (1 - 0.5f * near);
    w[3] = far * far * far * (1.0f / 6);
}

/* Whole weights leave values as they are, infinite ones too. */
static MB_BOTH inline float mb_warp_mix(float near, float far, float weight)
{
    return weight > 0 ? near + weight * (far - near) : near;
}

/* Weights of the filter that makes coefficients: of an element, and of its neighbors on each side.
** Their sum is 1. */
static inline void mb_warp_filter(float weights[MB_WARP_SPAN + 1])
{
    const double pole = sqrt(3.0) - 2;
    double power = 1, sum = -1;
    for (int i = 0; i <= MB_WARP_SPAN; i++, power *= pole)
        sum += 2 * power;
    power = 1;
    for (int i = 0; i <= MB_WARP_SPAN; i++, power *= pole)
        weights[i] = (float)(power / sum);
}

/* Frames whose coefficients are in scratch at a time: some, for which a place is computed once. */
static inline int64_t mb_warp_group(const mb_shape *shape)
{
    const int64_t bytes = 4 * shape->dims[shape->rank - 2] * shape->dims[shape->rank - 1],
                  frames = shape->rank == 3 ? shape->dims[0] : 1,
                  many = bytes > 0 ? MB_WARP_SCRATCH / bytes : 1,
                  most = many > MB_WARP_LEAST ? many : MB_WARP_LEAST;
    return frames < most ? frames : most;
}

enum { MB_WARP_COEFFICIENTS, MB_WARP_LINES }; /* slots, of order 3 */

/* ---- host ---- */

mb_status mb_warp_check(const mb_warp_params *p, const mb_shape *shape);
/* The rows of the frame, 0-based, that rows of the result need; never none. */
mb_rows mb_warp_needs(const mb_warp_params *p, const mb_warp_map *map, int64_t height, int64_t cols,
                      mb_rows rows);
/* Fails unless `a` has the rows that the result needs. */
mb_status mb_warp_check_part(const mb_warp_params *p, const mb_warp_map *map,
                             const mb_shape *shape);
/* For mb_op_split: `needs` and `piece` of an operator whose places follow from its
** parameters, with frames of this shape. */
mb_rows mb_warp_split_needs(const mb_warp_params *p, const mb_warp_map *map, const mb_shape *shape,
                            int axis, mb_rows rows);
void mb_warp_split_piece(mb_warp_params *p, const mb_shape *shape, int axis, mb_op_piece *piece,
                         double *room);
/* Declares the slots. */
void mb_warp_plan(const mb_warp_params *p, const mb_spec *a, mb_planner *planner);
/* All frames. `rows` and `columns` are the tables of kind TABLE, else NULL. */
mb_status mb_warp_run(const mb_op_call *call, const mb_warp_params *p, const mb_warp_map *map,
                      const mb_array *rows, const mb_array *columns);

#endif
