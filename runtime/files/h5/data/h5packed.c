/*
** Compressed frames, decoded beside libhdf5: it hands out the stored bytes of a chunk under its
** lock, and the calling thread decodes them and puts the bytes in order. For the filters that h5py
** and detectors use (shuffle, deflate, and those of files/codecs), where chunks hold whole frames.
*/
#include "files/h5/data/h5data.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define BLOCK_BYTES 32768 /* decoded at a time: even, and a multiple of every element */

/* The filters of a dataset in the order of writing. */
typedef struct pipeline {
    int shuffle, codec; /* their places, or -1 */
    mb_filtered filter; /* the codec: deflate, or one of files/codecs */
} pipeline;

/* False when others are among them, or something that cannot be decoded here. */
static bool known_filters(const mb_h5_dataset *dataset, pipeline *p)
{
    H5_OWNED hid_t properties = H5Dget_create_plist(dataset->id);
    const int count = H5Pget_nfilters(properties);
    p->shuffle = p->codec = -1;
    bool known = count > 0;
    for (int i = 0; i < count && known; i++) {
        const mb_filtered filter = mb_h5_get_filter(properties, i);
        if (filter.id == H5Z_FILTER_SHUFFLE && p->shuffle < 0 && p->codec < 0) {
            p->shuffle = i;
        } else if ((filter.id == H5Z_FILTER_DEFLATE || mb_filter_known(filter.id)) &&
                   p->codec < 0 && !mb_filter_missing(&filter)) {
            p->codec = i;
            p->filter = filter;
        } else {
            known = false;
        }
    }
    return known;
}

bool mb_h5_packed_possible(mb_h5_dataset *dataset, mb_dtype dtype)
{
    MB_H5_GUARD;
    const mb_h5_info *info = &dataset->info;
    pipeline p;
    if (!dataset->file || dataset->id < 0 || dataset->file->writable || dataset->file->swmr ||
        !info->numeric || !info->filtered || info->rank != 3 || dataset->turned ||
        dataset->padded || info->chunks[1] != info->dims[1] || info->chunks[2] != info->dims[2])
        return false;
    mb_h5_quiet();
    const bool possible = mb_h5_same_type(dataset, dtype) && known_filters(dataset, &p);
    H5Eclear2(H5E_DEFAULT);
    return possible;
}

/* The stored bytes of the chunk that begins at a frame, in memory to be freed; NULL where there is
** no chunk. */
static mb_status fetch(mb_h5_dataset *dataset, int64_t frame, uint64_t most, unsigned char **stored,
                       hsize_t *bytes, uint32_t *skipped, pipeline *p)
{
    MB_H5_GUARD;
    hsize_t at[MB_H5_MAX_RANK] = {0};
    at[dataset->axes[0]] = (hsize_t)frame;
    MB_TRY(mb_h5_ready(dataset->file, false));
    if (!known_filters(dataset, p))
        return mb_fail(MB_STATUS_INTERNAL, NULL, "the filters of '%s' have changed", dataset->path);
    if (H5Dget_chunk_storage_size(dataset->id, at, bytes) < 0)
        return mb_h5_failure(dataset->file, dataset->path, "find a chunk of");
    if (*bytes == 0)
        return MB_STATUS_OK;
    /* Deflate makes nothing that much larger; bitshuffle may have blocks of 8 bytes with heads. */
    const uint64_t more = p->filter.id == H5Z_FILTER_DEFLATE ? most / 100 : mb_bytes_mul(3, most);
    if (*bytes > mb_bytes_add(most, mb_bytes_add(more, 4096)))
        return mb_fail(MB_STATUS_IO, NULL,
                       "cannot read '%s': a chunk of %llu bytes takes %llu bytes in "
                       "the file: the file is damaged",
                       dataset->path, (unsigned long long)most, (unsigned long long)*bytes);
    *stored = malloc(*bytes);
    if (!*stored)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left to read '%s'", dataset->path);
    if (H5Dread_chunk(dataset->id, H5P_DEFAULT, at, skipped, *stored) < 0)
        return mb_h5_failure(dataset->file, dataset->path, "read a chunk of");
    return mb_h5_check_whole(dataset, NULL);
}

/* Where the bytes of a decoded chunk go, as they come. Deflate needs no memory for a whole chunk. */
typedef struct sink {
    uint64_t element;     /* bytes */
    uint64_t elements;    /* of the chunk */
    uint64_t frame;       /* elements */
    bool shuffled;        /* byte k of all elements comes before byte k + 1 of all */
    int64_t first, last;  /* frames of the chunk that are wanted, without the last */
    uint64_t begin, rows; /* in each of them: the first element, and how many */
    unsigned char *to;
    uint64_t at; /* bytes that have come */
} sink;

/* Byte k of each of n elements; 0 comes first. Memory of arrays is aligned, and the processor's
** lowest byte is the first, as mb_h5_same_type has seen. */
static void scatter(const unsigned char *byte, uint64_t n, uint64_t k, size_t size, void *to)
{
    if (size == 2) {
        uint16_t *words = to;
        if (k == 0)
            for (uint64_t i = 0; i < n; i++)
                words[i] = byte[i];
        else
            for (uint64_t i = 0; i < n; i++)
                words[i] = (uint16_t)(words[i] | byte[i] << 8);
    } else if (size == 4) {
        uint32_t *words = to;
        for (uint64_t i = 0; i < n; i++)
            words[i] = (k == 0 ? 0 : words[i]) | (uint32_t)byte[i] << 8 * k;
    } else {
        for (uint64_t i = 0; i < n; i++)
            ((unsigned char *)to)[i * size + k] = byte[i];
    }
}

/* Bytes k of elements [first, first + count) of the chunk, where they are wanted; k == element:
** all bytes of each. */
static void put(sink *s, const unsigned char *from, uint64_t first, uint64_t count, uint64_t k)
{
    const uint64_t size = s->element, end = first + count;
    for (uint64_t f = first / s->frame; f * s->frame < end && (int64_t)f < s->last; f++) {
        if ((int64_t)f < s->first)
            continue;
        const uint64_t wanted = f * s->frame + s->begin;
        const uint64_t low = wanted > first ? wanted : first;
        const uint64_t high = wanted + s->rows < end ? wanted + s->rows : end;
        if (low >= high)
            continue;
        unsigned char *to = s->to + ((f - (uint64_t)s->first) * s->rows + (low - wanted)) * size;
        if (k == size) {
            memcpy(to, from + (low - first) * size, (high - low) * size);
            continue;
        }
        scatter(from + (low - first), high - low, k, size, to);
    }
}

/* The next bytes of the decoded chunk. Where they are not shuffled they are whole elements. */
static void take(sink *s, const unsigned char *bytes, uint64_t count)
{
    if (!s->shuffled) {
        put(s, bytes, s->at / s->element, count / s->element, s->element);
        s->at += count;
        return;
    }
    while (count > 0) {
        const uint64_t k = s->at / s->elements, first = s->at % s->elements;
        const uint64_t now = s->elements - first < count ? s->elements - first : count;
        put(s, bytes, first, now, k);
        s->at += now;
        bytes += now;
        count -= now;
    }
}

static mb_status damaged(const mb_h5_dataset *dataset)
{
    return mb_fail(MB_STATUS_IO, NULL,
                   "cannot read '%s': a compressed chunk is damaged; copy the file again",
                   dataset->path);
}

static mb_status inflate_chunk(const mb_h5_dataset *dataset, unsigned char *from, uint64_t stored,
                               sink *s)
{
    unsigned char block[BLOCK_BYTES];
    const uint64_t bytes = s->elements * s->element;
    z_stream z = {.next_in = from, .avail_in = (uInt)stored};
    int result = Z_OK;
    if (stored > UINT32_MAX || inflateInit(&z) != Z_OK)
        return mb_fail(MB_STATUS_MEMORY, NULL, "cannot decode a chunk of '%s'", dataset->path);
    while (result == Z_OK) {
        z.next_out = block;
        z.avail_out = sizeof block;
        result = inflate(&z, Z_NO_FLUSH);
        const uint64_t count = sizeof block - z.avail_out;
        if (count > bytes - s->at || (result == Z_OK && z.avail_out != 0))
            break; /* more than there can be, or less */
        take(s, block, count);
    }
    inflateEnd(&z);
    return result == Z_STREAM_END && s->at == bytes ? MB_STATUS_OK : damaged(dataset);
}

/* Is a chunk wanted as it is decoded, without a gap? */
static bool wants_all(const sink *s)
{
    return !s->shuffled && s->first == 0 && s->begin == 0 && s->rows == s->frame &&
           (uint64_t)s->last * s->frame == s->elements;
}

/* The same by a codec that decodes a chunk at once: right to its place, or beside it. */
static mb_status unpack_chunk(const mb_h5_dataset *dataset, const mb_filtered *filter,
                              const unsigned char *from, uint64_t stored, sink *s)
{
    const uint64_t bytes = s->elements * s->element;
    const bool direct = wants_all(s);
    uint64_t said = 0;
    if (!mb_filter_bytes(filter, from, stored, &said) || (said != MB_CODEC_UNSAID && said != bytes))
        return damaged(dataset);
    unsigned char *out = direct ? s->to : malloc(bytes);
    if (!out)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left to decode a chunk of '%s'",
                       dataset->path);
    const bool sound = mb_filter_unpack(filter, from, stored, out, bytes) == bytes;
    if (sound && !direct)
        take(s, out, bytes);
    if (!direct)
        free(out);
    return sound ? MB_STATUS_OK : damaged(dataset);
}

/* Decodes what is wanted of the chunk that begins at a frame. */
static mb_status decode(mb_h5_dataset *dataset, int64_t frame, sink *s)
{
    unsigned char *stored = NULL;
    const uint64_t bytes = s->elements * s->element;
    hsize_t count = 0;
    uint32_t skipped = 0;
    pipeline p = {.shuffle = -1, .codec = -1};
    mb_status status = fetch(dataset, frame, bytes, &stored, &count, &skipped, &p);
    const bool packed = p.codec >= 0 && !(skipped & 1u << p.codec);
    s->shuffled = p.shuffle >= 0 && !(skipped & 1u << p.shuffle);
    s->at = 0;
    if (status == MB_STATUS_OK && !stored)
        status = mb_fail(MB_STATUS_IO, NULL, "cannot read '%s': a chunk was never written",
                         dataset->path);
    else if (status == MB_STATUS_OK && !packed && count != bytes)
        status = mb_fail(MB_STATUS_IO, NULL, "cannot read '%s': a chunk has %llu bytes, not %llu",
                         dataset->path, (unsigned long long)count, (unsigned long long)bytes);
    else if (status == MB_STATUS_OK && packed && p.filter.id == H5Z_FILTER_DEFLATE)
        status = inflate_chunk(dataset, stored, count, s);
    else if (status == MB_STATUS_OK && packed)
        status = unpack_chunk(dataset, &p.filter, stored, count, s);
    else if (status == MB_STATUS_OK)
        take(s, stored, bytes);
    free(stored);
    return status;
}

mb_status mb_h5_packed_read(mb_h5_dataset *dataset, const mb_range *ranges, int64_t first,
                            int64_t frames, void *host)
{
    const mb_h5_info *info = &dataset->info;
    const int64_t depth = info->chunks[0];
    const uint64_t row = (uint64_t)info->dims[2];
    sink s = {.element = mb_dtype_bytes(info->dtype), .to = host};
    s.frame = mb_bytes_mul(row, (uint64_t)info->dims[1]);
    s.elements = mb_bytes_mul(s.frame, (uint64_t)depth);
    s.begin = (uint64_t)ranges[1].first * row;
    s.rows = (uint64_t)ranges[1].count * row;
    mb_status status = MB_STATUS_OK;
    for (int64_t at = ranges[0].first + first, end = at + frames;
         at < end && status == MB_STATUS_OK;) {
        const int64_t chunk = at / depth * depth;
        const int64_t next = chunk + depth < end ? chunk + depth : end;
        s.first = at - chunk;
        s.last = next - chunk;
        status = decode(dataset, chunk, &s);
        s.to += (uint64_t)(next - at) * s.rows * s.element;
        at = next;
    }
    return status;
}
