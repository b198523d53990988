/*
** Handles of HDF5 datasets. A dataset belongs to its file's list; closing the file leaves it closed
** (!file, id == -1).
*/
#define _GNU_SOURCE
#include "files/h5/data/h5data.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Decoded chunks larger than this are not cached between reads. */
#define CACHE_BYTES ((size_t)64 << 20)

/* The size of the file with a dataset that is open as `id`, if it is another than `file`; or 0. */
static int64_t linked_bytes(const mb_h5 *file, hid_t id)
{
    struct stat status;
    H5_OWNED hid_t owner = H5Iget_file_id(id);
    const int descriptor = mb_h5_descriptor(owner);
    return descriptor != mb_h5_descriptor(file->id) && fstat(descriptor, &status) == 0
               ? status.st_size
               : 0;
}

mb_status mb_h5_adopt(mb_h5 *file, hid_t id, const char *path, mb_h5_dataset **out)
{
    mb_h5_dataset *dataset = calloc(1, sizeof *dataset);
    if (!dataset || (dataset->path = strdup(path)) == NULL) {
        free(dataset);
        H5Dclose(id);
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left for a dataset handle");
    }
    dataset->id = id;
    dataset->file = file;
    dataset->made = -1;
    dataset->axes[1] = 1;
    dataset->axes[2] = 2;
    dataset->linked_bytes = linked_bytes(file, id);
    mb_status status = mb_h5_describe_dataset(file, id, path, &dataset->info);
    if (status == MB_STATUS_OK && !file->writable)
        status = mb_h5_check_place(file, id, path);
    if (status != MB_STATUS_OK) {
        dataset->file = NULL;
        mb_h5_dataset_destroy(dataset);
        return status;
    }
    dataset->stored_rank = dataset->info.rank;
    dataset->next = file->datasets;
    if (dataset->next)
        dataset->next->previous = dataset;
    file->datasets = dataset;
    *out = dataset;
    return MB_STATUS_OK;
}

mb_status mb_h5_dataset_open(mb_h5 *file, const char *path, mb_h5_dataset **out)
{
    MB_H5_GUARD;
    mb_h5_info info;
    *out = NULL;
    MB_TRY(mb_h5_ready(file, false));
    MB_TRY(mb_h5_describe(file, path, &info));
    if (info.kind != MB_H5_DATASET)
        return mb_fail(MB_STATUS_ARGUMENT, "path", "'%s' in '%s' is a group, not a dataset", path,
                       file->path);
    /* The cache holds one chunk: enough for successive reads inside it, and no surprise in
    ** memory. */
    H5_OWNED hid_t access = mb_h5_link_access(file, H5P_DATASET_ACCESS);
    if (info.chunked && info.numeric) {
        const uint64_t chunk =
            mb_bytes_mul(mb_dtype_bytes(info.dtype), mb_h5_product(info.chunks, info.rank));
        if (chunk > ((size_t)1 << 20) && chunk <= CACHE_BYTES)
            H5Pset_chunk_cache(access, 521, (size_t)chunk, 1.0);
    }
    const hid_t id = H5Dopen2(file->id, path, access);
    if (id < 0)
        return mb_h5_failure(file, path, "open dataset");
    MB_TRY(mb_h5_adopt(file, id, path, out));
    const mb_status status = file->resumed ? mb_h5_remember(*out) : MB_STATUS_OK;
    if (status != MB_STATUS_OK) {
        mb_h5_dataset_destroy(*out);
        *out = NULL;
    }
    return status;
}

/* Frees what a dataset of a closed file that nobody uses has no more need of; itself, once it was
** destroyed. */
static void let_go(mb_h5_dataset *dataset)
{
    if (dataset->file || dataset->users > 0)
        return;
    mb_h5_raw_free(dataset->raw);
    dataset->raw = NULL;
    if (!dataset->destroyed)
        return;
    free(dataset->source);
    free(dataset->path);
    free(dataset);
}

void mb_h5_dataset_destroy(mb_h5_dataset *dataset)
{
    MB_H5_GUARD;
    if (!dataset)
        return;
    if (dataset->file) {
        if (dataset->previous)
            dataset->previous->next = dataset->next;
        else
            dataset->file->datasets = dataset->next;
        if (dataset->next)
            dataset->next->previous = dataset->previous;
    }
    if (dataset->id >= 0) {
        mb_h5_quiet();
        H5Dclose(dataset->id);
    }
    dataset->id = -1;
    mb_h5_leave_file(dataset);
    dataset->destroyed = true;
    let_go(dataset);
}

void mb_h5_close_datasets(mb_h5 *file)
{
    while (file->datasets) {
        mb_h5_dataset *dataset = file->datasets;
        file->datasets = dataset->next;
        if (dataset->id >= 0)
            H5Dclose(dataset->id);
        dataset->id = -1;
        mb_h5_leave_file(dataset);
        dataset->previous = dataset->next = NULL;
        let_go(dataset);
    }
}

void mb_h5_dataset_use(mb_h5_dataset *dataset, int change)
{
    MB_H5_GUARD;
    dataset->users += change;
    let_go(dataset);
}

const mb_h5_info *mb_h5_dataset_info(const mb_h5_dataset *dataset)
{
    return &dataset->info;
}

const char *mb_h5_dataset_path(const mb_h5_dataset *dataset)
{
    return dataset->path;
}

mb_status mb_h5_dataset_take(mb_h5_dataset *dataset, bool swapped)
{
    static const struct {
        const char *stored, *taken;
        mb_dtype dtype;
        bool swapped;
    } KNOWN[] = {
        {"i8", "u8", MB_U8, false},   {"i16", "u16", MB_U16, false}, {"u16", "u16", MB_U16, true},
        {"i16", "u16", MB_U16, true}, {"i32", "i32", MB_I32, true},  {"f16", "f16", MB_F16, true},
        {"f32", "f32", MB_F32, true},
    };
    mb_h5_info *info = &dataset->info;
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++) {
        if (KNOWN[i].swapped != swapped || strcmp(KNOWN[i].stored, info->stored) != 0)
            continue;
        dataset->taken = true;
        dataset->swapped = swapped;
        dataset->was_signed = info->stored[0] == 'i';
        snprintf(info->stored, sizeof info->stored, "%s", KNOWN[i].taken);
        info->dtype = KNOWN[i].dtype;
        return MB_STATUS_OK;
    }
    return mb_fail(MB_STATUS_UNSUPPORTED, NULL, "'%s' in '%s' holds %s, which cannot be read as %s",
                   dataset->path, dataset->file->path, info->stored,
                   swapped ? "numbers in the other byte order" : "unsigned numbers");
}

/* Are these three axes of the dataset, of which the last is the last, and all others of extent 1? */
static bool can_show(const mb_h5_info *info, const int axes[3])
{
    bool named[MB_H5_MAX_RANK] = {false};
    for (int i = 0; i < 3; i++) {
        if (axes[i] < 0 || axes[i] >= info->rank || named[axes[i]])
            return false;
        named[axes[i]] = true;
    }
    for (int axis = 0; axis < info->rank; axis++)
        if (!named[axis] && info->dims[axis] != 1)
            return false;
    return axes[2] > axes[0] && axes[2] > axes[1];
}

mb_status mb_h5_dataset_show(mb_h5_dataset *dataset, const int axes[3])
{
    MB_H5_GUARD;
    const mb_h5_info stored = dataset->info;
    mb_h5_info *info = &dataset->info;
    MB_TRY(mb_h5_ready(dataset->file, false));
    MB_TRY(mb_h5_check_chunk(dataset));
    if (dataset->file->writable || dataset->raw || dataset->stored_rank != stored.rank ||
        dataset->turned || !can_show(&stored, axes))
        return mb_fail(MB_STATUS_ARGUMENT, "axes",
                       "'%s' cannot be shown with the axes {%d, %d, %d}: give its axes of frames, "
                       "rows and columns, the columns last; all others have the extent 1",
                       dataset->path, axes[0] + 1, axes[1] + 1, axes[2] + 1);
    for (int axis = 0; axis < stored.rank && stored.chunked; axis++)
        if (axis != axes[0] && axis != axes[1] && axis != axes[2] && stored.chunks[axis] != 1)
            dataset->padded = true;
    info->rank = 3;
    for (int i = 0; i < 3; i++) {
        dataset->axes[i] = axes[i];
        info->dims[i] = stored.dims[axes[i]];
        info->chunks[i] = stored.chunks[axes[i]];
    }
    dataset->turned = axes[0] > axes[1];
    return MB_STATUS_OK;
}

mb_status mb_h5_dataset_source(mb_h5_dataset *dataset, int64_t index, const char **path)
{
    MB_H5_GUARD;
    const h5_source *list;
    int64_t count;
    char name[PATH_MAX] = "";
    *path = NULL;
    MB_TRY(mb_h5_ready(dataset->file, false));
    MB_TRY(mb_h5_sources(dataset, &list, &count));
    if (dataset->linked_bytes > 0 && index-- == 0) {
        H5_OWNED hid_t owner = H5Iget_file_id(dataset->id);
        H5Fget_name(owner, name, sizeof name);
    } else if (index < count) {
        snprintf(name, sizeof name, "%s", list[index].path);
    } else {
        return MB_STATUS_OK;
    }
    free(dataset->source);
    dataset->source = mb_h5_copy_text(name);
    *path = dataset->source;
    return dataset->source ? MB_STATUS_OK : MB_STATUS_MEMORY;
}

bool mb_h5_dataset_is_open(const mb_h5_dataset *dataset)
{
    return dataset->id >= 0 || (dataset->file && dataset->file->resting);
}
