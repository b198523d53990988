/*
** Verification of a created file: its datasets are there with their extents and bytes, rows that
** were written are read back, and virtual datasets show what their sources have. libhdf5 reads
** zeros, or the fill value, where it does not find a source, and says nothing.
*/
#define _GNU_SOURCE
#include "files/h5/h5whole.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows of so many sources are compared, the last of them among these. */
#define MOST_COMPARED 32

typedef struct row {
    hsize_t start[MB_H5_MAX_RANK], count[MB_H5_MAX_RANK];
} row;

/* Reads the row of a dataset that is open as `id` and has the rank of `made`. */
static mb_status read_row(mb_h5 *file, const h5_made *made, hid_t id, mb_dtype dtype, const row *r,
                          void *to)
{
    H5_OWNED hid_t type = mb_h5_type_of(dtype), from = H5Dget_space(id);
    H5_OWNED hid_t memory = H5Screate_simple(made->info.rank, r->count, NULL);
    if (H5Sselect_hyperslab(from, H5S_SELECT_SET, r->start, NULL, r->count, NULL) >= 0 &&
        H5Dread(id, type, memory, from, H5P_DEFAULT, to) >= 0)
        return MB_STATUS_OK;
    return mb_h5_failure(file, made->path, "read back");
}

/* ---- virtual datasets ---- */

/* Reads a row of a frame: the middle of all axes but the first and the last. */
static mb_status read_middle(mb_h5 *file, const h5_made *made, hid_t id, int64_t frame, void *to)
{
    row r;
    const mb_h5_info *info = &made->info;
    for (int axis = 0; axis < info->rank; axis++) {
        const bool last = axis == info->rank - 1 && axis > 0;
        r.start[axis] = axis == 0 ? (hsize_t)frame : last ? 0 : (hsize_t)info->dims[axis] / 2;
        r.count[axis] = last ? (hsize_t)info->dims[axis] : 1;
    }
    return read_row(file, made, id, info->dtype, &r, to);
}

/* The row as the source's own file has it. */
static mb_status read_source(mb_h5 *file, const h5_made *made, const mb_h5_source *source, void *to)
{
    char folder[PATH_MAX], name[2 * PATH_MAX];
    snprintf(folder, sizeof folder, "%s", mb_target_now(file->target));
    snprintf(name, sizeof name, "%s/%s", dirname(folder), source->file);
    H5_OWNED hid_t id = mb_h5_open_source(source->file[0] == '/' ? source->file : name, NULL, 0);
    H5_OWNED hid_t dataset = id >= 0 ? H5Dopen2(id, source->path, H5P_DEFAULT) : -1;
    if (dataset < 0)
        return mb_h5_failure(file, made->path, "read back");
    return read_middle(file, made, dataset, source->count - 1, to);
}

static mb_status verify_virtual(mb_h5 *file, const h5_made *made, hid_t id)
{
    mb_status status = MB_STATUS_OK;
    const mb_h5_info *info = &made->info;
    const int64_t step = made->source_count / MOST_COMPARED + 1;
    const size_t bytes = mb_bytes_mul(info->rank > 1 ? (uint64_t)info->dims[info->rank - 1] : 1,
                                      mb_dtype_bytes(info->dtype));
    char *shown = calloc(2, bytes + 1);
    if (!shown)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left to verify '%s'", file->path);
    for (int64_t i = made->source_count - 1; i >= 0 && status == MB_STATUS_OK; i -= step) {
        const mb_h5_source *source = &made->sources[i];
        if (strcmp(source->file, ".") == 0) /* of the same file, verified by itself */
            continue;
        /* First the source: the virtual dataset keeps it open, in a way that excludes others. */
        status = read_source(file, made, source, shown + bytes);
        if (status == MB_STATUS_OK)
            status = read_middle(file, made, id, source->first + source->count - 1, shown);
        if (status == MB_STATUS_OK && memcmp(shown, shown + bytes, bytes) != 0)
            status = mb_fail(MB_STATUS_IO, NULL,
                             "verification of '%s': '%s' differs from its source '%s'", file->path,
                             made->path, source->file);
    }
    free(shown);
    return status;
}

/* ---- all datasets ---- */

static mb_status verify_dataset(mb_h5 *file, const h5_made *made, hid_t id)
{
    mb_h5_info found;
    MB_TRY(mb_h5_describe_dataset(file, id, made->path, &found));
    const uint64_t expected =
        mb_bytes_mul(mb_dtype_bytes(made->info.dtype), mb_h5_product(found.dims, found.rank));
    if (found.rank != made->info.rank || strcmp(found.stored, made->info.stored) != 0 ||
        memcmp(found.dims, made->info.dims, (size_t)found.rank * sizeof *found.dims) != 0)
        return mb_fail(
            MB_STATUS_IO, NULL,
            "verification of '%s': '%s' does not have the shape or type that was written",
            file->path, made->path);
    if (found.is_virtual) {
        MB_TRY(mb_h5_check_sources(file, id, mb_target_now(file->target), made->path));
        return verify_virtual(file, made, id);
    }
    if (!made->info.text && !made->info.filtered && found.stored_bytes < expected)
        return mb_fail_bytes(
            MB_STATUS_IO, expected, found.stored_bytes,
            "verification of '%s': only %llu of %llu bytes of '%s' are in the file", file->path,
            (unsigned long long)found.stored_bytes, (unsigned long long)expected, made->path);
    return MB_STATUS_OK;
}

static mb_status verify_sample(mb_h5 *file, const h5_made *made, const h5_sample *sample, hid_t id)
{
    row r;
    const size_t bytes = mb_bytes_mul((uint64_t)sample->count, mb_dtype_bytes(sample->dtype));
    const int rank = made->info.rank;
    void *found = malloc(bytes + 1);
    if (!found)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left to verify '%s'", file->path);
    for (int axis = 0; axis < rank; axis++) {
        r.start[axis] = (hsize_t)sample->first[axis];
        r.count[axis] = axis == rank - 1 ? (hsize_t)sample->count : 1;
    }
    mb_status status = read_row(file, made, id, sample->dtype, &r, found);
    if (status == MB_STATUS_OK && mb_h5_sum(found, bytes) != sample->sum)
        status = mb_fail(MB_STATUS_IO, NULL,
                         "verification of '%s': the data of '%s' differ from what was written (is "
                         "the disk full?)",
                         file->path, made->path);
    free(found);
    return status;
}

mb_status mb_h5_verify(mb_h5 *file, hid_t reopened)
{
    for (const h5_made *made = file->made; made; made = made->next) {
        H5_OWNED hid_t id = H5Dopen2(reopened, made->path, H5P_DEFAULT);
        if (id < 0)
            return mb_h5_failure(file, made->path, "find again");
        mb_status status = verify_dataset(file, made, id);
        for (int i = 0; i < file->sample_count && status == MB_STATUS_OK; i++)
            if (file->samples[i].made == made->number)
                status = verify_sample(file, made, &file->samples[i], id);
        MB_TRY(status);
    }
    return MB_STATUS_OK;
}
