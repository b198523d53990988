/*
** Hyperslabs of HDF5 datasets, to and from host memory and arrays.
**
** Long transfers go in pieces along the first axis that is longer than 1, so that Ctrl-C is seen,
** and so that a device array needs a fixed buffer only. Pieces end on chunk borders: no chunk is
** decoded twice within one read. Invariant: data go to HDF5 and come from it as dense row-major
** memory; whatever is strided is gathered before.
*/
#include "files/h5/data/h5data.h"
#include "core/samples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES ((uint64_t)32 << 20)

static mb_status check_ranges(const mb_h5_dataset *dataset, const mb_range *ranges,
                              uint64_t *elements)
{
    const mb_h5_info *info = &dataset->info;
    *elements = 1;
    for (int axis = 0; axis < info->rank; axis++) {
        const mb_range r = ranges[axis];
        const int64_t n = info->dims[axis];
        if (r.count < 0 || r.step < 1 || r.first < 0 || r.first > n ||
            (r.count > 0 && (r.first >= n || r.count - 1 > (n - 1 - r.first) / r.step)))
            return mb_fail(MB_STATUS_SHAPE, NULL,
                           "range {%lld, %lld} is outside axis %d of '%s', which has %lld elements",
                           (long long)r.first + 1,
                           (long long)(r.first + (r.count - 1) * r.step + 1), axis + 1,
                           dataset->path, (long long)n);
        *elements = mb_bytes_mul(*elements, (uint64_t)r.count);
    }
    if (info->empty)
        *elements = 0;
    return MB_STATUS_OK;
}

/* May the stored type become `dtype`? */
static mb_status check_types(const mb_h5_dataset *dataset, mb_dtype dtype, bool reading)
{
    const mb_h5_info *info = &dataset->info;
    if (!info->numeric)
        return mb_fail(MB_STATUS_DTYPE, NULL,
                       "'%s' in '%s' holds %s, which is not an array of numbers", dataset->path,
                       dataset->file->path, info->stored);
    if (dataset->taken && dtype != info->dtype)
        return mb_fail(MB_STATUS_DTYPE, "dtype",
                       "'%s' is taken for %s, and cannot be read as %s: cast the array instead",
                       dataset->path, info->stored, mb_dtype_name(dtype));
    const mb_dtype_class from = mb_dtype_kind(reading ? info->dtype : dtype);
    const mb_dtype_class to = mb_dtype_kind(reading ? dtype : info->dtype);
    const bool whole = info->stored[0] == 'i' || info->stored[0] == 'u' || info->stored[0] == 'e';
    const bool complex = from == MB_CLASS_COMPLEX || to == MB_CLASS_COMPLEX;
    const bool rounds = reading ? to == MB_CLASS_INT && !whole : from == MB_CLASS_REAL && whole;
    if (complex ? from != to : rounds)
        return mb_fail(MB_STATUS_DTYPE, "dtype",
                       "'%s' holds %s, and cannot be %s %s: cast the array instead", dataset->path,
                       info->stored, reading ? "read as" : "written from", mb_dtype_name(dtype));
    return MB_STATUS_OK;
}

/* Filters that are not there give riddles, and data that are not there zeros: ask before. */
static mb_status check_readable(mb_h5_dataset *dataset, const mb_range *ranges)
{
    mb_status status = MB_STATUS_OK;
    char why[H5_PROBLEM_BYTES];
    H5_OWNED hid_t properties = H5Dget_create_plist(dataset->id);
    if (!mb_h5_filters_there(properties, why, sizeof why))
        status = mb_fail(MB_STATUS_UNSUPPORTED, NULL, "'%s' in '%s' %s", dataset->path,
                         dataset->file->path, why);
    H5Eclear2(H5E_DEFAULT);
    MB_TRY(status);
    MB_TRY(mb_h5_check_chunk(dataset));
    return mb_h5_check_written(dataset, ranges);
}

/* Splits a slab: the axis to cut, and how many of its indices make a piece. */
static int64_t piece_indices(const mb_h5_dataset *dataset, const mb_range *ranges,
                             uint64_t elements, size_t bytes, int *axis_out)
{
    const mb_h5_info *info = &dataset->info;
    int axis = 0;
    while (axis < info->rank - 1 && ranges[axis].count <= 1)
        axis++;
    *axis_out = axis;
    const uint64_t each = mb_bytes_mul(elements / (uint64_t)ranges[axis].count, bytes);
    int64_t indices = each >= PIECE_BYTES ? 1 : (int64_t)(PIECE_BYTES / each);
    if (info->chunked && ranges[axis].step == 1 && indices > info->chunks[axis])
        indices -= indices % info->chunks[axis];
    return indices;
}

/* The type in memory. Of a dataset that is taken for another type it has the sign that the file
** says, so that libhdf5 converts nothing, and the other byte order, in which it leaves the bytes as
** they must be. */
static hid_t memory_type(const mb_h5_dataset *dataset, mb_dtype dtype)
{
    const hid_t type = mb_h5_type_of(dtype);
    if (dataset->taken && dataset->was_signed)
        H5Tset_sign(type, H5T_SGN_2);
    if (dataset->swapped)
        H5Tset_order(type, H5Tget_order(type) == H5T_ORDER_LE ? H5T_ORDER_BE : H5T_ORDER_LE);
    return type;
}

/* What is read at once: ranges of the dataset's axes in the file, and where they go. */
typedef struct slab {
    hsize_t first[MB_H5_MAX_RANK], count[MB_H5_MAX_RANK], step[MB_H5_MAX_RANK];
    uint64_t lines, line, pitch; /* elements of a line in memory, and from one to the next */
    hid_t space, memory;
} slab;

/* Sets the ranges of a dataset's axes in the file; returns how many elements they have. */
static uint64_t stored_ranges(const mb_h5_dataset *dataset, const mb_range *ranges, slab *part)
{
    const bool same = dataset->stored_rank == dataset->info.rank && !dataset->turned;
    uint64_t elements = 1;
    for (int axis = 0; axis < dataset->stored_rank; axis++) {
        part->first[axis] = 0;
        part->count[axis] = part->step[axis] = 1;
    }
    for (int i = 0; i < dataset->info.rank; i++) {
        const int axis = same ? i : dataset->axes[i];
        part->first[axis] = (hsize_t)ranges[i].first;
        part->count[axis] = (hsize_t)ranges[i].count;
        part->step[axis] = (hsize_t)ranges[i].step;
        elements *= part->count[axis];
    }
    return elements;
}

/* The samples of a dataset whose numbers a float64 may not have. Lists, such as times, are no images,
** and their numbers are rounded. */
static mb_samples wide_samples(const mb_h5_dataset *dataset, mb_dtype dtype)
{
    const char *stored = dataset->info.stored;
    if (dtype != MB_F64 || dataset->info.rank < 2)
        return MB_SAMPLES_AS_STORED;
    return strcmp(stored, "i64") == 0   ? MB_SAMPLES_I64
           : strcmp(stored, "u64") == 0 ? MB_SAMPLES_U64
                                        : MB_SAMPLES_AS_STORED;
}

/* Integers of 64 bits that were read to `host` become float64. */
static mb_status widen(const mb_h5_dataset *dataset, mb_samples samples, const slab *part,
                       double *host)
{
    char name[512];
    mb_samples_place place = {.name = name};
    snprintf(name, sizeof name, "%s:%s", dataset->file->path, dataset->path);
    for (int axis = 0; axis < dataset->stored_rank && place.rank < MB_MAX_RANK; axis++) {
        const int own = place.rank++;
        place.origin[own] = (int64_t)part->first[axis];
        place.extents[own] = place.count[own] = (int64_t)part->count[axis];
        place.steps[own] = (int64_t)part->step[axis];
    }
    if (dataset->stored_rank > MB_MAX_RANK)
        place.rank = 0;
    for (uint64_t i = 0; i < part->lines; i++)
        MB_TRY(mb_samples_widen(samples, host + i * part->pitch, host + i * part->pitch,
                                (int64_t)part->line, &place, (int64_t)(i * part->line)));
    return MB_STATUS_OK;
}

/* H5Dread, for which whole numbers of 64 bits that a float64 does not have are an error. */
static mb_status read_slab(mb_h5_dataset *dataset, mb_dtype dtype, const slab *part, void *host)
{
    const mb_samples samples = wide_samples(dataset, dtype);
    H5_OWNED hid_t type = samples == MB_SAMPLES_I64   ? H5Tcopy(H5T_NATIVE_INT64)
                          : samples == MB_SAMPLES_U64 ? H5Tcopy(H5T_NATIVE_UINT64)
                                                      : memory_type(dataset, dtype);
    if (H5Dread(dataset->id, type, part->memory, part->space, H5P_DEFAULT, host) < 0)
        return mb_h5_failure(dataset->file, dataset->path, "read");
    return samples == MB_SAMPLES_AS_STORED ? MB_STATUS_OK : widen(dataset, samples, part, host);
}

/* One transfer between the file and dense host memory, where both have the elements in the same
** order. */
static mb_status transfer(mb_h5_dataset *dataset, const mb_range *ranges, mb_dtype dtype,
                          void *host, bool reading)
{
    const int rank = dataset->stored_rank;
    slab part = {.lines = 1};
    const uint64_t elements = stored_ranges(dataset, ranges, &part);
    if (dataset->id < 0 && reading) /* the file is at rest (goes_raw) */
        return mb_h5_raw_read(dataset, ranges, 0, elements * mb_dtype_bytes(dtype), host);
    if (dataset->id < 0)
        return mb_h5_raw_write(dataset, ranges, 0, elements * mb_dtype_bytes(dtype), host);
    H5_OWNED hid_t space = H5Dget_space(dataset->id);
    H5_OWNED hid_t memory = rank > 0 ? H5Screate_simple(rank, part.count, NULL) : H5S_ALL;
    herr_t result = 0;
    if (rank > 0)
        result =
            H5Sselect_hyperslab(space, H5S_SELECT_SET, part.first, part.step, part.count, NULL);
    if (result >= 0 && reading) {
        part.line = part.pitch = elements;
        part.space = space;
        part.memory = memory;
        return read_slab(dataset, dtype, &part, host);
    }
    H5_OWNED hid_t type = memory_type(dataset, dtype);
    if (result < 0 || H5Dwrite(dataset->id, type, memory, space, H5P_DEFAULT, host) < 0)
        return mb_h5_failure(dataset->file, dataset->path, reading ? "read" : "write");
    if (dataset->file->disk.error != 0)
        return mb_h5_refused(dataset->file, dataset->path, "write");
    mb_h5_sample(dataset, ranges, dtype, host, elements);
    return MB_STATUS_OK;
}

/* The same into memory where only the lines are dense: `pitch` elements from one to the next. */
static mb_status read_lines(mb_h5_dataset *dataset, const mb_range *ranges, mb_dtype dtype,
                            void *host, uint64_t pitch)
{
    slab from = {.pitch = pitch};
    const uint64_t elements = stored_ranges(dataset, ranges, &from);
    from.line = from.count[dataset->axes[2]];
    from.lines = elements / from.line;
    const hsize_t extent[2] = {from.lines, (hsize_t)pitch}, part[2] = {from.lines, from.line},
                  origin[2] = {0, 0};
    H5_OWNED hid_t space = H5Dget_space(dataset->id);
    H5_OWNED hid_t memory = H5Screate_simple(2, extent, NULL);
    if (H5Sselect_hyperslab(memory, H5S_SELECT_SET, origin, NULL, part, NULL) < 0 ||
        H5Sselect_hyperslab(space, H5S_SELECT_SET, from.first, from.step, from.count, NULL) < 0)
        return mb_h5_failure(dataset->file, dataset->path, "read");
    from.space = space;
    from.memory = memory;
    return read_slab(dataset, dtype, &from, host);
}

/* Reads frames of a dataset whose rows come first in the file: row by row or frame by frame,
** whatever decodes fewer chunks twice. */
static mb_status read_turned(mb_h5_dataset *dataset, const mb_range *ranges, mb_dtype dtype,
                             unsigned char *host)
{
    const mb_h5_info *info = &dataset->info;
    const uint64_t line = mb_bytes_mul((uint64_t)ranges[2].count, mb_dtype_bytes(dtype));
    const uint64_t rows = (uint64_t)ranges[1].count;
    const int axis = ranges[1].count <= ranges[0].count || !info->chunked || info->chunks[1] == 1;
    mb_range part[3] = {ranges[0], ranges[1], ranges[2]};
    part[axis].count = 1;
    for (int64_t i = 0; i < ranges[axis].count; i++) {
        part[axis].first = ranges[axis].first + i * ranges[axis].step;
        MB_TRY(mb_cancel_check());
        MB_TRY(axis == 1 ? read_lines(dataset, part, dtype, host + (uint64_t)i * line,
                                      rows * (uint64_t)ranges[2].count)
                         : transfer(dataset, part, dtype, host + (uint64_t)i * rows * line, true));
    }
    return MB_STATUS_OK;
}

/* Where the pieces of a transfer lie: in host memory, or in an array that a buffer stands for. */
typedef struct place {
    unsigned char *host;   /* dense, all of the slab; or NULL */
    const mb_array *array; /* else */
    unsigned char *buffer;
} place;

static bool on_host(const mb_array *array)
{
    return strcmp(array->device->backend->name, "host") == 0;
}

static mb_status move_piece(mb_h5_dataset *dataset, const mb_range *ranges, mb_dtype dtype,
                            const place *where, uint64_t first, uint64_t count, bool reading)
{
    const size_t bytes = mb_dtype_bytes(dtype);
    if (dataset->turned && ranges[0].count > 1 && ranges[1].count > 1) {
        unsigned char *host = where->host ? where->host + first * bytes : where->buffer;
        MB_TRY(read_turned(dataset, ranges, dtype, host));
    } else if (where->host || reading) {
        MB_TRY(transfer(dataset, ranges, dtype,
                        where->host ? where->host + first * bytes : where->buffer, reading));
    }
    if (where->host)
        return MB_STATUS_OK;
    mb_device *device = where->array->device;
    unsigned char *address = (unsigned char *)where->array->data + first * bytes;
    if (reading)
        return mb_device_upload(device, address, where->buffer, count * bytes);
    if (on_host(where->array))
        mb_array_gather(where->array, first, count, where->buffer);
    else
        MB_TRY(mb_device_download(device, where->buffer, address, count * bytes));
    return transfer(dataset, ranges, dtype, where->buffer, false);
}

static mb_status move(mb_h5_dataset *dataset, const mb_range *ranges, mb_dtype dtype, place *where,
                      bool reading)
{
    mb_range piece[MB_H5_MAX_RANK];
    uint64_t elements = 0;
    mb_status status = MB_STATUS_OK;
    const size_t bytes = mb_dtype_bytes(dtype);
    const int rank = dataset->info.rank;

    MB_TRY(check_types(dataset, dtype, reading));
    MB_TRY(check_ranges(dataset, ranges, &elements));
    if (elements == 0)
        return MB_STATUS_OK;
    const bool asked = reading && dataset->id >= 0; /* libhdf5; a file at rest has all its bytes */
    if (asked)
        MB_TRY(check_readable(dataset, ranges));
    else if (!reading && dataset->made >= 0)
        mb_h5_sample(dataset, ranges, dtype, NULL, 0);

    int axis = 0;
    int64_t step = 1, all = 1;
    if (rank > 0) {
        memcpy(piece, ranges, (size_t)rank * sizeof *piece);
        step = piece_indices(dataset, ranges, elements, bytes, &axis);
        all = ranges[axis].count;
    }
    const uint64_t each = elements / (uint64_t)all;
    if (!where->host) {
        where->buffer = malloc(mb_bytes_mul(each * (uint64_t)(step < all ? step : all), bytes));
        if (!where->buffer)
            return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left to transfer '%s'",
                           dataset->path);
    }
    for (int64_t done = 0; done < all && status == MB_STATUS_OK;) {
        int64_t now = step;
        if (rank > 0) {
            piece[axis].first = ranges[axis].first + done * ranges[axis].step;
            if (dataset->info.chunked && ranges[axis].step == 1 &&
                step % dataset->info.chunks[axis] == 0)
                now -= piece[axis].first % dataset->info.chunks[axis];
            if (now > all - done)
                now = all - done;
            piece[axis].count = now;
        }
        status = mb_cancel_check();
        if (status == MB_STATUS_OK)
            status = move_piece(dataset, piece, dtype, where, (uint64_t)done * each,
                                (uint64_t)now * each, reading);
        done += now;
    }
    free(where->buffer);
    if (asked && status == MB_STATUS_OK)
        status = mb_h5_check_whole(dataset, ranges);
    return reading ? status : mb_h5_latch(dataset->file, status);
}

static mb_status check_array(const mb_h5_dataset *dataset, const mb_range *ranges,
                             const mb_array *array, bool reading)
{
    uint64_t elements = 0;
    MB_TRY(check_ranges(dataset, ranges, &elements));
    if (mb_array_elements(array) != elements)
        return mb_fail(MB_STATUS_SHAPE, reading ? "out" : "array",
                       "the array has %llu elements, the part of '%s' has %llu",
                       (unsigned long long)mb_array_elements(array), dataset->path,
                       (unsigned long long)elements);
    if (!mb_array_contiguous(array) && (reading || !on_host(array)))
        return mb_fail(MB_STATUS_SHAPE, reading ? "out" : "array",
                       "the array is a strided view: give a contiguous one (a:copy())");
    return MB_STATUS_OK;
}

/* Are these rows moved without libhdf5? They are while the file is at rest. */
static bool goes_raw(mb_h5_dataset *dataset, const mb_range *ranges, mb_dtype dtype, bool reading)
{
    const int rank = dataset->info.rank;
    bool whole = dataset->file && dataset->file->resting && rank >= 2 &&
                 ranges[rank - 1].count == dataset->info.dims[rank - 1];
    for (int axis = 0; axis < rank; axis++)
        whole = whole && ranges[axis].step == 1;
    return whole && mb_h5_raw_possible(dataset, dtype, reading, NULL);
}

mb_status mb_h5_dataset_check(mb_h5_dataset *dataset, const mb_range *ranges, const mb_array *array,
                              bool reading)
{
    MB_H5_GUARD;
    const bool raw = goes_raw(dataset, ranges, array->dtype, reading);
    MB_TRY(reading && !raw ? mb_h5_ready(dataset->file, false)
                           : mb_h5_usable(dataset->file, !reading));
    MB_TRY(check_types(dataset, array->dtype, reading));
    MB_TRY(check_array(dataset, ranges, array, reading));
    return reading && !raw ? check_readable(dataset, ranges) : MB_STATUS_OK;
}

mb_status mb_h5_dataset_read_host(mb_h5_dataset *dataset, const mb_range *ranges, mb_dtype dtype,
                                  void *host)
{
    MB_H5_GUARD;
    place where = {.host = host};
    MB_TRY(mb_h5_ready(dataset->file, false));
    return move(dataset, ranges, dtype, &where, true);
}

static mb_status move_array(mb_h5_dataset *dataset, const mb_range *ranges, const mb_array *array,
                            bool reading)
{
    MB_H5_GUARD;
    place where = {.array = array};
    MB_TRY(goes_raw(dataset, ranges, array->dtype, reading) ? mb_h5_usable(dataset->file, !reading)
                                                            : mb_h5_ready(dataset->file, !reading));
    MB_TRY(check_types(dataset, array->dtype, reading));
    MB_TRY(check_array(dataset, ranges, array, reading));
    if (!mb_array_has_data(array))
        return MB_STATUS_OK;
    if (on_host(array)) {
        MB_TRY(mb_device_sync(array->device));
        if (mb_array_contiguous(array)) /* always so where it is read into: check_array */
            where.host = array->data;
    }
    return move(dataset, ranges, array->dtype, &where, reading);
}

mb_status mb_h5_dataset_read(mb_h5_dataset *dataset, const mb_range *ranges, mb_array *array)
{
    return move_array(dataset, ranges, array, true);
}

mb_status mb_h5_dataset_write_host(mb_h5_dataset *dataset, const mb_range *ranges, mb_dtype dtype,
                                   const void *host)
{
    MB_H5_GUARD;
    place where = {.host = (unsigned char *)host}; /* not written to */
    MB_TRY(mb_h5_ready(dataset->file, true));
    return move(dataset, ranges, dtype, &where, false);
}

mb_status mb_h5_dataset_write(mb_h5_dataset *dataset, const mb_range *ranges, const mb_array *array)
{
    return move_array(dataset, ranges, array, false);
}
