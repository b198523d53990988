/*
** New datasets with their disk space.
*/
#define _GNU_SOURCE
#include "files/h5/data/h5data.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/statvfs.h>

/* Datasets from here on take their disk space when they are created. */
#define RESERVE_BYTES ((uint64_t)1 << 20)

/* ---- disk space ---- */

/* Is there room for `bytes` more? Then take it, where the file system can. */
static mb_status reserve_space(mb_h5 *file, uint64_t bytes)
{
    struct statvfs disk;
    char need[32], have[32];
    hsize_t size = 0;
    if (file->fd < 0 || H5Fflush(file->id, H5F_SCOPE_LOCAL) < 0 ||
        H5Fget_filesize(file->id, &size) < 0)
        return MB_STATUS_OK;
    while (fallocate(file->fd, 0, 0, (off_t)size) != 0) {
        if (errno == EINTR)
            continue;
        if (errno != ENOSPC && errno != EDQUOT && errno != EFBIG)
            return MB_STATUS_OK; /* not supported here: the free space was checked */
        const int cause = errno;
        const uint64_t left =
            fstatvfs(file->fd, &disk) == 0 ? (uint64_t)disk.f_bavail * disk.f_frsize : 0;
        return mb_fail_bytes(
            MB_STATUS_IO, bytes, left,
            "no room for %s in '%s' (%s; %s left): free some space or write elsewhere",
            mb_bytes_format(bytes, need, sizeof need), file->path, strerror(cause),
            mb_bytes_format(left, have, sizeof have));
    }
    return MB_STATUS_OK;
}

mb_status mb_h5_check_space(mb_h5 *file, uint64_t bytes)
{
    struct statvfs disk;
    char need[32], have[32];
    if (file->fd < 0 || fstatvfs(file->fd, &disk) != 0)
        return MB_STATUS_OK;
    const uint64_t left = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (bytes <= left)
        return MB_STATUS_OK;
    return mb_fail_bytes(
        MB_STATUS_IO, bytes, left,
        "no room for %s in '%s' (the disk has %s left): free some space or write elsewhere",
        mb_bytes_format(bytes, need, sizeof need), file->path,
        mb_bytes_format(left, have, sizeof have));
}

/* ---- creation ---- */

mb_status mb_h5_adopt_made(mb_h5 *file, hid_t id, const char *path, mb_h5_dataset **out)
{
    MB_TRY(mb_h5_adopt(file, id, path, out));
    const mb_status status = mb_h5_remember(*out);
    if (status != MB_STATUS_OK) {
        mb_h5_dataset_destroy(*out);
        *out = NULL;
    }
    return status;
}

mb_status mb_h5_dataset_create(mb_h5 *file, const char *path, mb_dtype dtype, int rank,
                               const int64_t *dims, const mb_h5_layout *layout, mb_h5_dataset **out)
{
    MB_H5_GUARD;
    uint64_t bytes = mb_dtype_bytes(dtype);
    hsize_t extent[MB_H5_MAX_RANK], chunks[MB_H5_MAX_RANK];
    const bool compressed = layout && layout->deflate > 0;
    bool chunked = compressed || (layout && layout->chunks);

    *out = NULL;
    MB_TRY(mb_h5_ready(file, true));
    if (rank < 0 || rank > MB_H5_MAX_RANK)
        return mb_fail(MB_STATUS_SHAPE, "shape", "a dataset has at most %d axes", MB_H5_MAX_RANK);
    if (layout && (layout->deflate < 0 || layout->deflate > 9))
        return mb_fail(MB_STATUS_ARGUMENT, "deflate", "deflate is a level from 0 to 9, not %d",
                       layout->deflate);
    for (int axis = 0; axis < rank; axis++) {
        if (dims[axis] < 0)
            return mb_fail(MB_STATUS_SHAPE, "shape", "extent %d of '%s' is negative", axis + 1,
                           path);
        extent[axis] = (hsize_t)dims[axis];
        bytes = mb_bytes_mul(bytes, (uint64_t)dims[axis]);
        /* Default chunks: whole frames. */
        chunks[axis] = axis < rank - 2 ? 1 : (hsize_t)dims[axis];
        if (layout && layout->chunks) {
            if (layout->chunks[axis] < 1 || (layout->chunks[axis] > dims[axis] && dims[axis] > 0))
                return mb_fail(MB_STATUS_ARGUMENT, "chunks",
                               "the chunk extent of axis %d must be from 1 to %lld, got %lld",
                               axis + 1, (long long)dims[axis], (long long)layout->chunks[axis]);
            chunks[axis] = (hsize_t)layout->chunks[axis];
        }
    }
    if (bytes > (uint64_t)INT64_MAX)
        return mb_fail(MB_STATUS_SHAPE, "shape", "'%s' would be larger than any file", path);
    if (rank == 0 || bytes == 0)
        chunked = false; /* nothing to cut */
    if (chunked) {
        uint64_t chunk = mb_dtype_bytes(dtype);
        for (int axis = 0; axis < rank; axis++)
            chunk = mb_bytes_mul(chunk, chunks[axis]);
        if (chunk > UINT32_MAX)
            return mb_fail(MB_STATUS_ARGUMENT, "chunks",
                           "a chunk of '%s' would be larger than 4 GiB: give chunks", path);
    }
    MB_TRY(mb_h5_need_new(file, path));
    if (!compressed)
        MB_TRY(mb_h5_latch(file, mb_h5_check_space(file, bytes)));

    H5_OWNED hid_t type = mb_h5_type_of(dtype), parents = mb_h5_parents();
    H5_OWNED hid_t space = rank == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(rank, extent, NULL);
    H5_OWNED hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    if (chunked) {
        H5Pset_chunk(properties, rank, chunks);
        if (compressed) {
            H5Pset_shuffle(properties);
            H5Pset_deflate(properties, (unsigned)layout->deflate);
        }
    }
    H5Pset_obj_track_times(properties, false);
    if (!compressed && bytes > 0 && (bytes >= RESERVE_BYTES || (layout && layout->early))) {
        H5Pset_alloc_time(properties, H5D_ALLOC_TIME_EARLY);
        H5Pset_fill_time(properties, H5D_FILL_TIME_NEVER);
    }
    const hid_t id = H5Dcreate2(file->id, path, type, space, parents, properties, H5P_DEFAULT);
    if (id < 0)
        return mb_h5_latch(file, mb_h5_failure(file, path, "create dataset"));
    mb_status status = MB_STATUS_OK;
    if (!compressed && bytes >= RESERVE_BYTES && (!layout || !layout->sparse))
        status = mb_h5_latch(file, reserve_space(file, bytes));
    if (status == MB_STATUS_OK)
        return mb_h5_adopt_made(file, id, path, out);
    H5Dclose(id);
    return status;
}
