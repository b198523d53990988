/*
** The HDF5 file driver by which files are written: POSIX calls, as HDF5's own, but for what it does
** when the disk refuses.
**
** libhdf5 cannot get out of a flush that failed: the file can be closed no more, its descriptor
** stays open, and its memory is lost. So what could not be written is reported as written, and the
** error kept (h5_disk.error) for whoever owns the file: asked for after slabs, before every later
** call (mb_h5_ready) and at the end (mb_h5_finish, mb_h5_close). Of an abandoned file
** (h5_disk.abandoned) nothing more is written at all.
**
** Invariants: the owner's h5_disk outlives the file's id. Like all of libhdf5, the callbacks run
** under MB_H5_GUARD.
*/
#define _GNU_SOURCE
#include "files/h5/library/h5library.h"
#include "files/positioned.h"

#if H5_VERSION_GE(1, 13, 2)
#include <H5FDdevelop.h>
#endif

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct h5_posix {
    H5FD_t base; /* libhdf5's part comes first */
    h5_disk *disk;
    int fd;
    dev_t device;
    ino_t inode;
    haddr_t allocated, end; /* what libhdf5 has given away; of the file */
    bool ignore_refused_locks;
} h5_posix;

/* What the list of access properties carries. */
typedef struct driver_info {
    h5_disk *disk;
} driver_info;

static void push(hid_t minor, const char *what, int cause)
{
    H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_VFL, minor,
             "%s, errno = %d, error message = '%s'", what, cause, strerror(cause));
}

static H5FD_t *posix_open(const char *name, unsigned flags, hid_t access, haddr_t limit)
{
    (void)limit;
    const driver_info *info = H5Pget_driver_info(access);
    int mode = (flags & H5F_ACC_RDWR ? O_RDWR : O_RDONLY) | O_CLOEXEC;
    hbool_t locking = true, ignore = false;
    struct stat status;

    mode |= flags & H5F_ACC_TRUNC ? O_TRUNC : 0;
    mode |= flags & H5F_ACC_CREAT ? O_CREAT : 0;
    mode |= flags & H5F_ACC_EXCL ? O_EXCL : 0;
    h5_posix *file = calloc(1, sizeof *file);
    if (!file) {
        push(H5E_CANTOPENFILE, "unable to open file", ENOMEM);
        return NULL;
    }
    file->fd =
        info && info->disk && info->disk->created
            ? fcntl(info->disk->fd, F_DUPFD_CLOEXEC, 0) /* its name may lead elsewhere by now */
            : open(name, mode, 0666);
    if (file->fd < 0 || fstat(file->fd, &status) != 0) {
        push(H5E_CANTOPENFILE, "unable to open file", errno);
        if (file->fd >= 0)
            close(file->fd);
        free(file);
        return NULL;
    }
    H5Pget_file_locking(access, &locking, &ignore);
    file->ignore_refused_locks = ignore;
    file->disk = info ? info->disk : NULL;
    file->device = status.st_dev;
    file->inode = status.st_ino;
    file->end = (haddr_t)status.st_size;
    return &file->base;
}

static herr_t posix_close(H5FD_t *base)
{
    h5_posix *file = (h5_posix *)base;
    close(file->fd);
    free(file);
    return 0;
}

static int posix_compare(const H5FD_t *a, const H5FD_t *b)
{
    const h5_posix *one = (const h5_posix *)a, *other = (const h5_posix *)b;
    if (one->device != other->device)
        return one->device < other->device ? -1 : 1;
    return one->inode < other->inode ? -1 : one->inode > other->inode;
}

static herr_t posix_query(const H5FD_t *base, unsigned long *flags)
{
    (void)base;
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
             H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_POSIX_COMPAT_HANDLE |
             H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
    return 0;
}

static void *posix_access(H5FD_t *base)
{
    driver_info *info = malloc(sizeof *info);
    if (info)
        info->disk = ((h5_posix *)base)->disk;
    return info;
}

static haddr_t posix_allocated(const H5FD_t *base, H5FD_mem_t type)
{
    (void)type;
    return ((const h5_posix *)base)->allocated;
}

static herr_t posix_allocate(H5FD_t *base, H5FD_mem_t type, haddr_t end)
{
    (void)type;
    ((h5_posix *)base)->allocated = end;
    return 0;
}

static haddr_t posix_end(const H5FD_t *base, H5FD_mem_t type)
{
    (void)type;
    return ((const h5_posix *)base)->end;
}

static herr_t posix_handle(H5FD_t *base, hid_t access, void **handle)
{
    (void)access;
    *handle = &((h5_posix *)base)->fd;
    return 0;
}

/* Past the file's end, zeros. */
static herr_t posix_read(H5FD_t *base, H5FD_mem_t type, hid_t transfer, haddr_t at, size_t bytes,
                         void *buffer)
{
    (void)type, (void)transfer;
    const h5_posix *file = (const h5_posix *)base;
    const int64_t moved = mb_read_at(file->fd, buffer, bytes, at);
    if (moved < 0) {
        push(H5E_READERROR, "file read failed", errno);
        return -1;
    }
    memset((char *)buffer + moved, 0, bytes - (size_t)moved);
    return 0;
}

/* The disk has refused. Only where nobody would ask for it is libhdf5 told. */
static herr_t refused(h5_posix *file, const char *what, int cause)
{
    if (!file->disk) {
        push(H5E_WRITEERROR, what, cause);
        return -1;
    }
    if (file->disk->error == 0)
        file->disk->error = cause;
    return 0;
}

static herr_t posix_write(H5FD_t *base, H5FD_mem_t type, hid_t transfer, haddr_t at, size_t bytes,
                          const void *buffer)
{
    (void)type, (void)transfer;
    h5_posix *file = (h5_posix *)base;
    if (file->disk && file->disk->abandoned)
        return 0;
    if (mb_write_at(file->fd, buffer, bytes, at) < 0)
        return refused(file, "file write failed", errno);
    if (at + bytes > file->end)
        file->end = at + bytes;
    return 0;
}

/* Cuts or extends the file to what libhdf5 has given away. */
static herr_t posix_truncate(H5FD_t *base, hid_t transfer, hbool_t closing)
{
    (void)transfer, (void)closing;
    h5_posix *file = (h5_posix *)base;
    if (file->allocated == file->end || (file->disk && file->disk->abandoned))
        return 0;
    if (ftruncate(file->fd, (off_t)file->allocated) != 0)
        return refused(file, "unable to extend file properly", errno);
    file->end = file->allocated;
    return 0;
}

/* A created file is locked by its owner. */
static herr_t posix_lock(H5FD_t *base, hbool_t exclusive)
{
    const h5_posix *file = (const h5_posix *)base;
    if (file->disk && file->disk->created)
        return 0;
    if (flock(file->fd, (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0 ||
        (errno == ENOSYS && file->ignore_refused_locks))
        return 0;
    push(H5E_CANTLOCKFILE, "unable to lock file", errno);
    return -1;
}

static herr_t posix_unlock(H5FD_t *base)
{
    const h5_posix *file = (const h5_posix *)base;
    if (!file->disk || !file->disk->created)
        flock(file->fd, LOCK_UN);
    return 0;
}

static const H5FD_class_t DRIVER = {
#ifdef H5FD_CLASS_VERSION
    .version = H5FD_CLASS_VERSION,
    .value = 512, /* the first that is free for all */
#endif
    .name = "moonbeam",
    .maxaddr = ((haddr_t)1 << 63) - 1,
    .fc_degree = H5F_CLOSE_WEAK,
    .fapl_size = sizeof(driver_info),
    .fapl_get = posix_access,
    .open = posix_open,
    .close = posix_close,
    .cmp = posix_compare,
    .query = posix_query,
    .get_eoa = posix_allocated,
    .set_eoa = posix_allocate,
    .get_eof = posix_end,
    .get_handle = posix_handle,
    .read = posix_read,
    .write = posix_write,
    .truncate = posix_truncate,
    .lock = posix_lock,
    .unlock = posix_unlock,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

void mb_h5_use_driver(hid_t access, h5_disk *disk)
{
    static hid_t driver = -1;
    const driver_info info = {disk};
    if (driver < 0)
        driver = H5FDregister(&DRIVER);
    H5Pset_driver(access, driver, &info);
}

int mb_h5_descriptor(hid_t file)
{
    void *handle = NULL;
    return file >= 0 && H5Fget_vfd_handle(file, H5P_DEFAULT, &handle) >= 0 && handle
               ? *(const int *)handle
               : -1;
}
