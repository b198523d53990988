/*
** Created HDF5 files: a temporary name, the first failure latched, verification, rename.
**
** Why so careful: on a full disk H5Dwrite fails, but H5Fclose succeeds, and the file then opens and
** reads, with zeros where data should be. So nothing here trusts H5Fclose: what the disk refused is
** asked of the driver (h5driver.c), the file is synced
** through a descriptor of our own (which reports write-back errors), opened again, compared with
** what was meant to be in it, and only then gets its name.
**
** Invariants: while file->created and file->id >= 0, file->part exists and file->fd is open on it
** and, where the file system can, locked. A part file that can be locked has no owner left and may
** be removed. Unfinished files are on a list (guarded by a mutex, as files may belong to different
** threads), so that a process that ends by exit() leaves none.
*/
#define _GNU_SOURCE
#include "io/h5internal.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t unfinished_lock = PTHREAD_MUTEX_INITIALIZER;
static mb_h5 *unfinished;
static pid_t unfinished_owner; /* a forked child must not remove its parent's files */

static void remove_unfinished(void)
{
    if (getpid() != unfinished_owner)
        return;
    for (const mb_h5 *file = unfinished; file != NULL; file = file->next_unfinished)
        unlink(file->part);
}

static void list_unfinished(mb_h5 *file)
{
    static bool registered = false;
    pthread_mutex_lock(&unfinished_lock);
    if (!registered)
        registered = atexit(remove_unfinished) == 0;
    unfinished_owner = getpid();
    file->next_unfinished = unfinished;
    file->link_unfinished = &unfinished;
    if (unfinished != NULL)
        unfinished->link_unfinished = &file->next_unfinished;
    unfinished = file;
    pthread_mutex_unlock(&unfinished_lock);
}

void mb_h5_settled(mb_h5 *file)
{
    pthread_mutex_lock(&unfinished_lock);
    if (file->link_unfinished != NULL) {
        *file->link_unfinished = file->next_unfinished;
        if (file->next_unfinished != NULL)
            file->next_unfinished->link_unfinished = file->link_unfinished;
        file->link_unfinished = NULL;
    }
    pthread_mutex_unlock(&unfinished_lock);
}

/* The folder of a file name, in `buffer`. */
static const char *folder_of(const char *path, char *buffer, size_t bytes)
{
    snprintf(buffer, bytes, "%s", path);
    return dirname(buffer);
}

mb_status mb_h5_check_target(const char *path, bool overwrite)
{
    struct stat status;
    char buffer[4096];

    if (path[0] == '\0' || path[strlen(path) - 1] == '/' || strlen(path) > sizeof buffer - 64)
        return mb_fail(MB_STATUS_ARGUMENT, "path", "'%s' is not a file name that can be created",
                       path);
    if (stat(path, &status) == 0) {
        if (S_ISDIR(status.st_mode))
            return mb_fail(MB_STATUS_IO, "path",
                           "cannot create '%s': there is a folder of that name", path);
        if (!S_ISREG(status.st_mode))
            return mb_fail(MB_STATUS_IO, "path", "cannot create '%s': it is not an ordinary file",
                           path);
        if (!overwrite)
            return mb_fail(
                MB_STATUS_IO, "overwrite",
                "'%s' exists already: choose another name, or allow overwriting (overwrite = true)",
                path);
    }
    const char *folder = folder_of(path, buffer, sizeof buffer);
    if (stat(folder, &status) != 0)
        return mb_fail(MB_STATUS_IO, "path", "cannot create '%s': folder '%s': %s", path, folder,
                       strerror(errno));
    if (!S_ISDIR(status.st_mode))
        return mb_fail(MB_STATUS_IO, "path", "cannot create '%s': '%s' is not a folder", path,
                       folder);
    if (access(folder, W_OK | X_OK) != 0)
        return mb_fail(MB_STATUS_IO, "path",
                       "cannot create '%s': folder '%s' is not writable (%s); choose another "
                       "folder for the output",
                       path, folder, strerror(errno));
    return MB_STATUS_OK;
}

/* Creates and locks "<path>.part-<pid>". One that exists is either in use, by this process, or left
** by a dead process that had our number: the lock tells. */
static mb_status open_part(mb_h5 *file)
{
    const size_t bytes = strlen(file->path) + 48;
    file->part = malloc(bytes);
    if (file->part == NULL)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left to create '%s'", file->path);
    for (int attempt = 0; attempt < 1000; attempt++) {
        if (attempt == 0)
            snprintf(file->part, bytes, "%s.part-%ld", file->path, (long)getpid());
        else
            snprintf(file->part, bytes, "%s.part-%ld-%d", file->path, (long)getpid(), attempt + 1);
        file->fd = open(file->part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file->fd >= 0) {
            flock(file->fd, LOCK_EX | LOCK_NB); /* best effort */
            return MB_STATUS_OK;
        }
        if (errno != EEXIST)
            break;
        const int old = open(file->part, O_RDWR | O_CLOEXEC);
        if (old >= 0) {
            if (flock(old, LOCK_EX | LOCK_NB) == 0 && unlink(file->part) == 0)
                attempt--; /* it is gone: take the name */
            close(old);
        }
    }
    const int cause = errno;
    const mb_status status =
        mb_fail(MB_STATUS_IO, "path", "cannot create '%s': %s%s", file->part, strerror(cause),
                cause == EACCES || cause == EROFS ? "; choose another folder for the output" : "");
    free(file->part);
    file->part = NULL;
    return status;
}

mb_status mb_h5_create(const char *path, bool overwrite, mb_h5 **out)
{
    MB_H5_GUARD;
    mb_status status = MB_STATUS_OK;
    hid_t access = -1;
    mb_h5 *file;

    *out = NULL;
    mb_h5_quiet();
    MB_TRY(mb_h5_check_target(path, overwrite));
    file = calloc(1, sizeof *file);
    if (file == NULL)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left to create '%s'", path);
    file->id = -1;
    file->fd = -1;
    file->writable = true;
    file->overwrite = overwrite;
    file->path = mb_h5_copy_text(path);
    if (file->path == NULL) {
        status = MB_STATUS_MEMORY;
        goto fail;
    }
    status = open_part(file);
    if (status != MB_STATUS_OK)
        goto fail;

    file->disk.created = true;
    access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
    H5Pset_file_locking(access, false, true);
    H5Pset_alignment(access, 1 << 20, 4096);
    mb_h5_use_driver(access, &file->disk);
    file->id = H5Fcreate(file->part, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    if (file->id < 0) { /* before the next call, which would clear what HDF5 says */
        status = mb_h5_failure(file, NULL, "create the file");
        unlink(file->part);
    }
    H5Pclose(access);
    if (file->id < 0)
        goto fail;
    file->created = true;
    list_unfinished(file);
    if (file->disk.error != 0) {
        status = mb_h5_refused(file, NULL, "create the file");
        goto fail; /* abandons */
    }
    *out = file;
    return MB_STATUS_OK;
fail:
    mb_h5_destroy(file);
    return status;
}

void mb_h5_forget_made(mb_h5 *file)
{
    while (file->made != NULL) {
        h5_made *made = file->made;
        file->made = made->next;
        free(made->path);
        free(made);
    }
    file->made_count = 0;
    free(file->samples);
    file->samples = NULL;
    file->sample_count = 0;
}

/* FNV-1a over 8 bytes at a time, then the rest. */
uint64_t mb_h5_sum(const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    uint64_t sum = 14695981039346656037u;
    for (; count >= 8; count -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        sum = (sum ^ word) * 1099511628211u;
        sum ^= sum >> 29;
    }
    for (; count > 0; count--, at++)
        sum = (sum ^ *at) * 1099511628211u;
    return sum;
}

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
    if (found.is_virtual)
        return mb_h5_check_sources(id, file->part, made->path);
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
    if (row == NULL)
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
                         "verification of '%s': data of '%s' are not what was written (disk full?)",
                         file->path, made->path);
    H5Sclose(to);
    H5Sclose(from);
    H5Tclose(type);
    free(row);
    return status;
}

mb_status mb_h5_verify(mb_h5 *file, hid_t reopened)
{
    for (const h5_made *made = file->made; made != NULL; made = made->next) {
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

/* Opens the closed part file again and compares. */
static mb_status reopen_and_verify(mb_h5 *file, const char *marker)
{
    mb_status status;
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
    H5Pset_file_locking(access, false, true);
    const hid_t id = H5Fopen(file->part, H5F_ACC_RDONLY, access);
    H5Pclose(access);
    if (id < 0)
        return mb_h5_failure(file, NULL, "verify the contents");
    const htri_t marked =
        marker != NULL ? H5Lexists(id, marker, H5P_DEFAULT) : H5Aexists(id, "end_time");
    if (marked <= 0)
        status = mb_fail(MB_STATUS_IO, NULL,
                         "verification of '%s': the completion marker is missing", file->path);
    else
        status = mb_h5_verify(file, id);
    H5Fclose(id);
    return status;
}

static mb_status rename_part(mb_h5 *file, bool sync)
{
    char buffer[4096];
    int result = -1;
    if (!file->overwrite) {
        result = renameat2(AT_FDCWD, file->part, AT_FDCWD, file->path, RENAME_NOREPLACE);
        if (result != 0 && errno == EEXIST)
            return mb_fail(MB_STATUS_IO, "overwrite",
                           "'%s' has come into being meanwhile; it was left as it is", file->path);
    }
    if (result != 0)
        result = rename(file->part, file->path);
    if (result != 0)
        return mb_fail(MB_STATUS_IO, NULL, "cannot give '%s' its name: %s", file->path,
                       strerror(errno));
    /* The name, too, shall survive a power cut. Some network file systems cannot; that is no
    ** failure. */
    const int folder = sync ? open(folder_of(file->path, buffer, sizeof buffer),
                                   O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                            : -1;
    if (folder >= 0) {
        fsync(folder);
        close(folder);
    }
    return MB_STATUS_OK;
}

static mb_status write_marker(mb_h5 *file, const char *marker)
{
    char now[40];
    char *text = mb_h5_now(now, sizeof now);
    mb_h5_value value = {.text = true, .rank = 0, .count = 1, .strings = &text};
    if (marker == NULL)
        return mb_h5_attribute_write(file, "/", "end_time", &value);
    return mb_h5_value_write(file, marker, &value);
}

mb_status mb_h5_finish(mb_h5 *file, const char *marker, bool sync)
{
    MB_H5_GUARD;
    if (!file->created)
        return mb_fail(MB_STATUS_ARGUMENT, NULL,
                       "'%s' was not created here: only a created file is finished", file->path);
    mb_status status = mb_h5_ready(file, true);
    if (status != MB_STATUS_OK && file->id < 0)
        return status;
    if (status == MB_STATUS_OK)
        status = write_marker(file, marker);
    if (status == MB_STATUS_OK) {
        mb_h5_close_datasets(file);
        if (H5Fflush(file->id, H5F_SCOPE_GLOBAL) < 0)
            status = mb_h5_failure(file, NULL, "flush the contents");
        else if (file->disk.error != 0)
            status = mb_h5_refused(file, NULL, "flush the contents");
    }
    if (status != MB_STATUS_OK) {
        mb_h5_latch(file, status);
        mb_h5_close(file); /* abandons */
        return status;
    }
    if (H5Fclose(file->id) < 0)
        status = mb_h5_failure(file, NULL, "close the file");
    else if (file->disk.error != 0)
        status = mb_h5_refused(file, NULL, "close the file");
    file->id = -1;
    if (status == MB_STATUS_OK && sync && fsync(file->fd) != 0)
        status = mb_fail(MB_STATUS_IO, NULL, "cannot write '%s' to the disk: %s", file->path,
                         strerror(errno));
    if (status == MB_STATUS_OK)
        status = reopen_and_verify(file, marker);
    if (status == MB_STATUS_OK)
        status = rename_part(file, sync);
    if (status != MB_STATUS_OK) {
        mb_h5_latch(file, status);
        unlink(file->part);
    }
    mb_h5_settled(file);
    mb_h5_close(file);
    mb_h5_forget_made(file);
    return status;
}
