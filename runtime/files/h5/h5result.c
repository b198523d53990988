/*
** Created HDF5 files: the first failure latched, verification; then the target gives them their
** name (files/target.h).
**
** Why so careful: on a full disk H5Dwrite fails, but H5Fclose succeeds, and the file then opens and
** reads, with zeros where data should be. So nothing here trusts H5Fclose: what the disk refused is
** asked of the driver (h5driver.c), the file is opened again, compared with what was meant to be in
** it, synced through a descriptor of our own (which reports write-back errors), and only then gets
** its name.
**
** Invariant: while file->created and file->id >= 0, file->fd is open on the file: the target's, or
** the scratch file's own.
*/
#define _GNU_SOURCE
#include "files/h5/h5whole.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The HDF5 contents of a file that is open as `file->fd`: new, or those that it has. */
static mb_status begin_contents(mb_h5 *file)
{
    file->disk.created = true;
    file->disk.fd = file->fd;
    H5_OWNED hid_t access = mb_h5_created_access(file);
    /* Our driver takes the descriptor; libhdf5 only wants to see that something has this name. */
    const char *name = file->target ? mb_target_now(file->target) : "/";
    file->id = file->resumed ? H5Fopen(name, H5F_ACC_RDWR, access)
                             : H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    file->created = file->id >= 0;
    if (!file->created)
        return mb_h5_failure(file, NULL, file->resumed ? "open the file" : "create the file");
    return file->disk.error != 0 ? mb_h5_refused(file, NULL, "create the file") : MB_STATUS_OK;
}

/* The file with its HDF5 contents, unless the creation of its `fd` has failed with `status`. */
static mb_status create_contents(mb_h5 *file, mb_status status, mb_h5 **out)
{
    if (status == MB_STATUS_OK)
        status = begin_contents(file);
    if (status == MB_STATUS_OK)
        *out = file;
    else
        mb_h5_destroy(file);
    return status;
}

static mb_h5 *make(const char *path)
{
    mb_h5 *file = calloc(1, sizeof *file);
    if (file) {
        file->id = -1;
        file->fd = -1;
        file->writable = true;
        file->path = strdup(path);
    }
    if (!file || !file->path) {
        free(file);
        mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left to create '%s'", path);
        return NULL;
    }
    return file;
}

/* How a file comes by its target. */
typedef struct beginning {
    const char *now;    /* NULL: a part */
    const char *folder; /* of slices, of a resumed file; or NULL */
    bool resumed, overwrite;
} beginning;

static mb_status create_as(const char *path, const beginning *how, mb_h5 **out)
{
    MB_H5_GUARD;
    *out = NULL;
    mb_h5_quiet();
    mb_h5 *file = make(path);
    if (!file)
        return MB_STATUS_MEMORY;
    file->resumed = how->resumed;
    const mb_status status =
        how->resumed ? mb_target_resume(path, how->now, how->folder, how->overwrite, &file->target)
        : how->now   ? mb_target_keep(path, how->now, how->overwrite, &file->target)
                     : mb_target_create(path, how->overwrite, &file->target);
    if (status == MB_STATUS_OK)
        file->fd = mb_target_fd(file->target);
    return create_contents(file, status, out);
}

mb_status mb_h5_create(const char *path, bool overwrite, mb_h5 **out)
{
    return create_as(path, &(beginning){.overwrite = overwrite}, out);
}

mb_status mb_h5_keep(const char *path, const char *now, bool overwrite, mb_h5 **out)
{
    return create_as(path, &(beginning){.now = now, .overwrite = overwrite}, out);
}

mb_status mb_h5_resume(const char *path, const char *now, const char *folder, bool overwrite,
                       mb_h5 **out)
{
    const beginning how = {.now = now, .folder = folder, .resumed = true, .overwrite = overwrite};
    return create_as(path, &how, out);
}

mb_status mb_h5_scratch(const char *folder, mb_h5 **out)
{
    MB_H5_GUARD;
    *out = NULL;
    mb_h5_quiet();
    mb_h5 *file = make(folder);
    if (!file)
        return MB_STATUS_MEMORY;
    return create_contents(file, mb_target_scratch(folder, &file->fd), out);
}

mb_status mb_h5_make_folder(mb_h5 *file, const char **out)
{
    MB_H5_GUARD;
    MB_TRY(mb_h5_ready(file, true));
    if (!file->target)
        return mb_fail(MB_STATUS_ARGUMENT, NULL,
                       "'%s' was not made by h5.create: only a created file has a folder of slices",
                       file->path);
    return mb_target_make_folder(file->target, out);
}

mb_status mb_h5_rest(mb_h5 *file, bool *rests)
{
    MB_H5_GUARD;
    *rests = true;
    MB_TRY(mb_h5_usable(file, true));
    if (!file->created)
        return mb_fail(MB_STATUS_ARGUMENT, NULL,
                       "'%s' was not made by h5.create: only a created file can be at rest",
                       file->path);
    if (file->resting)
        return MB_STATUS_OK;
    if (H5Fflush(file->id, H5F_SCOPE_GLOBAL) < 0) /* chunks have their places then */
        return mb_h5_latch(file, mb_h5_failure(file, NULL, "flush the contents"));
    for (mb_h5_dataset *dataset = file->datasets; dataset && *rests; dataset = dataset->next)
        *rests = mb_h5_raw_placed(dataset);
    return *rests ? mb_h5_begin_rest(file) : MB_STATUS_OK;
}

/* Opens the closed part file again and compares. */
static mb_status reopen_and_verify(mb_h5 *file, const char *marker)
{
    H5_OWNED hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
    H5Pset_file_locking(access, false, true);
    H5_OWNED hid_t id = H5Fopen(mb_target_now(file->target), H5F_ACC_RDONLY, access);
    if (id < 0)
        return mb_h5_failure(file, NULL, "verify the contents");
    const htri_t marked = marker ? H5Lexists(id, marker, H5P_DEFAULT) : H5Aexists(id, "end_time");
    if (marked <= 0)
        return mb_fail(MB_STATUS_IO, NULL, "verification of '%s': the completion marker is missing",
                       file->path);
    return mb_h5_verify(file, id);
}

/* The current time as "2026-08-01T12:34:56+00:00". */
static char *time_now(char *buffer, size_t bytes)
{
    const time_t now = time(NULL);
    struct tm parts;
    gmtime_r(&now, &parts);
    strftime(buffer, bytes, "%Y-%m-%dT%H:%M:%S+00:00", &parts);
    return buffer;
}

static mb_status write_marker(mb_h5 *file, const char *marker)
{
    char now[40];
    char *text = time_now(now, sizeof now);
    mb_h5_value value = {.text = true, .rank = 0, .count = 1, .strings = &text};
    if (!marker)
        return mb_h5_attribute_write(file, "/", "end_time", &value);
    return mb_h5_value_write(file, marker, &value);
}

static mb_status flush_all(mb_h5 *file)
{
    mb_h5_close_datasets(file);
    if (H5Fflush(file->id, H5F_SCOPE_GLOBAL) < 0)
        return mb_h5_failure(file, NULL, "flush the contents");
    return file->disk.error != 0 ? mb_h5_refused(file, NULL, "flush the contents") : MB_STATUS_OK;
}

mb_status mb_h5_finish(mb_h5 *file, const char *marker, bool sync, const char **held)
{
    MB_H5_GUARD;
    if (!file->target)
        return mb_fail(MB_STATUS_ARGUMENT, NULL,
                       "'%s' was not made by h5.create: only a created file can be finished",
                       file->path);
    mb_status status = mb_h5_ready(file, true);
    if (status != MB_STATUS_OK && file->id < 0)
        return status;
    if (status == MB_STATUS_OK)
        status = write_marker(file, marker);
    if (status == MB_STATUS_OK)
        status = flush_all(file);
    if (status != MB_STATUS_OK) {
        mb_h5_latch(file, status);
        MB_KEEP_ERROR;
        (void)mb_h5_close(file); /* abandons */
        return status;
    }
    if (H5Fclose(file->id) < 0)
        status = mb_h5_failure(file, NULL, "close the file");
    else if (file->disk.error != 0)
        status = mb_h5_refused(file, NULL, "close the file");
    file->id = -1;
    if (status == MB_STATUS_OK)
        status = reopen_and_verify(file, marker);
    if (status == MB_STATUS_OK)
        status = mb_target_name(file->target, -1, sync, held);
    mb_h5_latch(file, status);
    if (status != MB_STATUS_OK || !held)
        mb_h5_close(file); /* discards what has no name */
    file->fd = -1;
    mb_h5_forget_made(file);
    if (status == MB_STATUS_OK)
        mb_h5_probe_trust(file->path);
    return status;
}
