/*
** Filters of profiles on the host: blocks of columns, for which all taps are summed, the smallest
** first.
*/
#include "core/multiversion.h"
#include "ops/stripes/profile_filter.h"
#include <string.h>

#define BLOCK 64 /* columns */

int64_t mb_profile_filter_room(const mb_profile_filter *f)
{
    return mb_modes_up(f->columns, BLOCK) * BLOCK + 2 * f->reach;
}

uint64_t mb_profile_filter_rows_bytes(const mb_profile_filter *f, const mb_device *device)
{
    return mb_modes_on_cuda(device) ? 0
                                    : mb_bytes_mul(2 * (uint64_t)mb_profile_filter_room(f),
                                                   sizeof(float) * (uint64_t)device->facts.threads);
}

void mb_profile_filter_extend(const mb_profile_filter *f, const float *row, float *extended)
{
    int64_t used = f->columns + 2 * f->reach, room = mb_profile_filter_room(f);
    for (int64_t i = 0; i < f->reach; i++)
        extended[i] = row[mb_profile_column(f, f->left - f->reach + i)];
    memcpy(extended + f->reach, row, sizeof(float) * (size_t)f->columns);
    for (int64_t i = f->reach + f->columns; i < used; i++)
        extended[i] = row[mb_profile_column(f, f->left - f->reach + i)];
    memset(extended + used, 0, sizeof(float) * (size_t)(room - used));
}

MB_MULTIVERSION
static void even_taps(const float *restrict at, const float *taps, int64_t reach,
                      float *restrict sum)
{
    float own[BLOCK] = {0};
    for (int64_t d = reach; d > 0; d--)
        for (int c = 0; c < BLOCK; c++)
            own[c] += taps[d] * (at[c - d] + at[c + d]);
    for (int c = 0; c < BLOCK; c++)
        sum[c] = own[c] + taps[0] * at[c];
}

MB_MULTIVERSION
static void odd_taps(const float *restrict at, const float *taps, int64_t reach,
                     float *restrict sum)
{
    float own[BLOCK] = {0};
    for (int64_t d = reach; d > 0; d--)
        for (int c = 0; c < BLOCK; c++)
            own[c] += taps[d] * (at[c - d] - at[c + d]);
    for (int c = 0; c < BLOCK; c++)
        sum[c] += own[c];
}

void mb_profile_filter_run(const mb_profile_filter *f, const float *extended, const float *even,
                           const float *other, const float *odd, float *to)
{
    for (int64_t c = 0; c < f->columns; c += BLOCK) {
        float sum[BLOCK];
        int64_t left = f->columns - c;
        even_taps(extended + f->reach + c, even, f->reach, sum);
        if (other)
            odd_taps(other + f->reach + c, odd, f->reach, sum);
        memcpy(to + c, sum, sizeof(float) * (size_t)(left < BLOCK ? left : BLOCK));
    }
}
