/*
** The pixels of a TIFF page (tiff_segments.h): decoders, predictors, and the walk over segments.
** Segments are decoded by several threads, each with a part of the scratch: the packed bytes, and
** behind them a decoded segment. The failure of the first segment that has one is reported, whatever
** the number of threads.
*/
#include "files/tiff_segments.h"

#include "files/codecs/chunk_codecs.h"
#include "files/inputs/unchecked.h"
#include <omp.h>
#include <stdio.h>
#include <string.h>

/* ---- decoders: return how many bytes came out; a damaged input gives fewer than asked for ---- */

static size_t unpack_bits(const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes)
{
    size_t at = 0, done = 0;
    while (at < in_bytes && done < out_bytes) {
        const int byte = in[at++], code = byte < 128 ? byte : byte - 256;
        if (code == -128)
            continue;
        size_t n = (size_t)(code < 0 ? 1 - code : code + 1);
        if (n > out_bytes - done)
            n = out_bytes - done;
        if (code < 0) {
            if (at == in_bytes)
                break;
            memset(out + done, in[at++], n);
        } else {
            if (n > in_bytes - at)
                n = in_bytes - at;
            memcpy(out + done, in + at, n);
            at += n;
        }
        done += n;
    }
    return done;
}

/*
** LZW as in TIFF 6.0, section 13: codes of 9 to 12 bits, most significant bit first, widened one
** code early; 256 clears, 257 ends. An entry is a string that the output already holds: its place
** and its length, so the table needs no bytes of its own.
*/
#define LZW_CODES 4096

typedef struct lzw_entry {
    size_t at;
    uint32_t length;
} lzw_entry;

static size_t unpack_lzw(const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes)
{
    lzw_entry table[LZW_CODES];
    uint32_t bits = 0, held = 0, width = 9, next = 258, old = 256;
    size_t at = 0, done = 0, old_at = 0;
    uint32_t old_length = 0;
    while (done < out_bytes) {
        while (held < width && at < in_bytes) {
            bits = bits << 8 | in[at++];
            held += 8;
        }
        if (held < width)
            break;
        const uint32_t code = bits >> (held - width) & ((1u << width) - 1);
        held -= width;
        if (code == 257)
            break;
        if (code == 256) {
            width = 9;
            next = 258;
            old = 256;
            continue;
        }
        const size_t start = done;
        if (old != 256 && next < LZW_CODES) {
            /* The string before this one and the first byte of this one, which comes next. */
            table[next].at = old_at;
            table[next].length = old_length + 1;
            next++;
        }
        if (code < 256) {
            out[done++] = (uint8_t)code;
        } else {
            if (code >= next || code < 258)
                break;
            size_t n = table[code].length, from = table[code].at;
            if (n > out_bytes - done)
                n = out_bytes - done;
            for (size_t i = 0; i < n; i++) /* may overlap what it writes: the newest entry does */
                out[done + i] = out[from + i];
            done += n;
        }
        old = code;
        old_at = start;
        old_length = (uint32_t)(done - start);
        width = next >= 2047 ? 12 : next >= 1023 ? 11 : next >= 511 ? 10 : 9;
    }
    return done;
}

/* ---- predictors, in place, on rows of `columns` samples ---- */

#define ADD_UP(type)                                                                               \
    do {                                                                                           \
        type *v = row;                                                                             \
        for (int64_t i = 1; i < columns; i++)                                                      \
            v[i] = (type)(v[i] + v[i - 1]);                                                        \
    } while (0)
static void add_differences(void *row, int64_t columns, size_t element)
{
    if (element == 1)
        ADD_UP(uint8_t);
    else if (element == 2)
        ADD_UP(uint16_t);
    else if (element == 4)
        ADD_UP(uint32_t);
    else
        ADD_UP(uint64_t);
}

/* Adobe Technical Note 3: differences of bytes; the most significant bytes of all samples first. */
static void join_planes(uint8_t *row, int64_t columns, size_t element, uint8_t *spare)
{
    const int64_t bytes = columns * (int64_t)element;
    for (int64_t i = 1; i < bytes; i++)
        row[i] = (uint8_t)(row[i] + row[i - 1]);
    for (int64_t i = 0; i < columns; i++)
        for (size_t b = 0; b < element; b++)
            spare[i * (int64_t)element + (int64_t)(element - 1 - b)] =
                row[(int64_t)b * columns + i];
    memcpy(row, spare, (size_t)bytes);
}

/* ---- samples that are no element type ---- */

/* Bytes of so many samples from the beginning of a row on. */
static uint64_t stored_bytes(const mb_tiff_page *page, size_t element, int64_t samples)
{
    if (page->samples != MB_SAMPLES_BITS)
        return mb_bytes_mul((uint64_t)samples, element);
    return mb_bytes_add(mb_bytes_mul((uint64_t)samples, (uint64_t)page->bits), 7) / 8;
}

/* Samples `first` ... of a row of bits, as u16. */
static void unpack_samples(const uint8_t *row, int64_t bits, int64_t first, int64_t count,
                           uint16_t *to)
{
    const uint8_t *from = row + first * bits / 8;
    const uint32_t mask = (1u << bits) - 1;
    int64_t held = 8 - first * bits % 8;
    uint32_t window = *from++;
    for (int64_t i = 0; i < count; i++) {
        while (held < bits) {
            window = window << 8 | *from++;
            held += 8;
        }
        held -= bits;
        to[i] = (uint16_t)(window >> held & mask);
    }
}

/* ---- segments ---- */

static bool is_plain(const mb_tiff_page *page)
{
    return page->compression == MB_TIFF_PLAIN && page->predictor == 1 &&
           page->samples != MB_SAMPLES_BITS;
}

/* The parts of a thread's scratch: packed bytes, a decoded segment, and a row for the predictor; or
** room that stays free, because libblosc takes as much by itself while it decodes. */
static void parts_of(const mb_tiff_page *page, size_t element, uint64_t *packed, uint64_t *decoded,
                     uint64_t *row)
{
    *packed = 0;
    for (int64_t i = 0; i < page->count; i++)
        if (page->bytes[i] > *packed)
            *packed = page->bytes[i];
    *row = stored_bytes(page, element, page->segment_columns);
    *decoded = mb_bytes_mul((uint64_t)page->segment_rows, *row);
    *packed = mb_bytes_add(*packed, 15) & ~(uint64_t)15;
    *decoded = mb_bytes_add(*decoded, 15) & ~(uint64_t)15;
    *row = page->predictor == 3 ? (mb_bytes_add(*row, 15) & ~(uint64_t)15) : 0;
    if (page->compression == MB_CHUNK_BLOSC)
        *row = mb_bytes_add(mb_blosc_own_bytes(*decoded), 15) & ~(uint64_t)15;
}

uint64_t mb_tiff_scratch_bytes(const mb_tiff_page *page, mb_dtype dtype)
{
    uint64_t packed, decoded, row;
    if (is_plain(page))
        return 0;
    parts_of(page, mb_samples_bytes(page->samples, dtype), &packed, &decoded, &row);
    return mb_bytes_add(mb_bytes_add(packed, decoded), row);
}

/* A page with a name is a chunk of the array of this name. */
static mb_status incomplete(const mb_rawfile *file, const mb_tiff_page *page, int64_t segment)
{
    if (page->place && page->place->name)
        return mb_fail(MB_STATUS_IO, NULL,
                       "'%s' is truncated or damaged: a chunk of '%s' is incomplete, or its "
                       "checksum is wrong",
                       mb_rawfile_path(file), page->place->name);
    return mb_fail(MB_STATUS_IO, NULL,
                   "'%s' is truncated or damaged: strip or tile %lld of a page is incomplete, or "
                   "its checksum is wrong",
                   mb_rawfile_path(file), (long long)segment + 1);
}

/* The extent of a segment is not all in the file, or has fewer bytes than its rows take (`wanted`,
** or 0). */
static mb_status too_short(const mb_rawfile *file, const mb_tiff_page *page, int64_t segment,
                           uint64_t wanted)
{
    char what[300], which[200];
    if (page->place && page->place->name)
        snprintf(which, sizeof which, "a chunk of '%.150s'", page->place->name);
    else
        snprintf(which, sizeof which, "strip or tile %lld of a page", (long long)segment + 1);
    snprintf(what, sizeof what, "%s has %llu bytes at offset %llu", which,
             (unsigned long long)page->bytes[segment], (unsigned long long)page->offsets[segment]);
    if (wanted > 0)
        return mb_fail(MB_STATUS_IO, NULL,
                       "'%s' is truncated or damaged: %s, and its rows take %llu bytes",
                       mb_rawfile_path(file), what, (unsigned long long)wanted);
    return mb_fail(MB_STATUS_IO, NULL,
                   "'%s' is truncated or damaged: %s, and the file has %llu bytes",
                   mb_rawfile_path(file), what, (unsigned long long)mb_rawfile_bytes(file));
}

/* Where the samples of a page are, for errors. */
static mb_samples_place place_of(const mb_rawfile *file, const mb_tiff_page *page)
{
    const int64_t extents[] = {page->rows, page->columns};
    mb_samples_place place = page->place ? *page->place : mb_samples_place_of(NULL, 2, extents);
    if (!place.name)
        place.name = mb_rawfile_path(file);
    return place;
}

typedef struct window {
    int64_t row, column, rows, columns; /* of the page */
} window;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* One segment: what of it lies in the window, to the array's rows. */
static mb_status read_segment(mb_rawfile *file, const mb_tiff_page *page, const window *w,
                              int64_t number, const mb_array *array, uint8_t *scratch)
{
    const int64_t element = (int64_t)mb_samples_bytes(page->samples, array->dtype);
    const int64_t across = (page->columns + page->segment_columns - 1) / page->segment_columns;
    const int64_t top = number / across * page->segment_rows;
    const int64_t left = number % across * page->segment_columns;
    const int64_t row_bytes = (int64_t)stored_bytes(page, (size_t)element, page->segment_columns);
    /* The last strip has only the rows that are left; tiles are always whole. */
    const bool strips = page->segment_columns == page->columns;
    const int64_t height =
        strips ? least(page->segment_rows, page->rows - top) : page->segment_rows;
    const int64_t first_row = top > w->row ? top : w->row;
    const int64_t end_row = least(least(top + page->segment_rows, page->rows), w->row + w->rows);
    const int64_t first = left > w->column ? left : w->column;
    const int64_t end =
        least(least(left + page->segment_columns, page->columns), w->column + w->columns);
    const uint64_t offset = page->offsets[number], bytes = page->bytes[number];
    const uint8_t *source = NULL;

    if (first_row >= end_row || first >= end)
        return MB_STATUS_OK;
    if (offset > mb_rawfile_bytes(file) || bytes > mb_rawfile_bytes(file) - offset)
        return too_short(file, page, number, 0);
    if (is_plain(page)) {
        const uint64_t wanted = (uint64_t)((end_row - top) * row_bytes);
        if (bytes < wanted)
            return too_short(file, page, number, wanted);
    } else {
        uint64_t packed, decoded, spare;
        parts_of(page, (size_t)element, &packed, &decoded, &spare);
        uint8_t *out = scratch + packed;
        const size_t want = (size_t)(height * row_bytes);
        size_t got = 0;
        bool unchecked = false;
        MB_TRY(mb_rawfile_get(file, offset, scratch, bytes));
        if (page->compression == MB_TIFF_PLAIN)
            /* Not plain: there is scratch. NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker) */
            memcpy(out, scratch, got = bytes < want ? bytes : want);
        else if (page->compression == MB_TIFF_LZW)
            got = unpack_lzw(scratch, bytes, out, want);
        else if (page->compression == MB_TIFF_PACKBITS)
            got = unpack_bits(scratch, bytes, out, want);
        else if (page->compression == MB_TIFF_ZSTD)
            /* A frame is decoded as a whole, and may have the rows that the page has not. */
            got = mb_unpack_zstd(scratch, bytes, out, (size_t)(page->segment_rows * row_bytes));
        else if (page->compression == MB_CHUNK_BLOSC)
            got = mb_unpack_blosc(scratch, bytes, out, want);
        else if (page->compression == MB_CHUNK_LZ4)
            got = mb_unpack_sized_lz4(scratch, bytes, out, want);
        else
            got = mb_unpack_zlib(scratch, bytes, out, want, &unchecked);
        if (unchecked)
            mb_unchecked_note(mb_rawfile_path(file));
        const uint64_t wanted = (uint64_t)((end_row - top) * row_bytes);
        if (got < wanted)
            return page->compression == MB_TIFF_PLAIN ? too_short(file, page, number, wanted)
                                                      : incomplete(file, page, number);
        if (page->swap && page->predictor != 3 && page->samples != MB_SAMPLES_BITS)
            mb_swap_bytes(out, got / (size_t)element, (size_t)element);
        for (int64_t y = 0; y < end_row - top; y++) {
            if (page->predictor == 2)
                add_differences(out + y * row_bytes, page->segment_columns, (size_t)element);
            else if (page->predictor == 3)
                join_planes(out + y * row_bytes, page->segment_columns, (size_t)element,
                            out + decoded);
        }
        source = out;
    }
    const int64_t wide = (int64_t)mb_dtype_bytes(array->dtype), columns = end - first;
    const mb_samples_place place = place_of(file, page);
    for (int64_t y = first_row; y < end_row; y++) {
        char *to =
            (char *)array->data + ((y - w->row) * array->strides[0] + (first - w->column)) * wide;
        char *tail = to + columns * (wide - element); /* `to` itself where nothing is widened */
        if (page->samples == MB_SAMPLES_BITS) {
            unpack_samples(source + (y - top) * row_bytes, page->bits, first - left, columns,
                           (uint16_t *)(void *)to);
            continue;
        }
        const uint64_t from = (uint64_t)((y - top) * row_bytes + (first - left) * element);
        if (source) {
            memcpy(tail, source + from, (size_t)(columns * element));
        } else {
            MB_TRY(mb_rawfile_get(file, offset + from, tail, (uint64_t)(columns * element)));
            if (page->swap)
                mb_swap_bytes(tail, (uint64_t)columns, (size_t)element);
        }
        if (page->samples != MB_SAMPLES_AS_STORED)
            MB_TRY(mb_samples_widen(page->samples, to, tail, columns, &place,
                                    y * page->columns + first));
    }
    return MB_STATUS_OK;
}

/* Chunk `number` of an array (chunk, row, column), as (row, column). It owns nothing. */
static mb_array chunk_array(const mb_array *array, int64_t number)
{
    mb_array own = *array;
    own.shape = (mb_shape){.rank = 2, .dims = {array->shape.dims[1], array->shape.dims[2]}};
    own.strides[0] = array->strides[1];
    own.strides[1] = array->strides[2];
    if (own.data)
        own.data = (char *)array->data +
                   number * array->strides[0] * (int64_t)mb_dtype_bytes(array->dtype);
    return own;
}

static mb_status check(const mb_tiff_page *page, const window *w, const mb_array *array,
                       const mb_array *scratch, uint64_t each)
{
    const int64_t known[] = {MB_TIFF_PLAIN,    MB_TIFF_LZW,  MB_TIFF_DEFLATE, MB_TIFF_DEFLATE_OLD,
                             MB_TIFF_PACKBITS, MB_TIFF_ZSTD, MB_CHUNK_BLOSC,  MB_CHUNK_LZ4};
    bool decodable = false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        decodable = decodable || known[i] == page->compression;
    if (!decodable || page->predictor < 1 || page->predictor > 3)
        return mb_fail(MB_STATUS_UNSUPPORTED, NULL,
                       "TIFF compression %lld with predictor %lld is not supported",
                       (long long)page->compression, (long long)page->predictor);
    if (page->samples == MB_SAMPLES_BITS &&
        (page->bits < 1 || page->bits > 15 || page->predictor != 1))
        return mb_fail(MB_STATUS_UNSUPPORTED, NULL,
                       "packed samples have 1 to 15 bits and no predictor, not %lld bits and "
                       "predictor %lld",
                       (long long)page->bits, (long long)page->predictor);
    if (array->dtype != mb_samples_dtype(page->samples, array->dtype))
        return mb_fail(MB_STATUS_DTYPE, NULL, "the samples of the TIFF page are not read as %s",
                       mb_dtype_name(array->dtype));
    if (page->rows < 1 || page->columns < 1 || page->segment_rows < 1 ||
        page->segment_columns < 1 || page->rows > INT32_MAX || page->columns > INT32_MAX ||
        page->segment_rows > INT32_MAX || page->segment_columns > INT32_MAX)
        return mb_fail(MB_STATUS_IO, NULL,
                       "a page, strip or tile of the TIFF file has an invalid size");
    if (page->count < (page->rows + page->segment_rows - 1) / page->segment_rows *
                          ((page->columns + page->segment_columns - 1) / page->segment_columns))
        return mb_fail(MB_STATUS_IO, NULL,
                       "the TIFF page has fewer strips or tiles than its size needs");
    if (strcmp(array->device->backend->name, "host") != 0 || array->shape.rank != 2 ||
        (array->shape.dims[1] > 1 && array->strides[1] != 1))
        return mb_fail(MB_STATUS_SHAPE, NULL,
                       "a page is read into a host array (row, column) with contiguous rows");
    if (w->row < 0 || w->column < 0 || w->row > page->rows - w->rows ||
        w->column > page->columns - w->columns)
        return mb_fail(MB_STATUS_SHAPE, NULL, "the window lies outside the page of %lld x %lld",
                       (long long)page->rows, (long long)page->columns);
    if (each > 0 && (!scratch || !mb_array_contiguous(scratch) || mb_array_bytes(scratch) < each ||
                     strcmp(scratch->device->backend->name, "host") != 0))
        return mb_fail(MB_STATUS_ARGUMENT, "scratch",
                       "scratch must be a host array of at least %llu bytes",
                       (unsigned long long)each);
    return MB_STATUS_OK;
}

/* Segments that are read at a time, each by one thread. */
typedef struct segments {
    mb_rawfile *file; /* of all, a page's; or chunks, each a page of one segment */
    const mb_tiff_page *page;
    const mb_tiff_chunk *chunks;
    const mb_array *array; /* (row, column), or (chunk, row, column) */
    window w;
} segments;

static mb_status read_one(const segments *s, int64_t number, uint8_t *scratch)
{
    if (!s->chunks)
        return read_segment(s->file, s->page, &s->w, number, s->array, scratch);
    const mb_array own = chunk_array(s->array, number);
    return read_segment(s->chunks[number].file, &s->chunks[number].page, &s->w, 0, &own, scratch);
}

/* Reads segments from ... end - 1. `each`: bytes of a thread's scratch. */
static mb_status read_all(const segments *s, int64_t from, int64_t end, uint64_t each,
                          const mb_array *scratch)
{
    int threads = 1;
    if (each > 0 && end - from > 1) {
        threads = s->array->device->facts.threads;
        if ((uint64_t)threads > mb_array_bytes(scratch) / each)
            threads = (int)(mb_array_bytes(scratch) / each);
    }
    mb_error failure = {.code = MB_STATUS_OK};
    int64_t failed = end;
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (int64_t i = from; i < end; i++) {
        uint8_t *own =
            each > 0 ? (uint8_t *)scratch->data + (uint64_t)omp_get_thread_num() * each : NULL;
        if (read_one(s, i, own) != MB_STATUS_OK) {
#pragma omp critical(mb_tiff_failure)
            if (i < failed) {
                failure = *mb_error_last();
                failed = i;
            }
        }
    }
    if (failure.code == MB_STATUS_OK)
        return MB_STATUS_OK;
    mb_error_put(&failure);
    return failure.code;
}

mb_status mb_tiff_read(mb_rawfile *file, const mb_tiff_page *page, int64_t first_row,
                       int64_t first_column, mb_array *array, mb_array *scratch)
{
    const window w = {first_row, first_column, array->shape.dims[0], array->shape.dims[1]};
    uint64_t each = page->segment_rows < 1 || page->segment_columns < 1
                        ? 0
                        : mb_tiff_scratch_bytes(page, array->dtype);
    MB_TRY(check(page, &w, array, scratch, each));
    if (!mb_array_has_data(array))
        return MB_STATUS_OK;
    MB_TRY(mb_device_sync(array->device));
    MB_TRY(mb_cancel_check());
    const int64_t across = (page->columns + page->segment_columns - 1) / page->segment_columns;
    const int64_t from = first_row / page->segment_rows * across;
    const int64_t end = ((first_row + w.rows - 1) / page->segment_rows + 1) * across;
    const segments all = {.file = file, .page = page, .array = array, .w = w};
    return read_all(&all, from, end, each, scratch);
}

mb_status mb_tiff_read_chunks(const mb_tiff_chunk *chunks, int64_t count, const mb_array *array,
                              mb_array *scratch)
{
    uint64_t each = 0;
    if (array->shape.rank != 3 || !mb_array_contiguous(array) || count > array->shape.dims[0])
        return mb_fail(MB_STATUS_SHAPE, NULL,
                       "%lld chunks are read into a contiguous array (chunk, row, column)",
                       (long long)count);
    const window w = {0, 0, array->shape.dims[1], array->shape.dims[2]};
    for (int64_t i = 0; i < count; i++) {
        const mb_array own = chunk_array(array, i);
        const mb_tiff_page *page = &chunks[i].page;
        const uint64_t bytes = mb_tiff_scratch_bytes(page, array->dtype);
        if (page->segment_rows != page->rows || page->segment_columns != page->columns)
            return mb_fail(MB_STATUS_ARGUMENT, "page", "a chunk is a page of one segment");
        MB_TRY(check(page, &w, &own, scratch, bytes));
        each = bytes > each ? bytes : each;
    }
    if (!mb_array_has_data(array) || count == 0)
        return MB_STATUS_OK;
    MB_TRY(mb_device_sync(array->device));
    MB_TRY(mb_cancel_check());
    const segments all = {.chunks = chunks, .array = array, .w = w};
    return read_all(&all, 0, count, each, scratch);
}
