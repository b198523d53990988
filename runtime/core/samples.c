/*
** Samples of files that become elements of a wider type (samples.h).
*/
#include "core/samples.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

mb_samples_place mb_samples_place_of(const char *name, int rank, const int64_t *extents)
{
    mb_samples_place place = {.name = name, .rank = rank};
    for (int axis = 0; axis < rank; axis++) {
        place.extents[axis] = place.count[axis] = extents[axis];
        place.steps[axis] = 1;
    }
    return place;
}

size_t mb_samples_bytes(mb_samples samples, mb_dtype dtype)
{
    switch (samples) {
    case MB_SAMPLES_I8: return 1;
    case MB_SAMPLES_I16:
    case MB_SAMPLES_BITS: return 2;
    case MB_SAMPLES_U32: return 4;
    case MB_SAMPLES_I64:
    case MB_SAMPLES_U64: return 8;
    default: return mb_dtype_bytes(dtype);
    }
}

mb_dtype mb_samples_dtype(mb_samples samples, mb_dtype dtype)
{
    switch (samples) {
    case MB_SAMPLES_I8:
    case MB_SAMPLES_I16: return MB_I32;
    case MB_SAMPLES_U32:
    case MB_SAMPLES_I64:
    case MB_SAMPLES_U64: return MB_F64;
    case MB_SAMPLES_BITS: return MB_U16;
    default: return dtype;
    }
}

/* The absolute value of a signed number; 2^63 for the least one. */
static uint64_t magnitude(int64_t value)
{
    return value < 0 ? -(uint64_t)value : (uint64_t)value;
}

/* Has a float64 the whole number with this absolute value? It has what is at most 53 bits long,
** zeros at the end left out. */
static bool is_exact(uint64_t value)
{
    return value >> 53 == 0 || value >> __builtin_ctzll(value) >> 53 == 0;
}

/* The indices of sample `index` in the array; false where nobody wants that sample. */
static bool find(const mb_samples_place *place, int64_t index, int64_t *found)
{
    for (int axis = place->rank - 1; axis >= 0; axis--) {
        const int64_t here = index % place->extents[axis];
        index /= place->extents[axis];
        if (here < place->first[axis] || here - place->first[axis] >= place->count[axis])
            return false;
        found[axis] = place->origin[axis] + here * place->steps[axis];
    }
    return true;
}

/* The error of a sample that a float64 does not have; none where nobody wants it. */
static mb_status refuse(const char *value, const mb_samples_place *place, int64_t index)
{
    int64_t found[MB_MAX_RANK];
    char at[32 * MB_MAX_RANK] = "";
    size_t length = 0;
    if (!find(place, index, found))
        return MB_STATUS_OK;
    for (int axis = 0; axis < place->rank; axis++)
        length += (size_t)snprintf(at + length, sizeof at - length, "%s%" PRId64,
                                   axis > 0 ? ", " : "", found[axis]);
    const char *axes = place->rank == 3   ? "z, y, x = "
                       : place->rank == 2 ? "y, x = "
                       : place->rank == 1 ? "x = "
                                          : "the index ";
    return mb_fail(MB_STATUS_UNSUPPORTED, NULL,
                   "'%s' has the value %s%s%s%s%s: integers of 64 bits are read as float64, which "
                   "has every whole number up to 2^53, and does not have this one; save the image "
                   "as float32",
                   place->name, value, length > 0 ? ", at " : "", length > 0 ? axes : "", at,
                   length > 0 ? " from 0" : "");
}

/* `from` may be the end of `to`: each sample is read before its place is written. */
#define WIDEN(wide, narrow)                                                                        \
    do {                                                                                           \
        const char *at = from;                                                                     \
        for (int64_t i = 0; i < count; i++, at += sizeof(narrow)) {                                \
            narrow sample;                                                                         \
            memcpy(&sample, at, sizeof sample);                                                    \
            const wide value = (wide)sample;                                                       \
            memcpy((char *)to + i * (int64_t)sizeof value, &value, sizeof value);                  \
        }                                                                                          \
    } while (0)
/* The same where not every sample has a value of the wide type. */
#define WIDEN_EXACTLY(narrow, absolute, form)                                                      \
    do {                                                                                           \
        const char *at = from;                                                                     \
        for (int64_t i = 0; i < count; i++, at += sizeof(narrow)) {                                \
            narrow sample;                                                                         \
            memcpy(&sample, at, sizeof sample);                                                    \
            if (!is_exact(absolute(sample))) {                                                     \
                char text[32];                                                                     \
                snprintf(text, sizeof text, "%" form, sample);                                     \
                MB_TRY(refuse(text, place, index + i));                                            \
            }                                                                                      \
            const double value = (double)sample;                                                   \
            memcpy((char *)to + i * (int64_t)sizeof value, &value, sizeof value);                  \
        }                                                                                          \
    } while (0)

mb_status mb_samples_widen(mb_samples samples, void *to, const void *from, int64_t count,
                           const mb_samples_place *place, int64_t index)
{
    if (samples == MB_SAMPLES_I64)
        WIDEN_EXACTLY(int64_t, magnitude, PRId64);
    else if (samples == MB_SAMPLES_U64)
        WIDEN_EXACTLY(uint64_t, (uint64_t), PRIu64);
    else if (samples == MB_SAMPLES_I8)
        WIDEN(int32_t, int8_t);
    else if (samples == MB_SAMPLES_I16)
        WIDEN(int32_t, int16_t);
    else
        WIDEN(double, uint32_t);
    return MB_STATUS_OK;
}
