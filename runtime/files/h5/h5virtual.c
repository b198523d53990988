/*
** Virtual datasets that are written: the names of their sources, and whether they show what those
** have. libhdf5 reads zeros, or the fill value, where it does not find a source, and says nothing.
*/
#define _GNU_SOURCE
#include "files/h5/h5internal.h"

#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows of so many sources are compared, the last of them among these. */
#define MOST_COMPARED 32

char *mb_h5_literal(const char *name)
{
    char *doubled = malloc(2 * strlen(name) + 1), *to = doubled;
    if (doubled == NULL) {
        mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left for a name");
        return NULL;
    }
    for (const char *c = name; *c != '\0'; c++) {
        if (*c == '%')
            *to++ = '%';
        *to++ = *c;
    }
    *to = '\0';
    return doubled;
}

void mb_h5_forget_sources(h5_made *made)
{
    for (int64_t i = 0; i < made->source_count; i++) {
        free((char *)made->sources[i].file);
        free((char *)made->sources[i].path);
    }
    free(made->sources);
    made->sources = NULL;
    made->source_count = 0;
}

mb_status mb_h5_remember_sources(h5_made *made, const mb_h5_source *sources, int64_t count)
{
    made->sources = calloc((size_t)count + 1, sizeof *sources);
    for (int64_t i = 0; i < count && made->sources != NULL; i++) {
        mb_h5_source *copy = &made->sources[made->source_count++];
        *copy = sources[i];
        copy->file = strdup(sources[i].file);
        copy->path = strdup(sources[i].path);
        if (copy->file == NULL || copy->path == NULL)
            return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left for names");
    }
    return made->sources != NULL ? MB_STATUS_OK
                                 : mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left for names");
}

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

mb_status mb_h5_verify_virtual(mb_h5 *file, const h5_made *made, hid_t id)
{
    mb_status status = MB_STATUS_OK;
    const mb_h5_info *info = &made->info;
    const int64_t step = made->source_count / MOST_COMPARED + 1;
    const size_t bytes = mb_bytes_mul(info->rank > 1 ? (uint64_t)info->dims[info->rank - 1] : 1,
                                      mb_dtype_bytes(info->dtype));
    char *shown = calloc(2, bytes + 1);
    if (shown == NULL)
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
                             "verification of '%s': '%s' does not show what '%s' has", file->path,
                             made->path, source->file);
    }
    free(shown);
    return status;
}
