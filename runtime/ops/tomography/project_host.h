/*
** The host kernel of project, and what its plan must know: the table of rays and a thread's strip
** of the slices.
*/
#ifndef MB_OPS_PROJECT_HOST_H
#define MB_OPS_PROJECT_HOST_H

#include "core/shape.h"
#include "ops/tomography/op_project.h"

enum {
    MB_PROJECT_LINES = 16, /* lines of a strip; also the bins that go together */
    MB_PROJECT_WIDE = 4,   /* slices that share positions and weights */
    MB_PROJECT_EDGE = 32   /* zeros on either side of a line, as many as a register table has */
};

/* A ray through bin 0, and how its crossing of the lines changes from bin to bin and from line to
** line. Crossings are in units of 2^-24 px. */
typedef struct mb_project_path {
    int64_t index;                    /* of the angle, in the caller's order */
    double start, inverse, slope;     /* first place within reach: start + bin * inverse + line *
                                      ** slope */
    int32_t bins[MB_PROJECT_LINES];   /* inverse times 0 ... 15 */
    int32_t drifts[MB_PROJECT_LINES]; /* slope times 0 ... 15 */
    int32_t least, most;              /* of bins */
    float cross;                      /* bins from a place to the next, without sign */
    bool by_rows;                     /* lines are image rows */
} mb_project_path;

/* Floats from a line of a strip to the next: an odd number of cache lines, so that lines do not
** compete for places in the cache. */
static inline int64_t mb_project_line(int64_t across)
{
    const int64_t units = (across + 2 * MB_PROJECT_EDGE + 15) / 16;
    return (units | 1) * 16;
}

/* Slices that a thread treats together, 4 or 1: no more than its second cache holds. */
static inline int mb_project_together(const mb_parallel_geometry *g)
{
    const int64_t longest = g->nx > g->ny ? g->nx : g->ny;
    return g->rows > 1 && mb_project_line(longest) <= 4096 ? MB_PROJECT_WIDE : 1;
}

/* Bytes of a thread's strip. */
static inline uint64_t mb_project_strip_bytes(const mb_parallel_geometry *g)
{
    const int64_t longest = g->nx > g->ny ? g->nx : g->ny;
    return 4 * (uint64_t)mb_project_line(longest) * MB_PROJECT_LINES *
           (uint64_t)mb_project_together(g);
}

mb_status mb_project_host(const mb_op_call *call);

#endif
