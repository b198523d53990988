/*
** The grid of normal_kernel, ramp_preconditioner and normal_operator: options and checks.
*/
#ifndef MB_OPS_NORMAL_GRID_H
#define MB_OPS_NORMAL_GRID_H

#include "ops/iterative/op_normal_kernel.h"

#define MB_NORMAL_LARGEST (1 << 20)

#define MB_NORMAL_SIZE_ARG                                                                         \
    MB_VECTOR_OPTION(size, 1, MB_NORMAL_LARGEST, "px",                                             \
                     "slice {ny, nx} or n that the grid is for; default cols x cols")
#define MB_NORMAL_PADDED_ARG                                                                       \
    MB_VECTOR_OPTION(padded, 2, 2 * MB_NORMAL_LARGEST, "px",                                       \
                     "the grid {py, px} or p instead: even products of 2, 3, 5 and 7, at least "   \
                     "twice the slice")

static inline bool mb_normal_is_smooth(int64_t n)
{
    for (int64_t p = 2; p <= 7; p++)
        while (n % p == 0)
            n /= p;
    return n == 1;
}

/* Checks the options, and gives the grid {py, px}. */
static inline mb_status mb_normal_check_grid(const mb_vector *size, const mb_vector *padded,
                                             int64_t cols, int64_t grid[2])
{
    if (size->count)
        MB_TRY(mb_check_axes("size", size, 2, true));
    if (padded->count)
        MB_TRY(mb_check_axes("padded", padded, 2, true));
    MB_TRY(mb_check_whole("size", size));
    MB_TRY(mb_check_whole("padded", padded));
    mb_normal_grid(size, padded, cols, grid);
    for (int i = 0; i < 2; i++) {
        const int64_t n = size->count ? mb_normal_extent(size, i) : cols;
        if (grid[i] < 2 * n || grid[i] % 2 || !mb_normal_is_smooth(grid[i]))
            return mb_fail(MB_STATUS_ARGUMENT, "padded",
                           "padded is %lld for slices of %lld %s; give an even product of 2, 3, 5 "
                           "and 7 that is at least %lld",
                           (long long)grid[i], (long long)n, i ? "columns" : "rows",
                           (long long)(2 * n));
    }
    return MB_STATUS_OK;
}

#endif
