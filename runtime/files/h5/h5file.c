/*
** Opening and closing HDF5 files. A closed file keeps its mb_h5 until mb_h5_destroy, so that
** handles of datasets stay safe. Created files are in h5result.c.
*/
#define _GNU_SOURCE
#include "files/h5/h5whole.h"
#include "files/inputs/inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool mb_h5_is_open(const mb_h5 *file)
{
    return file->id >= 0 || file->resting;
}

bool mb_h5_is_writable(const mb_h5 *file)
{
    return file->writable;
}

const char *mb_h5_path(const mb_h5 *file)
{
    return file->path;
}

const char *mb_h5_part_path(const mb_h5 *file)
{
    return file->target ? mb_target_now(file->target) : NULL;
}

/* ---- opening ---- */

static const struct {
    const char *bytes;
    size_t count;
    const char *what;
} SIGNATURES[] = {
    {"II*\0", 4, "a TIFF image"},
    {"MM\0*", 4, "a TIFF image"},
    {"II+\0", 4, "a BigTIFF image"},
    {"\x89PNG", 4, "a PNG image"},
    {"CDF", 3, "a classic netCDF"},
    {"\x0e\x03\x13\x01", 4, "an HDF4"},
    {"\x1f\x8b", 2, "a gzipped"},
    {"PK", 2, "a zip"},
    {"\x93NUMPY", 6, "a NumPy"},
    {"<", 1, "a text"},
    {"version https://git-lfs", 23, "a git-lfs pointer"},
};

/* Says what is wrong before HDF5 sees the file: its own messages for these cases help nobody. */
static mb_status check_signature(const char *path)
{
    static const unsigned char HDF5_SIGNATURE[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    unsigned char head[64] = {0};
    struct stat status;
    mb_status result = MB_STATUS_OK;

    if (stat(path, &status) != 0)
        return mb_fail(MB_STATUS_IO, NULL, "cannot open '%s': %s%s", path, strerror(errno),
                       errno == ENOENT ? "; check the name and the current folder" : "");
    if (S_ISDIR(status.st_mode))
        return mb_fail(MB_STATUS_IO, NULL, "cannot open '%s': it is a folder, not an HDF5 file",
                       path);
    if (!S_ISREG(status.st_mode))
        return mb_fail(MB_STATUS_IO, NULL, "cannot open '%s': it is not an ordinary file", path);
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a pipe by now would wait */
    if (fd < 0)
        return mb_fail(MB_STATUS_IO, NULL, "cannot open '%s': %s", path, strerror(errno));
    const ssize_t count = pread(fd, head, sizeof head, 0);
    if (count <= 0) {
        result =
            count == 0
                ? mb_fail(MB_STATUS_IO, NULL, "cannot open '%s': the file is empty (0 bytes)", path)
                : mb_fail(MB_STATUS_IO, NULL, "cannot read '%s': %s", path, strerror(errno));
        goto done;
    }
    if (memcmp(head, HDF5_SIGNATURE, 8) == 0)
        goto done;
    /* A user block may come first: the signature is then at 512, 1024, 2048, ... */
    for (off_t at = 512; at < status.st_size; at *= 2) {
        unsigned char block[8];
        if (pread(fd, block, 8, at) == 8 && memcmp(block, HDF5_SIGNATURE, 8) == 0)
            goto done;
    }
    for (size_t i = 0; i < sizeof SIGNATURES / sizeof SIGNATURES[0]; i++)
        if (memcmp(head, SIGNATURES[i].bytes, SIGNATURES[i].count) == 0) {
            result = mb_fail(MB_STATUS_IO, NULL, "cannot open '%s': it is %s file, not HDF5", path,
                             SIGNATURES[i].what);
            goto done;
        }
    result = mb_fail(MB_STATUS_IO, NULL,
                     "cannot open '%s': it is not an HDF5 file (no signature found in %lld bytes)",
                     path, (long long)status.st_size);
done:
    close(fd);
    return result;
}

/* Has libhdf5 open the file, and takes its size then: what is shorter later has been cut off. */
static mb_status open_contents(mb_h5 *file)
{
    struct stat about;
    H5_OWNED hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    /* As libhdf5 itself opens the files of links and virtual datasets: a file can be open in one
    ** way only. The datasets are closed before the file. */
    H5Pset_fclose_degree(access, H5F_CLOSE_WEAK);
    /* Readers are never locked out; writers lock, where the file system can. */
    H5Pset_file_locking(access, file->writable, true);
    if (file->writable)
        mb_h5_use_driver(access, &file->disk);
    file->id = H5Fopen(file->path,
                       file->writable ? H5F_ACC_RDWR
                       : file->swmr   ? H5F_ACC_RDONLY | H5F_ACC_SWMR_READ
                                      : H5F_ACC_RDONLY,
                       access);
    if (file->id < 0)
        return mb_h5_failure(file, NULL, "open the contents");
    if (fstat(mb_h5_descriptor(file->id), &about) == 0) {
        file->bytes = about.st_size;
        if (!file->writable && !file->replaceable)
            mb_input_note(file->path, mb_h5_descriptor(file->id));
    }
    return MB_STATUS_OK;
}

mb_status mb_h5_open_unprobed(const char *path, const mb_h5_access *how, mb_h5 **out)
{
    MB_H5_GUARD;
    *out = NULL;
    mb_h5_quiet();
    mb_h5_now_at(path);
    MB_TRY(check_signature(path));
    mb_h5 *file = calloc(1, sizeof *file);
    if (!file)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left to open '%s'", path);
    file->id = -1;
    file->fd = -1;
    if (how) {
        file->writable = how->writable;
        file->allow_external = how->allow_external;
        file->allow_missing = how->allow_missing;
        file->replaceable = how->replaceable;
        file->swmr = how->swmr && !how->writable;
    }
    file->path = mb_h5_copy_text(path);
    mb_status status = file->path ? mb_h5_begin_links(file) : MB_STATUS_MEMORY;
    if (status == MB_STATUS_OK)
        status = open_contents(file);
    if (status != MB_STATUS_OK) {
        mb_h5_destroy(file);
        return status;
    }
    *out = file;
    return MB_STATUS_OK;
}

mb_status mb_h5_open(const char *path, const mb_h5_access *how, mb_h5 **out)
{
    *out = NULL;
    MB_TRY(check_signature(path));
    MB_TRY(mb_h5_probe(path, how));
    return mb_h5_open_unprobed(path, how, out);
}

/* ---- closing ---- */

mb_status mb_h5_close(mb_h5 *file)
{
    MB_H5_GUARD;
    mb_status status = MB_STATUS_OK;
    if (file->id >= 0) {
        mb_h5_quiet();
        if (file->created) {
            file->disk.abandoned = true;
            if (file->target)
                mb_target_discard(file->target); /* first: libhdf5 may crash */
        }
        mb_h5_close_datasets(file);
        if (!file->created && file->writable && H5Fflush(file->id, H5F_SCOPE_GLOBAL) < 0)
            status = mb_h5_failure(file, NULL, "write the last changes");
        if (H5Fclose(file->id) < 0 && !file->created && status == MB_STATUS_OK)
            status = mb_h5_failure(file, NULL, "finish the contents");
        if (file->disk.error != 0 && !file->created && status == MB_STATUS_OK)
            status = mb_h5_refused(file, NULL, "write the last changes");
        file->id = -1;
    }
    if (file->resting)
        mb_h5_close_datasets(file);
    file->resting = false;
    mb_h5_end_links(file);
    if (file->target)
        mb_target_discard(file->target); /* a file with its name stays */
    else if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
    return status;
}

void mb_h5_destroy(mb_h5 *file)
{
    MB_H5_GUARD;
    if (!file)
        return;
    MB_KEEP_ERROR;
    (void)mb_h5_close(file);
    mb_h5_free_entries(file);
    mb_h5_free_value(file);
    mb_h5_forget_made(file);
    mb_h5_forget_gaps(file);
    mb_h5_forget_places(file);
    mb_target_destroy(file->target);
    free(file->found);
    free(file->path);
    free(file);
}
