/*
** What was never written of a dataset. libhdf5 reads fill values there, zeros mostly, without a
** word; an acquisition that was broken off leaves such files. A gap is a run of frames
** (indices of axis 0, unless the dataset is shown otherwise): a frame that lacks one chunk counts as
** missing.
**
** Only files that are open for reading are asked: chunks of others may be in libhdf5's memory
** yet. The gaps of a dataset are found once, and belong to its file.
*/
#include "files/h5/missing/h5missing.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void mb_h5_forget_gaps(mb_h5 *file)
{
    while (file->gaps) {
        h5_gaps *gaps = file->gaps;
        file->gaps = gaps->next;
        mb_h5_clear_gaps(gaps);
        free(gaps);
    }
}

static bool is_of(const h5_gaps *gaps, const mb_h5_dataset *dataset)
{
    return gaps->axis == dataset->axes[0] && strcmp(gaps->path, dataset->path) == 0;
}

/* What a dataset is in the file. */
static mb_h5_info stored_info(const mb_h5_dataset *dataset)
{
    mb_h5_info info = dataset->info;
    if (dataset->stored_rank == info.rank && !dataset->turned)
        return info;
    info.rank = dataset->stored_rank;
    for (int axis = 0; axis < info.rank; axis++)
        info.dims[axis] = info.chunks[axis] = 1;
    for (int axis = 0; axis < 3; axis++) {
        info.dims[dataset->axes[axis]] = dataset->info.dims[axis];
        info.chunks[dataset->axes[axis]] = dataset->info.chunks[axis];
    }
    return info;
}

static mb_status gaps_of(mb_h5_dataset *dataset, h5_gaps **out)
{
    mb_h5 *file = dataset->file;
    for (h5_gaps *known = file->gaps; known; known = known->next)
        if (is_of(known, dataset)) {
            *out = known;
            return MB_STATUS_OK;
        }
    h5_gaps *gaps = calloc(1, sizeof *gaps);
    mb_status status = gaps ? MB_STATUS_OK
                            : mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left to look at '%s'",
                                      dataset->path);
    if (status == MB_STATUS_OK) {
        const mb_h5_info info = stored_info(dataset);
        gaps->axis = dataset->axes[0];
        status = mb_h5_find_gaps(file, dataset->id, file->path, &info, gaps);
    }
    if (status == MB_STATUS_OK && (gaps->path = mb_h5_copy_text(dataset->path)) == NULL)
        status = MB_STATUS_MEMORY;
    H5Eclear2(H5E_DEFAULT);
    if (status != MB_STATUS_OK) {
        if (gaps)
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
        if (!ranges || info->rank == 0)
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
                                         file->target ? mb_target_now(file->target) : file->path,
                                         dataset->path)
                   : MB_STATUS_OK;
    MB_TRY(gaps_of(dataset, &gaps));
    if (info->is_virtual)
        mb_h5_expect(&gaps->chunk);
    if (gaps->forbidden)
        return mb_fail(MB_STATUS_IO, NULL, "cannot read '%s' of '%s': %s", dataset->path,
                       file->path, gaps->problem);
    const int64_t *run = touched(gaps, info, ranges);
    if (!run || (file->allow_missing && ranges))
        return MB_STATUS_OK;
    if (info->rank == 0 || gaps->frames == info->dims[0])
        return mb_fail(MB_STATUS_IO, NULL, "'%s' in '%s' has no data: %s", dataset->path,
                       file->path, gaps->problem);
    return mb_fail(MB_STATUS_IO, NULL,
                   "%lld of the %lld frames of '%s' in '%s' are missing; the first is %lld: %s",
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

mb_status mb_h5_sources(mb_h5_dataset *dataset, const h5_source **list, int64_t *count)
{
    h5_gaps *gaps = NULL;
    *list = NULL;
    *count = 0;
    if (dataset->file->writable)
        return MB_STATUS_OK;
    MB_TRY(gaps_of(dataset, &gaps));
    *list = gaps->sources;
    *count = gaps->source_count;
    return MB_STATUS_OK;
}

/* ---- files that become shorter ---- */

static mb_status cut_off(const mb_h5_dataset *dataset, const char *path)
{
    return mb_fail(MB_STATUS_IO, NULL,
                   "cannot read '%s' of '%s': '%s' was truncated after it was opened",
                   dataset->path, dataset->file->path, path);
}

mb_status mb_h5_check_whole(mb_h5_dataset *dataset, const mb_range *ranges)
{
    struct stat status;
    mb_h5 *file = dataset->file;
    if (file->writable)
        return MB_STATUS_OK;
    const int descriptor = mb_h5_descriptor(file->id);
    if (descriptor >= 0 && fstat(descriptor, &status) == 0 && status.st_size < file->bytes)
        return cut_off(dataset, file->path);
    if (dataset->linked_bytes > 0) {
        char name[PATH_MAX] = "";
        H5_OWNED hid_t owner = H5Iget_file_id(dataset->id);
        if (fstat(mb_h5_descriptor(owner), &status) == 0 &&
            status.st_size < dataset->linked_bytes) {
            H5Fget_name(owner, name, sizeof name);
            return cut_off(dataset, name);
        }
    }
    for (const h5_gaps *gaps = file->gaps; gaps; gaps = gaps->next)
        for (int64_t i = 0; i < gaps->source_count && is_of(gaps, dataset); i++) {
            const h5_source *source = &gaps->sources[i];
            if (dataset->info.rank > 0 && ranges &&
                (source->first > ranges[0].first + (ranges[0].count - 1) * ranges[0].step ||
                 source->last < ranges[0].first))
                continue;
            if (stat(source->path, &status) != 0 || status.st_size < source->bytes)
                return cut_off(dataset, source->path);
        }
    return MB_STATUS_OK;
}
