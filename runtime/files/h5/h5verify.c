/*
** Verification of a created file: its datasets are there with their extents and bytes, rows that
** were written are read back, and virtual datasets show what their sources have. libhdf5 reads
** zeros, or the fill value, where it does not find a source, and says nothing.
*/
#define _GNU_SOURCE
#include "files/h5/h5verify.h"
#include "files/h5/data/h5made.h"
#include "files/h5/missing/h5sources.h"
#include "files/h5/library/h5describe.h"
#include "files/h5/library/h5error.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows of so many sources are compared, the last of them among these. */
#define MOST_COMPARED 32

/* ---- virtual datasets ---- */

/* Reads a row of a dataset: frame `frame`, and the middle of all axes but the last. */
static bool read_row(hid_t dataset, const mb_h5_info *info, int64_t frame, void *row)
{
    hsize_t start[MB_H5_MAX_RANK], count[MB_H5_MAX_RANK];
    for (int axis = 0; axis < info->rank; axis++) {
        const bool last = axis == info->rank - 1 && axis > 0;
        start[axis] = axis == 0 ? (hsize_t)frame : last ? 0 : (hsize_t)info->dims[axis] / 2;
        count[axis] = last ? (hsize_t)info->dims[axis] : 1;
    }
    const hid_t type = mb_h5_type_of(info->dtype), from = H5Dget_space(dataset);
    const hid_t to = H5Screate_simple(info->rank, count, NULL);
    const bool read = H5Sselect_hyperslab(from, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
                      H5Dread(dataset, type, to, from, H5P_DEFAULT, row) >= 0;
    H5Sclose(to);
    H5Sclose(from);
    H5Tclose(type);
    return read;
}

/* The row as the source's own file has it. */
static bool read_source(const mb_h5 *file, const h5_made *made, const mb_h5_source *source,
                        void *row)
{
    char folder[PATH_MAX], name[2 * PATH_MAX];
    snprintf(folder, sizeof folder, "%s", mb_target_now(file->target));
    snprintf(name, sizeof name, "%s/%s", dirname(folder), source->file);
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_file_locking(access, false, true);
    const hid_t id = H5Fopen(source->file[0] == '/' ? source->file : name, H5F_ACC_RDONLY, access);
    const hid_t dataset = id >= 0 ? H5Dopen2(id, source->path, H5P_DEFAULT) : -1;
    const bool read = dataset >= 0 && read_row(dataset, &made->info, source->count - 1, row);
    if (dataset >= 0)
        H5Dclose(dataset);
    if (id >= 0)
        H5Fclose(id);
    H5Pclose(access);
    return read;
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
        if (!read_source(file, made, source, shown + bytes) ||
            !read_row(id, info, source->first + source->count - 1, shown))
            status = mb_h5_failure(file, made->path, "read back");
        else if (memcmp(shown, shown + bytes, bytes) != 0)
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
    uint64_t expected = mb_dtype_bytes(made->info.dtype);
    MB_TRY(mb_h5_describe_dataset(file, id, made->path, &found));
    bool same = found.rank == made->info.rank && strcmp(found.stored, made->info.stored) == 0;
    for (int axis = 0; same && axis < found.rank; axis++) {
        same = found.dims[axis] == made->info.dims[axis];
        expected = mb_bytes_mul(expected, (uint64_t)found.dims[axis]);
    }
    if (!same)
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
    mb_status status = MB_STATUS_OK;
    const size_t bytes = mb_bytes_mul((uint64_t)sample->count, mb_dtype_bytes(sample->dtype));
    const int rank = made->info.rank;
    hsize_t start[MB_H5_MAX_RANK], count[MB_H5_MAX_RANK];
    hid_t type = -1, from = -1, to = -1;
    void *row = malloc(bytes + 1);
    if (!row)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left to verify '%s'", file->path);
    for (int axis = 0; axis < rank; axis++) {
        start[axis] = (hsize_t)sample->first[axis];
        count[axis] = axis == rank - 1 ? (hsize_t)sample->count : 1;
    }
    type = mb_h5_type_of(sample->dtype);
    from = H5Dget_space(id);
    to = H5Screate_simple(rank, count, NULL);
    if (H5Sselect_hyperslab(from, H5S_SELECT_SET, start, NULL, count, NULL) < 0 ||
        H5Dread(id, type, to, from, H5P_DEFAULT, row) < 0)
        status = mb_h5_failure(file, made->path, "read back");
    else if (mb_h5_sum(row, bytes) != sample->sum)
        status = mb_fail(MB_STATUS_IO, NULL,
                         "verification of '%s': the data of '%s' differ from what was written (is "
                         "the disk full?)",
                         file->path, made->path);
    H5Sclose(to);
    H5Sclose(from);
    H5Tclose(type);
    free(row);
    return status;
}

mb_status mb_h5_verify(mb_h5 *file, hid_t reopened)
{
    for (const h5_made *made = file->made; made; made = made->next) {
        const hid_t id = H5Dopen2(reopened, made->path, H5P_DEFAULT);
        if (id < 0)
            return mb_h5_failure(file, made->path, "find again");
        mb_status status = verify_dataset(file, made, id);
        for (int i = 0; i < file->sample_count && status == MB_STATUS_OK; i++)
            if (file->samples[i].made == made->number)
                status = verify_sample(file, made, &file->samples[i], id);
        H5Dclose(id);
        MB_TRY(status);
    }
    return MB_STATUS_OK;
}
