/*
** Files of plain elements (rawfile.h): positioned reads and writes of strided blocks.
**
** A block is walked as runs: the trailing axes along which array and file both are dense make one
** run, the axes before them an odometer.
*/
#define _GNU_SOURCE
#include "files/rawfile.h"
#include "files/inputs/inputs.h"
#include "files/positioned.h"
#include "files/target.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct mb_rawfile {
    char *path;
    mb_target *target; /* NULL: not created here, or closed */
    int fd;            /* -1: closed */
    bool writable;
    uint64_t bytes;
    bool brief;    /* opened by its name for each piece of a transfer */
    int users;     /* transfers of carriers under way */
    int shared;    /* their descriptor: it outlives `fd`. -1: none */
    bool orphaned; /* freed by the last of them */
};

static mb_rawfile *make(const char *path)
{
    mb_rawfile *file = calloc(1, sizeof *file);
    if (file) {
        file->fd = file->shared = -1;
        file->path = strdup(path);
    }
    if (!file || !file->path) {
        free(file);
        mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left to open '%s'", path);
        return NULL;
    }
    return file;
}

mb_status mb_rawfile_open(const char *path, bool part, mb_rawfile **out)
{
    struct stat facts;
    *out = NULL;
    mb_rawfile *file = make(path);
    if (!file)
        return MB_STATUS_MEMORY;
    file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe would wait for a writer */
    if (file->fd < 0 || fstat(file->fd, &facts) != 0) {
        mb_status status =
            mb_fail(MB_STATUS_IO, "path", "cannot open '%s': %s%s", path, strerror(errno),
                    errno == ENOENT ? "; check the name and the current folder" : "");
        mb_rawfile_destroy(file);
        return status;
    }
    if (!S_ISREG(facts.st_mode)) {
        mb_rawfile_destroy(file);
        return mb_fail(MB_STATUS_IO, "path", "'%s' is not an ordinary file", path);
    }
    if (!part)
        mb_input_note(path, file->fd);
    file->bytes = (uint64_t)facts.st_size;
    *out = file;
    return MB_STATUS_OK;
}

/* A file that is written as `target`. */
static mb_status adopt(const char *path, mb_target *target, mb_rawfile **out)
{
    mb_rawfile *file = make(path);
    if (!file) {
        mb_target_destroy(target);
        return MB_STATUS_MEMORY;
    }
    file->writable = true;
    file->target = target;
    file->fd = mb_target_fd(target);
    *out = file;
    return MB_STATUS_OK;
}

mb_status mb_rawfile_create(const char *path, bool overwrite, mb_rawfile **out)
{
    mb_target *target;
    *out = NULL;
    MB_TRY(mb_target_create(path, overwrite, &target));
    return adopt(path, target, out);
}

mb_status mb_rawfile_create_kept(const char *path, const char *now, bool overwrite,
                                 mb_rawfile **out)
{
    mb_target *target;
    *out = NULL;
    MB_TRY(mb_target_keep(path, now, overwrite, &target));
    return adopt(path, target, out);
}

mb_status mb_rawfile_resume_kept(const char *path, const char *now, bool overwrite,
                                 mb_rawfile **out)
{
    mb_target *target;
    struct stat facts;
    *out = NULL;
    MB_TRY(mb_target_resume(path, now, NULL, overwrite, &target));
    MB_TRY(adopt(path, target, out));
    if (fstat((*out)->fd, &facts) == 0)
        (*out)->bytes = (uint64_t)facts.st_size;
    return MB_STATUS_OK;
}

mb_status mb_rawfile_scratch(const char *beside, mb_rawfile **out)
{
    char folder[PATH_MAX];
    *out = NULL;
    snprintf(folder, sizeof folder, "%s", beside);
    mb_rawfile *file = make(beside);
    if (!file)
        return MB_STATUS_MEMORY;
    file->writable = true;
    const mb_status status = mb_target_scratch(dirname(folder), &file->fd);
    if (status != MB_STATUS_OK) {
        mb_rawfile_destroy(file);
        return status;
    }
    *out = file;
    return MB_STATUS_OK;
}

mb_status mb_rawfile_keep(const char *path, bool shared, bool brief, mb_rawfile **out)
{
    struct stat facts;
    *out = NULL;
    mb_rawfile *file = make(path);
    if (!file)
        return MB_STATUS_MEMORY;
    file->writable = true;
    file->brief = brief;
    file->fd =
        open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, shared ? 0666 : 0600);
    if (file->fd < 0 || fstat(file->fd, &facts) != 0 || !S_ISREG(facts.st_mode)) {
        mb_fail(MB_STATUS_IO, "path", "cannot create '%s': %s", path,
                file->fd < 0 ? strerror(errno) : "it is not an ordinary file");
        mb_rawfile_destroy(file);
        return MB_STATUS_IO;
    }
    file->bytes = (uint64_t)facts.st_size;
    *out = file;
    return MB_STATUS_OK;
}

static mb_status ready(const mb_rawfile *file, bool writing)
{
    if (file->fd < 0)
        return mb_fail(MB_STATUS_ARGUMENT, NULL, "'%s' has been closed; open it again", file->path);
    if (writing && !file->writable)
        return mb_fail(MB_STATUS_ARGUMENT, NULL,
                       "'%s' is open for reading only: write to a new file", file->path);
    return MB_STATUS_OK;
}

/* A created file that could not be written never gets its name. */
static mb_status latch(mb_rawfile *file, mb_status status)
{
    return file->target ? mb_target_latch(file->target, status) : status;
}

mb_status mb_rawfile_resize(mb_rawfile *file, uint64_t bytes)
{
    MB_TRY(ready(file, true));
    /* Where the file system cannot reserve (fallocate is not emulated: that would write it all),
    ** a full disk is found by the writes. */
    if (bytes > file->bytes && fallocate(file->fd, 0, 0, (off_t)bytes) != 0 &&
        errno != EOPNOTSUPP && errno != ENOSYS)
        return latch(file,
                     mb_fail_bytes(MB_STATUS_IO, bytes, 0, "no room for the %llu bytes of '%s': %s",
                                   (unsigned long long)bytes, file->path, strerror(errno)));
    if (ftruncate(file->fd, (off_t)bytes) != 0)
        return latch(file, mb_fail(MB_STATUS_IO, NULL, "cannot set the size of '%s': %s",
                                   file->path, strerror(errno)));
    file->bytes = bytes;
    return MB_STATUS_OK;
}

static mb_status need_target(const mb_rawfile *file)
{
    return file->target
               ? MB_STATUS_OK
               : mb_fail(MB_STATUS_ARGUMENT, NULL,
                         "'%s' was not created: only a created file can be finished", file->path);
}

mb_status mb_rawfile_finish(mb_rawfile *file)
{
    MB_TRY(ready(file, true));
    if (file->users > 0)
        return mb_fail(MB_STATUS_ARGUMENT, NULL,
                       "'%s' is still being written: finish the carrier first", file->path);
    MB_TRY(need_target(file));
    const mb_status status = mb_target_name(file->target, (int64_t)file->bytes, true, NULL);
    mb_rawfile_close(file);
    return status;
}

void mb_rawfile_close(mb_rawfile *file)
{
    if (file->target)
        mb_target_destroy(file->target);
    else if (file->fd >= 0)
        close(file->fd);
    file->target = NULL;
    file->fd = -1;
}

void mb_rawfile_destroy(mb_rawfile *file)
{
    if (!file)
        return;
    mb_rawfile_close(file);
    file->orphaned = true;
    if (file->users > 0)
        return;
    free(file->path);
    free(file);
}

bool mb_rawfile_is_open(const mb_rawfile *file)
{
    return file->fd >= 0;
}

const char *mb_rawfile_path(const mb_rawfile *file)
{
    return file->path;
}

const char *mb_rawfile_now(const mb_rawfile *file)
{
    return file->target ? mb_target_now(file->target) : NULL;
}

uint64_t mb_rawfile_bytes(const mb_rawfile *file)
{
    return file->bytes;
}

/* Reads from a descriptor of the file; a file that ends early says so. */
static mb_status get(const mb_rawfile *file, int fd, uint64_t offset, void *to, uint64_t count)
{
    const int64_t moved = mb_read_at(fd, to, count, offset);
    if (moved < 0)
        return mb_fail(MB_STATUS_IO, NULL, "cannot read '%s': %s", file->path, strerror(errno));
    if ((uint64_t)moved < count)
        return mb_fail_bytes(MB_STATUS_IO, offset + count, file->bytes,
                             "'%s' is truncated: %llu bytes are expected at offset %llu, but the "
                             "file has %llu bytes",
                             file->path, (unsigned long long)count, (unsigned long long)offset,
                             (unsigned long long)file->bytes);
    return MB_STATUS_OK;
}

static mb_status put(const mb_rawfile *file, int fd, uint64_t offset, const void *from,
                     uint64_t count)
{
    if (mb_write_at(fd, from, count, offset) < 0)
        return mb_fail(MB_STATUS_IO, NULL, "cannot write '%s': %s", file->path, strerror(errno));
    return MB_STATUS_OK;
}

mb_status mb_rawfile_get(mb_rawfile *file, uint64_t offset, void *to, uint64_t count)
{
    MB_TRY(ready(file, false));
    return get(file, file->fd, offset, to, count);
}

mb_status mb_rawfile_put(mb_rawfile *file, uint64_t offset, const void *from, uint64_t count)
{
    MB_TRY(ready(file, true));
    const mb_status status = put(file, file->fd, offset, from, count);
    if (status == MB_STATUS_OK && offset + count > file->bytes)
        file->bytes = offset + count;
    return latch(file, status);
}

/* ---- for carriers ---- */

mb_status mb_rawfile_use(mb_rawfile *file, bool writing, int change)
{
    if (change > 0) {
        MB_TRY(ready(file, writing));
        if (file->users == 0 && !file->brief)
            file->shared = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
        if (file->shared < 0 && !file->brief)
            return mb_fail(MB_STATUS_IO, NULL, "cannot open '%s' a second time: %s", file->path,
                           strerror(errno));
    }
    file->users += change;
    if (file->users > 0)
        return MB_STATUS_OK;
    if (file->shared >= 0)
        close(file->shared);
    file->shared = -1;
    if (file->orphaned)
        mb_rawfile_destroy(file);
    return MB_STATUS_OK;
}

mb_status mb_rawfile_enter(const mb_rawfile *file, bool writing, int *fd)
{
    const int flags = writing ? O_RDWR : O_RDONLY;
    *fd = file->shared;
    if (!file->brief)
        return MB_STATUS_OK;
    *fd = open(file->path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    return *fd >= 0 ? MB_STATUS_OK
                    : mb_fail(MB_STATUS_IO, NULL, "cannot open '%s' again: %s", file->path,
                              strerror(errno));
}

void mb_rawfile_leave(const mb_rawfile *file, int fd)
{
    if (file->brief && fd >= 0)
        close(fd);
}

mb_status mb_rawfile_carry(const mb_rawfile *file, int fd, uint64_t offset, void *host,
                           uint64_t bytes, bool writing)
{
    return writing ? put(file, fd, offset, host, bytes) : get(file, fd, offset, host, bytes);
}

void mb_rawfile_spoil(mb_rawfile *file)
{
    MB_KEEP_ERROR;
    (void)latch(file,
                mb_fail(MB_STATUS_IO, NULL, "'%s' has not been written completely", file->path));
}

/* ---- blocks ---- */

void mb_swap_bytes(void *data, uint64_t count, size_t bytes)
{
    if (bytes == 2) {
        uint16_t *v = data;
        for (uint64_t i = 0; i < count; i++)
            v[i] = __builtin_bswap16(v[i]);
    } else if (bytes == 4) {
        uint32_t *v = data;
        for (uint64_t i = 0; i < count; i++)
            v[i] = __builtin_bswap32(v[i]);
    } else if (bytes == 8) {
        uint64_t *v = data;
        for (uint64_t i = 0; i < count; i++)
            v[i] = __builtin_bswap64(v[i]);
    }
}

/* A block that is read, or written where `stored` is NULL. */
typedef struct block_move {
    mb_rawfile *file;
    const mb_array *array;
    const mb_stored *stored;
    mb_samples_place place;
    int64_t element; /* bytes in the file */
} block_move;

/* Reads a run of elements to `here`; the first is number `index` of the block. */
static mb_status read_run(const block_move *move, uint64_t offset, char *here, int64_t run,
                          int64_t index)
{
    const mb_stored *stored = move->stored;
    const mb_dtype dtype = move->array->dtype;
    const size_t element = (size_t)move->element;
    char *tail = here + run * ((int64_t)mb_dtype_bytes(dtype) - move->element);
    MB_TRY(mb_rawfile_get(move->file, offset, tail, (uint64_t)(run * move->element)));
    if (stored->swap && mb_dtype_kind(dtype) == MB_CLASS_COMPLEX)
        mb_swap_bytes(tail, (uint64_t)run * 2, element / 2);
    else if (stored->swap)
        mb_swap_bytes(tail, (uint64_t)run, element);
    return stored->samples == MB_SAMPLES_AS_STORED
               ? MB_STATUS_OK
               : mb_samples_widen(stored->samples, here, tail, run, &move->place, index);
}

static mb_status transfer(const block_move *move, uint64_t offset, const int64_t *steps)
{
    const mb_array *array = move->array;
    const int64_t wide = (int64_t)mb_dtype_bytes(array->dtype), element = move->element;
    const mb_shape *shape = &array->shape;
    int64_t run = 1, index[MB_MAX_RANK] = {0}, polled = 0, done = 0;
    int outer = shape->rank;

    MB_TRY(ready(move->file, !move->stored));
    if (strcmp(array->device->backend->name, "host") != 0)
        return mb_fail(
            MB_STATUS_DEVICE, NULL,
            "an array that is read from a file or written to one must be on the host, not on %s",
            array->device->id);
    if (!mb_array_has_data(array))
        return MB_STATUS_OK;
    MB_TRY(mb_device_sync(array->device));
    while (outer > 0 && (shape->dims[outer - 1] == 1 ||
                         (array->strides[outer - 1] == run && steps[outer - 1] == run * element)))
        run *= shape->dims[--outer];
    for (;;) {
        int64_t from = 0, at = 0;
        for (int axis = 0; axis < outer; axis++) {
            from += index[axis] * array->strides[axis];
            at += index[axis] * steps[axis];
        }
        char *here = (char *)array->data + from * wide;
        if (move->stored)
            MB_TRY(read_run(move, offset + (uint64_t)at, here, run, done));
        else
            MB_TRY(
                mb_rawfile_put(move->file, offset + (uint64_t)at, here, (uint64_t)(run * element)));
        done += run;
        if ((polled += run * element) >= (INT64_C(32) << 20)) {
            MB_TRY(mb_cancel_check());
            polled = 0;
        }
        int axis = outer - 1;
        while (axis >= 0 && ++index[axis] == shape->dims[axis])
            index[axis--] = 0;
        if (axis < 0)
            return MB_STATUS_OK;
    }
}

mb_status mb_rawfile_read(mb_rawfile *file, uint64_t offset, const int64_t *steps,
                          const mb_stored *stored, mb_array *array)
{
    const mb_shape *shape = &array->shape;
    block_move move = {file, array, stored,
                       mb_samples_place_of(file->path, shape->rank, shape->dims),
                       (int64_t)mb_samples_bytes(stored->samples, array->dtype)};
    if (array->dtype != mb_samples_dtype(stored->samples, array->dtype))
        return mb_fail(MB_STATUS_DTYPE, NULL, "the elements of '%s' are not read as %s", file->path,
                       mb_dtype_name(array->dtype));
    for (int axis = 0; axis < shape->rank; axis++)
        move.place.origin[axis] = stored->first ? stored->first[axis] : 0;
    return transfer(&move, offset, steps);
}

mb_status mb_rawfile_write(mb_rawfile *file, uint64_t offset, const int64_t *steps,
                           const mb_array *array)
{
    const block_move move = {
        .file = file, .array = array, .element = (int64_t)mb_dtype_bytes(array->dtype)};
    return transfer(&move, offset, steps);
}
