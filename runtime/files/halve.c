/*
** Slices of half the size (halve.h): some rows of both slices at a time.
*/
#include "files/halve.h"

#include <stdlib.h>

/* What a part of both slices takes in memory, about. */
#define PART_BYTES (INT64_C(1) << 18)

/* Four rows of which one is made: two of each slice. */
typedef struct four_rows {
    const void *row[4];
    int64_t columns;
    void *out;
} four_rows;

#define HALVE(name, type, wide, mean)                                                              \
    static void name(const four_rows *r)                                                           \
    {                                                                                              \
        const type *a = r->row[0], *b = r->row[1], *c = r->row[2], *d = r->row[3];                 \
        type *out = r->out;                                                                        \
        for (int64_t i = 0; i < r->columns; i += 2) {                                              \
            const int64_t k = i + 1 < r->columns ? i + 1 : i;                                      \
            const wide sum = ((wide)WIDE(a[i]) + WIDE(a[k])) + ((wide)WIDE(b[i]) + WIDE(b[k])) +   \
                             (((wide)WIDE(c[i]) + WIDE(c[k])) + ((wide)WIDE(d[i]) + WIDE(d[k])));  \
            out[i / 2] = mean;                                                                     \
        }                                                                                          \
    }

#define WIDE(value) (value)
HALVE(halve_u8, uint8_t, uint32_t, (uint8_t)((sum + 4) >> 3))
HALVE(halve_u16, uint16_t, uint32_t, (uint16_t)((sum + 4) >> 3))
HALVE(halve_f32, float, float, sum * 0.125f)
#undef WIDE
#define WIDE(value) mb_half_to_float(value)
HALVE(halve_f16, uint16_t, float, mb_half_from_float(sum * 0.125f))
#undef WIDE

typedef void (*halve_fn)(const four_rows *r);

static halve_fn function_for(mb_dtype dtype)
{
    switch (dtype) {
    case MB_U8: return halve_u8;
    case MB_U16: return halve_u16;
    case MB_F16: return halve_f16;
    case MB_F32: return halve_f32;
    default: return NULL;
    }
}

/* The work on a pair of slices. `memory` has room for the rows of a part and what they become. */
typedef struct halving {
    const mb_file_slice *in;
    mb_file_slice out;
    int64_t rows, columns;
    uint64_t element;
    halve_fn fn;
    char *memory;
} halving;

/* Makes rows `first` to `last` - 1 of the result. */
static mb_status halve_part(const halving *h, int64_t first, int64_t last)
{
    const uint64_t line = (uint64_t)h->columns * h->element;
    const uint64_t short_line = (uint64_t)((h->columns + 1) / 2) * h->element;
    const int64_t end = 2 * last < h->rows ? 2 * last : h->rows, count = end - 2 * first;
    const uint64_t bytes = (uint64_t)count * line;
    char *const made = h->memory + 2 * bytes;
    four_rows r = {.columns = h->columns};
    for (int i = 0; i < 2; i++)
        MB_TRY(mb_rawfile_get(h->in[i].file, h->in[i].offset + 2 * (uint64_t)first * line,
                              h->memory + (uint64_t)i * bytes, bytes));
    for (int64_t row = 0; row < last - first; row++) {
        const int64_t next = 2 * row + 1 < count ? 2 * row + 1 : 2 * row;
        for (int i = 0; i < 2; i++) {
            const char *slice = h->memory + (uint64_t)i * bytes;
            r.row[2 * i] = slice + 2 * (uint64_t)row * line;
            r.row[2 * i + 1] = slice + (uint64_t)next * line;
        }
        r.out = made + (uint64_t)row * short_line;
        h->fn(&r);
    }
    return mb_rawfile_put(h->out.file, h->out.offset + (uint64_t)first * short_line, made,
                          (uint64_t)(last - first) * short_line);
}

mb_status mb_halve_slices(const mb_file_slice *out, const mb_file_slice in[2], int64_t rows,
                          int64_t columns, mb_dtype dtype)
{
    halving h = {.in = in,
                 .out = *out,
                 .rows = rows,
                 .columns = columns,
                 .element = mb_dtype_bytes(dtype),
                 .fn = function_for(dtype)};
    if (!h.fn || rows < 1 || columns < 1 || columns > INT64_MAX / 64 || rows > INT64_MAX / 64)
        return mb_fail(MB_STATUS_ARGUMENT, "dtype", "slices of this type or size have no half");
    const int64_t both = 4 * columns * (int64_t)h.element; /* and an eighth of it for the result */
    const int64_t step = both < PART_BYTES ? PART_BYTES / both : 1, half = (rows + 1) / 2;
    h.memory = malloc((size_t)(step * (both + columns * (int64_t)h.element + 16)));
    if (!h.memory)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left for rows of a slice");
    mb_status status = MB_STATUS_OK;
    for (int64_t first = 0; first < half && status == MB_STATUS_OK; first += step) {
        status = mb_cancel_check();
        if (status == MB_STATUS_OK)
            status = halve_part(&h, first, first + step < half ? first + step : half);
    }
    free(h.memory);
    return status;
}
