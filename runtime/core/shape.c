/*
** Shapes and checked size arithmetic.
*/
#include "core/shape.h"
#include <stdio.h>
#include <string.h>

bool mb_mul_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    uint64_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *out = product;
    return true;
}

bool mb_add_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    uint64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return false;
    *out = sum;
    return true;
}

uint64_t mb_bytes_mul(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

uint64_t mb_bytes_add(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static inline uint64_t count_elements(const mb_shape *shape)
{
    uint64_t count = 1;
    bool empty = false;
    for (int i = 0; i < shape->rank; i++) {
        empty = empty || shape->dims[i] == 0;
        if (__builtin_mul_overflow(count, (uint64_t)shape->dims[i], &count))
            count = UINT64_MAX;
    }
    return empty ? 0 : count;
}

uint64_t mb_shape_elements(const mb_shape *shape)
{
    return count_elements(shape);
}

#define MOST_ELEMENTS (UINT64_C(1) << 62)

static mb_status fail_count(const mb_shape *shape)
{
    char text[128];
    return mb_fail(MB_STATUS_SHAPE, NULL,
                   "%s elements are more than any memory holds; check the extents",
                   mb_shape_format(shape, text, sizeof text));
}

mb_status mb_shape_count(const mb_shape *shape, int64_t *count)
{
    const uint64_t elements = count_elements(shape);
    if (elements > MOST_ELEMENTS)
        return fail_count(shape);
    *count = (int64_t)elements;
    return MB_STATUS_OK;
}

mb_status mb_shape_bytes(const mb_shape *shape, mb_dtype dtype, uint64_t *bytes)
{
    const uint64_t count = count_elements(shape);
    if (count > MOST_ELEMENTS)
        return fail_count(shape);
    if (__builtin_mul_overflow(count, mb_dtype_bytes(dtype), bytes) || *bytes > INT64_MAX) {
        char text[128];
        return mb_fail(MB_STATUS_SHAPE, NULL, "%s of %s are more bytes than can be addressed",
                       mb_shape_format(shape, text, sizeof text), mb_dtype_name(dtype));
    }
    return MB_STATUS_OK;
}

bool mb_shape_equal(const mb_shape *a, const mb_shape *b)
{
    return a->rank == b->rank && !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof a->dims[0]);
}

mb_shape mb_shape_of(int rank, const int64_t *dims)
{
    mb_shape shape = {.rank = rank};
    for (int i = 0; i < rank; i++)
        shape.dims[i] = dims[i];
    return shape;
}

void mb_shape_strides(const mb_shape *shape, int64_t *strides)
{
    int64_t stride = 1;
    for (int i = shape->rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= shape->dims[i] > 0 ? shape->dims[i] : 1;
    }
}

char *mb_shape_format(const mb_shape *shape, char *buffer, size_t bytes)
{
    if (shape->rank == 0) {
        snprintf(buffer, bytes, "scalar");
        return buffer;
    }
    size_t at = 0;
    for (int i = 0; i < shape->rank && at < bytes; i++)
        at += (size_t)snprintf(buffer + at, bytes - at, i ? " x %lld" : "%lld",
                               (long long)shape->dims[i]);
    return buffer;
}

char *mb_bytes_format_like(uint64_t bytes, uint64_t like, char *buffer, size_t size)
{
    static const char *const binary[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    static const char *const decimal[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    /* whole megabytes are what somebody has typed: 8G is 8 GB */
    const bool typed = like > 0 && like % 1000000 == 0 && like % ((uint64_t)1 << 20) != 0;
    const double base = typed ? 1000 : 1024;
    int unit = 0;
    double value = (double)bytes;
    while (value >= base && unit < 6) {
        value /= base;
        unit++;
    }
    if (unit == 0)
        snprintf(buffer, size, "%llu B", (unsigned long long)bytes);
    else
        snprintf(buffer, size, "%.4g %s", value, typed ? decimal[unit] : binary[unit]);
    return buffer;
}

char *mb_bytes_format(uint64_t bytes, char *buffer, size_t size)
{
    return mb_bytes_format_like(bytes, bytes, buffer, size);
}
