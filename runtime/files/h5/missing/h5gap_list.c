/*
** Lists of gaps and sources (struct h5_gaps).
*/
#include "files/h5/missing/h5missing.h"
#include "core/grow.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

mb_status mb_h5_add_gap(h5_gaps *gaps, int64_t first, int64_t last)
{
    gaps->frames += last - first + 1;
    if (gaps->count > 0 && gaps->runs[gaps->count - 1][1] + 1 == first) {
        gaps->runs[gaps->count - 1][1] = last;
        return MB_STATUS_OK;
    }
    int64_t(*runs)[2] = mb_grow(gaps->runs, gaps->count, &gaps->capacity, sizeof *runs);
    if (!runs)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left for a list of frames");
    gaps->runs = runs;
    gaps->runs[gaps->count][0] = first;
    gaps->runs[gaps->count++][1] = last;
    return MB_STATUS_OK;
}

mb_status mb_h5_add_whole_gap(h5_gaps *gaps, const mb_h5_info *info)
{
    return mb_h5_add_gap(gaps, 0, info->rank > 0 ? info->dims[gaps->axis] - 1 : 0);
}

mb_status mb_h5_add_source(h5_gaps *gaps, const char *path, int64_t first, int64_t last)
{
    struct stat status;
    h5_source *latest = gaps->source_count > 0 ? &gaps->sources[gaps->source_count - 1] : NULL;
    if (latest && strcmp(latest->path, path) == 0) {
        latest->first = first < latest->first ? first : latest->first;
        latest->last = last > latest->last ? last : latest->last;
        return MB_STATUS_OK;
    }
    h5_source *sources =
        mb_grow(gaps->sources, gaps->source_count, &gaps->source_capacity, sizeof *sources);
    if (!sources)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left for a list of files");
    gaps->sources = sources;
    char *copy = mb_h5_copy_text(path);
    if (!copy)
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
