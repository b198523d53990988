/*
** overlap_metric: what the host and the CUDA kernel share. Arrays: first (in), second (in), result
** (out). No slots.
**
** The window of the second image, `window` columns at its end, is compared with every window of the
** first one: 1 - r, r their correlation over rows and columns. With `normalize`, each row of the
** first one's window is scaled to the mean magnitude of the second one's. With `blend`, the two are
** also compared with their blend, a ramp from the first to the second image over the window, and
** the metric is the mean of the three.
*/
#ifndef MB_OPS_OP_OVERLAP_METRIC_H
#define MB_OPS_OP_OVERLAP_METRIC_H

#include "core/both.h"
#include "ops/op.h"
#include <math.h>

typedef struct mb_overlap_metric_params {
    int64_t window;
    int side;
    bool mirror, normalize, blend;
} mb_overlap_metric_params;

enum { MB_OVERLAP_METRIC_FIRST, MB_OVERLAP_METRIC_SECOND, MB_OVERLAP_METRIC_RESULT };
enum { MB_OVERLAP_LEFT, MB_OVERLAP_RIGHT };

/* What a window needs of the second image: column i of the window is at i * step from `start`. */
typedef struct mb_overlap_window {
    int64_t start, step;
} mb_overlap_window;

/* `side` says where the second image meets the first: on the right with its first columns, on the
** left with its last ones. A mirrored image has its columns in the other direction. */
static inline mb_overlap_window mb_overlap_metric_window(const mb_overlap_metric_params *p,
                                                         int64_t width)
{
    const int64_t start = p->side == MB_OVERLAP_RIGHT ? 0 : width - p->window;
    mb_overlap_window window = {start, 1};
    if (p->mirror) {
        window.start = width - 1 - start;
        window.step = -1;
    }
    return window;
}

/* Weight of the first image in the blend, at column i of the window. */
MB_BOTH static inline double mb_overlap_metric_ramp(int64_t i, int64_t window, int side)
{
    const double down = window > 1 ? 1.0 - (double)i / (double)(window - 1) : 1.0;
    return side == MB_OVERLAP_RIGHT ? down : 1.0 - down;
}

/* Sums over a window: of the first image a, the second one b and the blend c. */
typedef struct mb_overlap_sums {
    double a, b, c, aa, bb, cc, ab, ac, bc;
} mb_overlap_sums;

MB_BOTH static inline double mb_overlap_metric_apart(double n, double a, double b, double aa,
                                                     double bb, double ab)
{
    const double va = aa - a * a / n, vb = bb - b * b / n;
    return fabs(1.0 - (ab - a * b / n) / sqrt(va * vb));
}

MB_BOTH static inline float mb_overlap_metric_of(const mb_overlap_sums *s, double n, bool blend)
{
    const double both = mb_overlap_metric_apart(n, s->a, s->b, s->aa, s->bb, s->ab);
    if (!blend)
        return (float)both;
    return (float)((both + mb_overlap_metric_apart(n, s->a, s->c, s->aa, s->cc, s->ac) +
                    mb_overlap_metric_apart(n, s->b, s->c, s->bb, s->cc, s->bc)) /
                   3.0);
}

#endif
