/*
** Compressed frames, decoded beside libhdf5: it hands out the stored bytes of a chunk under its lock, and the calling thread
** inflates them and puts the bytes in order. For the two filters that h5py and most detectors use (shuffle, deflate), where
** chunks hold whole frames.
*/
#include "io/h5internal.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* The filters of a dataset in the order of writing; false when others are among them. */
static bool known_filters(const mb_h5_dataset *dataset, int *shuffle, int *deflate)
{
    const hid_t properties = H5Dget_create_plist(dataset->id);
    const int count = H5Pget_nfilters(properties);
    *shuffle = *deflate = -1;
    bool known = count > 0;
    for (int i = 0; i < count && known; i++) {
        unsigned flags = 0;
        size_t values = 0;
        const H5Z_filter_t id =
            H5Pget_filter2(properties, (unsigned)i, &flags, &values, NULL, 0, NULL, NULL);
        if (id == H5Z_FILTER_SHUFFLE && *shuffle < 0 && *deflate < 0)
            *shuffle = i;
        else if (id == H5Z_FILTER_DEFLATE && *deflate < 0)
            *deflate = i;
        else
            known = false;
    }
    H5Pclose(properties);
    return known;
}

bool mb_h5_packed_possible(mb_h5_dataset *dataset, mb_dtype dtype)
{
    MB_H5_GUARD;
    const mb_h5_info *info = &dataset->info;
    int shuffle, deflate;
    if (dataset->file == NULL || dataset->id < 0 || dataset->file->writable || !info->numeric ||
        !info->filtered || info->rank != 3 || info->chunks[1] != info->dims[1] ||
        info->chunks[2] != info->dims[2])
        return false;
    mb_h5_quiet();
    const bool possible =
        mb_h5_same_type(dataset, dtype) && known_filters(dataset, &shuffle, &deflate);
    H5Eclear2(H5E_DEFAULT);
    return possible;
}

/* The stored bytes of the chunk that begins at a frame, in memory to be freed; NULL where there is no chunk. */
static mb_status fetch(mb_h5_dataset *dataset, int64_t frame, unsigned char **stored,
                       hsize_t *bytes, uint32_t *skipped, int *shuffle, int *deflate)
{
    MB_H5_GUARD;
    const hsize_t at[3] = {(hsize_t)frame, 0, 0};
    MB_TRY(mb_h5_ready(dataset->file, false));
    if (!known_filters(dataset, shuffle, deflate))
        return mb_fail(MB_STATUS_INTERNAL, NULL, "'%s' has other filters now", dataset->path);
    if (H5Dget_chunk_storage_size(dataset->id, at, bytes) < 0)
        return mb_h5_failure(dataset->file, dataset->path, "find a chunk of");
    if (*bytes == 0)
        return MB_STATUS_OK;
    *stored = malloc(*bytes);
    if (*stored == NULL)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left to read '%s'", dataset->path);
    if (H5Dread_chunk(dataset->id, H5P_DEFAULT, at, skipped, *stored) < 0)
        return mb_h5_failure(dataset->file, dataset->path, "read a chunk of");
    return mb_h5_check_whole(dataset, NULL);
}

/* Byte k of every element is stored together: k-th plane of n bytes. */
static void unshuffle(const unsigned char *from, unsigned char *to, uint64_t bytes, size_t size)
{
    const uint64_t n = bytes / size;
    if (size == 2) {
        for (uint64_t i = 0; i < n; i++) {
            to[2 * i] = from[i];
            to[2 * i + 1] = from[n + i];
        }
    } else {
        for (size_t k = 0; k < size; k++)
            for (uint64_t i = 0; i < n; i++)
                to[i * size + k] = from[k * n + i];
    }
}

static mb_status inflate_chunk(const mb_h5_dataset *dataset, const unsigned char *from,
                               uint64_t stored, unsigned char *to, uint64_t bytes)
{
    z_stream z = {0};
    if (stored > UINT32_MAX || bytes > UINT32_MAX || inflateInit(&z) != Z_OK)
        return mb_fail(MB_STATUS_MEMORY, NULL, "cannot decode a chunk of '%s'", dataset->path);
    z.next_in = (unsigned char *)from; /* not written to */
    z.avail_in = (uInt)stored;
    z.next_out = to;
    z.avail_out = (uInt)bytes;
    const int result = inflate(&z, Z_FINISH);
    inflateEnd(&z);
    return result == Z_STREAM_END && z.avail_out == 0
               ? MB_STATUS_OK
               : mb_fail(MB_STATUS_IO, NULL,
                         "cannot read '%s': a compressed chunk is damaged: copy the file again",
                         dataset->path);
}

/* Decodes one chunk; `work` has room for it, `to` gets it. */
static mb_status decode(mb_h5_dataset *dataset, int64_t frame, uint64_t bytes, unsigned char *work,
                        unsigned char *to)
{
    unsigned char *stored = NULL;
    hsize_t count = 0;
    uint32_t skipped = 0;
    int shuffle = -1, deflate = -1;
    mb_status status = fetch(dataset, frame, &stored, &count, &skipped, &shuffle, &deflate);
    const bool deflated = deflate >= 0 && !(skipped & 1u << deflate);
    const bool shuffled = shuffle >= 0 && !(skipped & 1u << shuffle);
    if (status == MB_STATUS_OK && stored == NULL)
        status = mb_fail(MB_STATUS_IO, NULL, "cannot read '%s': a chunk was never written",
                         dataset->path);
    else if (status == MB_STATUS_OK && !deflated && count != bytes)
        status = mb_fail(MB_STATUS_IO, NULL, "cannot read '%s': a chunk has %llu bytes, not %llu",
                         dataset->path, (unsigned long long)count, (unsigned long long)bytes);
    else if (status == MB_STATUS_OK) {
        unsigned char *flat = shuffled ? work : to;
        if (deflated)
            status = inflate_chunk(dataset, stored, count, flat, bytes);
        else
            memcpy(flat, stored, bytes);
        if (status == MB_STATUS_OK && shuffled)
            unshuffle(flat, to, bytes, mb_dtype_bytes(dataset->info.dtype));
    }
    free(stored);
    return status;
}

mb_status mb_h5_packed_read(mb_h5_dataset *dataset, const mb_range *ranges, int64_t first,
                            int64_t frames, void *host)
{
    const mb_h5_info *info = &dataset->info;
    const int64_t depth = info->chunks[0], rows = ranges[1].count;
    const uint64_t row = mb_bytes_mul((uint64_t)info->dims[2], mb_dtype_bytes(info->dtype));
    const uint64_t frame_bytes = mb_bytes_mul(row, (uint64_t)info->dims[1]);
    const uint64_t chunk_bytes = mb_bytes_mul(frame_bytes, (uint64_t)depth);
    unsigned char *memory = malloc(mb_bytes_mul(2, chunk_bytes)), *to = host;
    if (memory == NULL)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left to decode '%s'", dataset->path);
    mb_status status = MB_STATUS_OK;
    for (int64_t at = ranges[0].first + first, end = at + frames;
         at < end && status == MB_STATUS_OK;) {
        const int64_t chunk = at / depth * depth;
        const int64_t next = chunk + depth < end ? chunk + depth : end;
        status = decode(dataset, chunk, chunk_bytes, memory, memory + chunk_bytes);
        for (; at < next && status == MB_STATUS_OK; at++, to += (uint64_t)rows * row)
            memcpy(to,
                   memory + chunk_bytes + (uint64_t)(at - chunk) * frame_bytes +
                       (uint64_t)ranges[1].first * row,
                   (uint64_t)rows * row);
        at = next;
    }
    free(memory);
    return status;
}
