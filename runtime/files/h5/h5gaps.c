/*
** What was never written of a dataset. libhdf5 reads fill values there, zeros mostly, without a
** word; an acquisition that was broken off leaves such files. A gap is a run of indices of axis 0
** (frames): a frame that lacks one chunk counts as missing.
**
** Only files that are open for reading are asked: chunks of others may be in libhdf5's memory
** yet. The gaps of a dataset are found once, and belong to its file.
*/
#define _GNU_SOURCE
#include "files/h5/h5internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MOST_CHUNKS ((uint64_t)1 << 20) /* to be looked up one by one */

/* ---- lists ---- */

mb_status mb_h5_add_gap(h5_gaps *gaps, int64_t first, int64_t last)
{
    gaps->frames += last - first + 1;
    if (gaps->count > 0 && gaps->runs[gaps->count - 1][1] + 1 == first) {
        gaps->runs[gaps->count - 1][1] = last;
        return MB_STATUS_OK;
    }
    if (gaps->count == gaps->capacity) {
        const int64_t capacity = gaps->capacity == 0 ? 16 : 2 * gaps->capacity;
        int64_t(*runs)[2] = realloc(gaps->runs, (size_t)capacity * sizeof *runs);
        if (runs == NULL)
            return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left for a list of frames");
        gaps->runs = runs;
        gaps->capacity = capacity;
    }
    gaps->runs[gaps->count][0] = first;
    gaps->runs[gaps->count++][1] = last;
    return MB_STATUS_OK;
}

mb_status mb_h5_add_source(h5_gaps *gaps, const char *path, int64_t first, int64_t last)
{
    struct stat status;
    h5_source *latest = gaps->source_count > 0 ? &gaps->sources[gaps->source_count - 1] : NULL;
    if (latest != NULL && strcmp(latest->path, path) == 0) {
        latest->first = first < latest->first ? first : latest->first;
        latest->last = last > latest->last ? last : latest->last;
        return MB_STATUS_OK;
    }
    if (gaps->source_count == gaps->source_capacity) {
        const int64_t capacity = gaps->source_capacity == 0 ? 16 : 2 * gaps->source_capacity;
        h5_source *sources = realloc(gaps->sources, (size_t)capacity * sizeof *sources);
        if (sources == NULL)
            return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left for a list of files");
        gaps->sources = sources;
        gaps->source_capacity = capacity;
    }
    char *copy = mb_h5_copy_text(path);
    if (copy == NULL)
        return MB_STATUS_MEMORY;
    gaps->sources[gaps->source_count++] =
        (h5_source){copy, stat(path, &status) == 0 ? status.st_size : 0, first, last};
    return MB_STATUS_OK;
}

void mb_h5_clear_gaps(h5_gaps *gaps)
{
    for (int64_t i = 0; i < gaps->source_count; i++)
        free(gaps->sources[i].path);
    free(gaps->sources);
    free(gaps->runs);
    free(gaps->path);
    *gaps = (h5_gaps){0};
}

void mb_h5_forget_gaps(mb_h5 *file)
{
    while (file->gaps != NULL) {
        h5_gaps *gaps = file->gaps;
        file->gaps = gaps->next;
        mb_h5_clear_gaps(gaps);
        free(gaps);
    }
}

/* ---- finding them ---- */

int mb_h5_descriptor(const mb_h5 *file)
{
    int *descriptor = NULL;
    void *handle = NULL;
    if (file->id < 0 || H5Fget_vfd_handle(file->id, H5P_DEFAULT, &handle) < 0)
        return -1;
    descriptor = handle;
    return descriptor != NULL ? *descriptor : -1;
}

static mb_status add_all(h5_gaps *gaps, const mb_h5_info *info)
{
    return mb_h5_add_gap(gaps, 0, info->rank > 0 ? info->dims[0] - 1 : 0);
}

/* The size of the file that a dataset is in, or INT64_MAX where it has none. */
static uint64_t size_of_owner(hid_t id)
{
    struct stat status;
    void *handle = NULL;
    const hid_t file = H5Iget_file_id(id);
    const bool known = H5Fget_vfd_handle(file, H5P_DEFAULT, &handle) >= 0 && handle != NULL &&
                       fstat(*(int *)handle, &status) == 0;
    H5Fclose(file);
    return known ? (uint64_t)status.st_size : INT64_MAX;
}

/* Contiguous data have one place, or none. */
static mb_status find_contiguous(hid_t id, const mb_h5_info *info, uint64_t elements, h5_gaps *gaps)
{
    const haddr_t place = H5Dget_offset(id);
    const hid_t type = H5Dget_type(id);
    const uint64_t bytes = mb_bytes_mul(elements, H5Tget_size(type)), size = size_of_owner(id);
    H5Tclose(type);
    if (place == HADDR_UNDEF) {
        snprintf(gaps->problem, sizeof gaps->problem, "it was never written");
        return add_all(gaps, info);
    }
    if (bytes <= size && place <= size - bytes)
        return MB_STATUS_OK;
    snprintf(
        gaps->problem, sizeof gaps->problem,
        "its %llu bytes do not fit into its file, which has %llu: the file is cut off or damaged",
        (unsigned long long)bytes, (unsigned long long)size);
    return add_all(gaps, info);
}

/* Is one of the chunks of a row of the grid missing? */
static bool lacks_chunk(hid_t id, const mb_h5_info *info, int64_t frame)
{
    hsize_t at[MB_H5_MAX_RANK] = {(hsize_t)frame}, bytes;
    for (;;) {
        bytes = 0;
        if (H5Dget_chunk_storage_size(id, at, &bytes) < 0 || bytes == 0)
            return true;
        int axis = info->rank - 1;
        for (; axis > 0; axis--) {
            at[axis] += (hsize_t)info->chunks[axis];
            if (at[axis] < (hsize_t)info->dims[axis])
                break;
            at[axis] = 0;
        }
        if (axis <= 0)
            return false;
    }
}

/* Chunks are counted first; only where some are missing they are looked up. */
static mb_status find_chunked(mb_h5 *file, hid_t id, const mb_h5_info *info, h5_gaps *gaps)
{
    uint64_t expected = 1;
    hsize_t there = 0;
    for (int axis = 0; axis < info->rank; axis++)
        expected =
            mb_bytes_mul(expected, (uint64_t)((info->dims[axis] - 1) / info->chunks[axis]) + 1);
    const hid_t space = H5Dget_space(id);
    const herr_t counted = H5Dget_num_chunks(id, space, &there);
    H5Sclose(space);
    if (counted < 0)
        return mb_h5_failure(file, NULL, "count the chunks");
    if (there >= expected)
        return MB_STATUS_OK;
    snprintf(gaps->problem, sizeof gaps->problem, "of its %llu chunks %llu were ever written",
             (unsigned long long)expected, (unsigned long long)there);
    if (there == 0 || expected > MOST_CHUNKS)
        return add_all(gaps, info);
    for (int64_t frame = 0; frame < info->dims[0]; frame += info->chunks[0]) {
        const int64_t next = frame + info->chunks[0];
        MB_TRY(mb_cancel_check());
        if (lacks_chunk(id, info, frame))
            MB_TRY(mb_h5_add_gap(gaps, frame, (next < info->dims[0] ? next : info->dims[0]) - 1));
    }
    H5Eclear2(H5E_DEFAULT);
    return MB_STATUS_OK;
}

mb_status mb_h5_find_gaps(mb_h5 *file, hid_t id, const char *name, const mb_h5_info *info,
                          h5_gaps *gaps, int depth)
{
    uint64_t elements = 1;
    for (int axis = 0; axis < info->rank; axis++)
        elements = mb_bytes_mul(elements, (uint64_t)info->dims[axis]);
    if (info->empty || elements == 0)
        return MB_STATUS_OK;
    if (info->is_virtual)
        return mb_h5_find_virtual_gaps(file, id, name, info, gaps, depth);
    if (info->chunked)
        return find_chunked(file, id, info, gaps);
    const hid_t properties = H5Dget_create_plist(id);
    const H5D_layout_t layout = H5Pget_layout(properties);
    const int outside = H5Pget_external_count(properties);
    H5Pclose(properties);
    if (layout != H5D_CONTIGUOUS)
        return MB_STATUS_OK;
    if (outside == 0)
        return find_contiguous(id, info, elements, gaps);
    return mb_h5_check_storage(file, id, info, gaps) ? MB_STATUS_OK : add_all(gaps, info);
}

/* ---- asking ---- */

static mb_status gaps_of(mb_h5_dataset *dataset, h5_gaps **out)
{
    mb_h5 *file = dataset->file;
    for (h5_gaps *known = file->gaps; known != NULL; known = known->next)
        if (strcmp(known->path, dataset->path) == 0) {
            *out = known;
            return MB_STATUS_OK;
        }
    h5_gaps *gaps = calloc(1, sizeof *gaps);
    mb_status status = gaps != NULL ? MB_STATUS_OK
                                    : mb_fail(MB_STATUS_MEMORY, NULL,
                                              "no host memory left to look at '%s'", dataset->path);
    if (status == MB_STATUS_OK)
        status = mb_h5_find_gaps(file, dataset->id, file->path, &dataset->info, gaps, 0);
    if (status == MB_STATUS_OK && (gaps->path = mb_h5_copy_text(dataset->path)) == NULL)
        status = MB_STATUS_MEMORY;
    H5Eclear2(H5E_DEFAULT);
    if (status != MB_STATUS_OK) {
        if (gaps != NULL)
            mb_h5_clear_gaps(gaps);
        free(gaps);
        return status;
    }
    gaps->next = file->gaps;
    file->gaps = gaps;
    *out = gaps;
    return MB_STATUS_OK;
}

/* The first gap that a slab touches, or NULL. */
static const int64_t *touched(const h5_gaps *gaps, const mb_h5_info *info, const mb_range *ranges)
{
    for (int64_t i = 0; i < gaps->count; i++) {
        const int64_t *run = gaps->runs[i];
        if (ranges == NULL || info->rank == 0)
            return run;
        const int64_t last = ranges[0].first + (ranges[0].count - 1) * ranges[0].step;
        if (ranges[0].first <= run[1] && last >= run[0])
            return run;
    }
    return NULL;
}

mb_status mb_h5_check_written(mb_h5_dataset *dataset, const mb_range *ranges)
{
    mb_h5 *file = dataset->file;
    const mb_h5_info *info = &dataset->info;
    h5_gaps *gaps = NULL;
    if (file->writable)
        return info->is_virtual
                   ? mb_h5_check_sources(file, dataset->id,
                                         file->target != NULL ? mb_target_now(file->target)
                                                              : file->path,
                                         dataset->path)
                   : MB_STATUS_OK;
    MB_TRY(gaps_of(dataset, &gaps));
    if (gaps->forbidden)
        return mb_fail(MB_STATUS_IO, NULL, "cannot read '%s' of '%s': %s", dataset->path,
                       file->path, gaps->problem);
    const int64_t *run = touched(gaps, info, ranges);
    if (run == NULL || (file->allow_missing && ranges != NULL))
        return MB_STATUS_OK;
    if (info->rank == 0 || gaps->frames == info->dims[0])
        return mb_fail(MB_STATUS_IO, NULL, "nothing is there of '%s' in '%s': %s", dataset->path,
                       file->path, gaps->problem);
    return mb_fail(MB_STATUS_IO, NULL,
                   "%lld of the %lld frames of '%s' in '%s' are missing, the first of them is "
                   "%lld: %s",
                   (long long)gaps->frames, (long long)info->dims[0], dataset->path, file->path,
                   (long long)gaps->runs[0][0] + 1, gaps->problem);
}

mb_status mb_h5_dataset_missing(mb_h5_dataset *dataset, const int64_t (**runs)[2], int64_t *count,
                                const char **why)
{
    MB_H5_GUARD;
    h5_gaps *gaps = NULL;
    *runs = NULL;
    *count = 0;
    *why = NULL;
    MB_TRY(mb_h5_ready(dataset->file, false));
    if (dataset->file->writable)
        return MB_STATUS_OK;
    MB_TRY(mb_h5_check_chunk(dataset));
    MB_TRY(gaps_of(dataset, &gaps));
    if (gaps->forbidden)
        return mb_h5_check_written(dataset, NULL);
    *runs = (const int64_t(*)[2])gaps->runs;
    *count = gaps->count;
    *why = gaps->count > 0 ? gaps->problem : NULL;
    return MB_STATUS_OK;
}

/* ---- files that become shorter ---- */

static mb_status cut_off(const mb_h5_dataset *dataset, const char *path)
{
    return mb_fail(MB_STATUS_IO, NULL,
                   "cannot read '%s' of '%s': '%s' has been cut off since it was opened",
                   dataset->path, dataset->file->path, path);
}

mb_status mb_h5_check_whole(mb_h5_dataset *dataset, const mb_range *ranges)
{
    struct stat status;
    mb_h5 *file = dataset->file;
    if (file->writable)
        return MB_STATUS_OK;
    const int descriptor = mb_h5_descriptor(file);
    if (descriptor >= 0 && fstat(descriptor, &status) == 0 && status.st_size < file->bytes)
        return cut_off(dataset, file->path);
    for (const h5_gaps *gaps = file->gaps; gaps != NULL; gaps = gaps->next)
        for (int64_t i = 0; i < gaps->source_count && strcmp(gaps->path, dataset->path) == 0; i++) {
            const h5_source *source = &gaps->sources[i];
            if (dataset->info.rank > 0 && ranges != NULL &&
                (source->first > ranges[0].first + (ranges[0].count - 1) * ranges[0].step ||
                 source->last < ranges[0].first))
                continue;
            if (stat(source->path, &status) != 0 || status.st_size < source->bytes)
                return cut_off(dataset, source->path);
        }
    return MB_STATUS_OK;
}
