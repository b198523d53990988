/*
** Bytes of HDF5 datasets, moved by pread and pwrite at the places that libhdf5 names: threads then
** read and write beside each other, which libhdf5 does not let them.
**
** A dataset is seen as (frame, row, byte), with a grid of chunks over frames and rows whose chunks
** span whole rows; a contiguous dataset is one chunk. Inside a chunk the bytes of neighboring
** rows, and of neighboring frames where the chunk has all rows of them, follow each other, so a
** transfer is a few long runs. Whether a dataset is of that kind is found out once, and kept with
** it; the descriptor is our own, so that it outlives the file's. Threads: the map does not change
** once it is made.
*/
#define _GNU_SOURCE
#include "files/h5/data/h5data.h"
#include "files/positioned.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* libhdf5 1.10 goes through all chunks, 35 ns each, to find one of them. Up to FEW_CHUNKS that is
** nothing, and beyond worth it where it takes less time than reading the data at 4 GB/s. */
#define FEW_CHUNKS 2048
#define MOST_CHUNKS 100000
#define BYTES_FOR_LOOKUP 140

#define SCATTERED 256 /* lines that one call reads */

typedef struct h5_raw {
    mb_dtype dtype;
    const char *why; /* NULL: possible */
    int fd;          /* -1: none */
    bool created;    /* of a file that is being written */
    bool chunked;
    bool turned; /* in the file, rows come before frames */
    int64_t dims[3], chunk[3];
    int64_t grid[2];    /* chunks along frames and rows */
    uint64_t row_bytes; /* of a whole row */
    uint64_t *address;  /* of each chunk */
} h5_raw;

/* A descriptor of a created file shares the file's lock: it must not stay longer than it is
** used. */
static void close_raw(h5_raw *raw)
{
    if (raw->fd >= 0)
        close(raw->fd);
    raw->fd = -1;
    free(raw->address);
    raw->address = NULL;
}

void mb_h5_raw_free(h5_raw *raw)
{
    if (raw)
        close_raw(raw);
    free(raw);
}

/* Frames, rows and elements of a dataset of two or three axes. */
static void take_extents(h5_raw *raw, const mb_h5_info *info)
{
    const int first = 3 - info->rank;
    raw->dims[0] = raw->chunk[0] = 1;
    for (int axis = 0; axis < info->rank; axis++) {
        raw->dims[first + axis] = info->dims[axis];
        raw->chunk[first + axis] = info->chunked ? info->chunks[axis] : info->dims[axis];
    }
    for (int axis = 0; axis < 2; axis++)
        raw->grid[axis] = (raw->dims[axis] + raw->chunk[axis] - 1) / raw->chunk[axis];
    raw->row_bytes = mb_bytes_mul((uint64_t)raw->dims[2], mb_dtype_bytes(raw->dtype));
}

/* The place of each chunk; false where one has none. */
static bool find_chunks(h5_raw *raw, const mb_h5_dataset *dataset)
{
    const int rank = dataset->info.rank;
    for (int64_t f = 0; f < raw->grid[0]; f++)
        for (int64_t r = 0; r < raw->grid[1]; r++) {
            hsize_t at[MB_H5_MAX_RANK] = {0};
            if (rank == 3)
                at[dataset->axes[0]] = (hsize_t)(f * raw->chunk[0]);
            at[rank == 3 ? dataset->axes[1] : 0] = (hsize_t)(r * raw->chunk[1]);
            unsigned mask = 0;
            haddr_t address = HADDR_UNDEF;
            hsize_t size = 0;
            if (mb_cancelled() ||
                H5Dget_chunk_info_by_coord(dataset->id, at, &mask, &address, &size) < 0 ||
                address == HADDR_UNDEF || mask != 0)
                return false;
            raw->address[f * raw->grid[1] + r] = address;
        }
    return true;
}

/* Do the chunks lie within the file? Where they do not, reading by libhdf5 tells
** (mb_h5_check_written, mb_h5_check_whole). */
static bool within_file(const h5_raw *raw)
{
    struct stat status;
    const uint64_t chunk = mb_bytes_mul(
        mb_bytes_mul((uint64_t)raw->chunk[0], (uint64_t)raw->chunk[1]), raw->row_bytes);
    if (fstat(raw->fd, &status) != 0)
        return false;
    for (int64_t i = 0; i < raw->grid[0] * raw->grid[1]; i++)
        if (chunk > (uint64_t)status.st_size || raw->address[i] > (uint64_t)status.st_size - chunk)
            return false;
    return true;
}

static bool too_many_chunks(const h5_raw *raw)
{
    if (raw->grid[0] > MOST_CHUNKS / raw->grid[1])
        return true;
    const uint64_t chunks = (uint64_t)(raw->grid[0] * raw->grid[1]);
    const uint64_t bytes =
        mb_bytes_mul(mb_bytes_mul((uint64_t)raw->dims[0], (uint64_t)raw->dims[1]), raw->row_bytes);
    return chunks > FEW_CHUNKS && chunks * chunks > bytes / BYTES_FOR_LOOKUP;
}

static bool allocated_early(hid_t properties)
{
    H5D_alloc_time_t when = H5D_ALLOC_TIME_DEFAULT;
    return H5Pget_alloc_time(properties, &when) >= 0 && when == H5D_ALLOC_TIME_EARLY;
}

/* Why not, or NULL. */
static const char *look(h5_raw *raw, mb_h5_dataset *dataset)
{
    const mb_h5_info *info = &dataset->info;
    const mb_h5 *file = dataset->file;
    if (!info->numeric || info->empty || info->rank < 2 || info->rank > 3)
        return "it has neither two nor three axes of numbers";
    for (int axis = 0; axis < info->rank; axis++)
        if (info->dims[axis] < 1)
            return "it is empty";
    if (info->filtered)
        return "it is compressed";
    if (!mb_h5_same_type(dataset, raw->dtype))
        return "its elements are stored in another type";
    if (file->writable && !file->created)
        return "its file is open for changes";
    take_extents(raw, info);
    raw->turned = dataset->turned;
    H5_OWNED hid_t properties = H5Dget_create_plist(dataset->id);
    H5_OWNED hid_t owner = H5Iget_file_id(dataset->id); /* the file that a link leads to */
    H5_OWNED hid_t made = H5Fget_create_plist(owner);
    const H5D_layout_t layout = H5Pget_layout(properties);
    hsize_t user_block = 0;
    H5Pget_userblock(made, &user_block);
    if (layout == H5D_CONTIGUOUS ? H5Pget_external_count(properties) != 0
                                 : layout != H5D_CHUNKED || user_block != 0 ||
                                       (file->created && !allocated_early(properties)))
        return "only libhdf5 knows its layout";
    if (file->swmr)
        return "its writer shares it";
    if (raw->chunk[2] != raw->dims[2] || dataset->padded)
        return "its chunks do not span whole rows";
    if (too_many_chunks(raw))
        return "it has too many chunks";
    raw->address = calloc((size_t)(raw->grid[0] * raw->grid[1]), sizeof *raw->address);
    raw->created = file->created;
    raw->chunked = layout == H5D_CHUNKED;
    raw->fd = fcntl(file->created ? file->fd : mb_h5_descriptor(owner), F_DUPFD_CLOEXEC, 0);
    if (!raw->address || raw->fd < 0)
        return raw->address && errno == EMFILE
                   ? "its file cannot be opened a second time: too many files are open"
                   : "its file cannot be opened a second time";
    if (layout == H5D_CONTIGUOUS) {
        raw->address[0] = H5Dget_offset(dataset->id);
        if (raw->address[0] == HADDR_UNDEF)
            return "it has no place in the file yet";
    } else if (!find_chunks(raw, dataset)) {
        return "some of its chunks are not in the file";
    }
    /* A file that is being written grows into its place. */
    return raw->created || within_file(raw) ? NULL : "its file is shorter than it should be";
}

/* Finds out where the bytes are, once. false: there is no host memory left. */
static bool looked(mb_h5_dataset *dataset, mb_dtype dtype)
{
    if (dataset->raw)
        return true;
    mb_h5_quiet();
    dataset->raw = calloc(1, sizeof *dataset->raw);
    if (!dataset->raw)
        return false;
    dataset->raw->fd = -1;
    dataset->raw->dtype = dtype;
    dataset->raw->why = look(dataset->raw, dataset);
    if (dataset->raw->why)
        close_raw(dataset->raw);
    H5Eclear2(H5E_DEFAULT);
    return true;
}

/* Why a dataset whose place is known cannot be moved this way now, or NULL. */
static const char *hindrance(const mb_h5_dataset *dataset, bool reading)
{
    const h5_raw *raw = dataset->raw;
    if (dataset->file->resting)
        return NULL;
    if (reading == raw->created)
        return "it is being written";
    return raw->created && raw->chunked ? "libhdf5 may have parts of it in memory" : NULL;
}

bool mb_h5_raw_possible(mb_h5_dataset *dataset, mb_dtype dtype, bool reading, const char **why)
{
    MB_H5_GUARD;
    const char *unused;
    if (!why)
        why = &unused;
    *why = "its file has been closed";
    if (!dataset->file || (dataset->id < 0 && !(dataset->file->resting && dataset->raw)))
        return false;
    *why = "there is no host memory left";
    if (!looked(dataset, dtype))
        return false;
    *why = dataset->raw->dtype != dtype ? "its elements are stored in another type"
           : dataset->raw->why          ? dataset->raw->why
                                        : hindrance(dataset, reading);
    return !*why;
}

bool mb_h5_raw_placed(mb_h5_dataset *dataset)
{
    return looked(dataset, dataset->info.dtype) && !dataset->raw->why &&
           dataset->raw->dtype == dataset->info.dtype;
}

bool mb_h5_raw_place(const mb_h5_dataset *dataset, uint64_t *offset, uint64_t *bytes)
{
    const h5_raw *raw = dataset->raw;
    if (!raw || raw->why || raw->chunked || !raw->address)
        return false;
    *offset = raw->address[0];
    *bytes =
        mb_bytes_mul(mb_bytes_mul((uint64_t)raw->dims[0], (uint64_t)raw->dims[1]), raw->row_bytes);
    return true;
}

const char *mb_h5_raw_why(const mb_h5_dataset *dataset)
{
    return dataset->raw ? dataset->raw->why : NULL;
}

/* Where byte `at` of a slab lies in the file, and how many of the bytes after it follow there. */
static uint64_t locate(const h5_raw *raw, const mb_range *frames, const mb_range *rows, uint64_t at,
                       uint64_t *run)
{
    const int64_t line = (int64_t)(at / raw->row_bytes);
    const uint64_t inside = at % raw->row_bytes;
    const int64_t frame = frames->first + line / rows->count,
                  row = rows->first + line % rows->count;
    const int64_t f = frame % raw->chunk[0], r = row % raw->chunk[1];
    int64_t lines = raw->chunk[1] - r;
    if (rows->count == raw->chunk[1] && raw->grid[1] == 1) /* whole frames */
        lines += (raw->chunk[0] - f - 1) * raw->chunk[1];
    else if (lines > rows->count - line % rows->count)
        lines = rows->count - line % rows->count;
    *run = (uint64_t)lines * raw->row_bytes - inside;
    const int64_t chunk = frame / raw->chunk[0] * raw->grid[1] + row / raw->chunk[1];
    return raw->address[chunk] + (uint64_t)(f * raw->chunk[1] + r) * raw->row_bytes + inside;
}

static mb_status cannot(const mb_h5_dataset *dataset, bool reading, int64_t moved)
{
    return mb_fail(MB_STATUS_IO, NULL, "cannot %s '%s': %s", reading ? "read" : "write",
                   dataset->path,
                   moved >= 0 ? "the file ends early: it was truncated while it was being read"
                   : errno == ENOSPC ? "the disk is full: free some space or write elsewhere"
                                     : strerror(errno));
}

/* Reads lines that follow each other in the file, to places that are `pitch` bytes apart. */
static mb_status scatter_lines(const mb_h5_dataset *dataset, uint64_t offset, int64_t lines,
                               unsigned char *host, uint64_t pitch)
{
    struct iovec parts[SCATTERED];
    const h5_raw *raw = dataset->raw;
    for (int64_t done = 0; done < lines;) {
        const int64_t count = lines - done < SCATTERED ? lines - done : SCATTERED;
        unsigned char *to = host + (uint64_t)done * pitch;
        for (int64_t i = 0; i < count; i++)
            parts[i] = (struct iovec){to + (uint64_t)i * pitch, raw->row_bytes};
        const uint64_t at = offset + (uint64_t)done * raw->row_bytes;
        const ssize_t moved = preadv(raw->fd, parts, (int)count, (off_t)at);
        done += moved > 0 ? moved / (int64_t)raw->row_bytes : 0;
        if (moved >= (int64_t)raw->row_bytes)
            continue;
        /* Interrupted within the first line, or at the end of the file. */
        const int64_t one = mb_read_at(raw->fd, to, raw->row_bytes, at);
        if (one < (int64_t)raw->row_bytes)
            return cannot(dataset, true, one);
        done++;
    }
    return MB_STATUS_OK;
}

/* Reads lines [first, first + lines) of a slab whose rows come before frames in the file: all
** frames of a row, as far as they follow each other there, at a time. */
static mb_status read_turned(const mb_h5_dataset *dataset, const mb_range *ranges, int64_t first,
                             int64_t lines, unsigned char *host)
{
    const h5_raw *raw = dataset->raw;
    const int64_t rows = ranges[1].count, end = first + lines, depth = raw->chunk[0];
    for (int64_t r = 0; r < rows; r++) {
        const int64_t row = ranges[1].first + r;
        /* Frames of the slab with this row among the lines. */
        int64_t f = (first - r + rows - 1) / rows;
        const int64_t last = (end - r + rows - 1) / rows;
        for (f = f < 0 ? 0 : f; f < last;) {
            const int64_t frame = ranges[0].first + f, inside = frame % depth;
            const int64_t run = depth - inside < last - f ? depth - inside : last - f;
            const int64_t chunk = frame / depth * raw->grid[1] + row / raw->chunk[1];
            const uint64_t at = (uint64_t)(row % raw->chunk[1] * depth + inside);
            MB_TRY(scatter_lines(dataset, raw->address[chunk] + at * raw->row_bytes, run,
                                 host + (uint64_t)(f * rows + r - first) * raw->row_bytes,
                                 (uint64_t)rows * raw->row_bytes));
            f += run;
        }
    }
    return MB_STATUS_OK;
}

static mb_status move(const mb_h5_dataset *dataset, const mb_range *ranges, uint64_t first,
                      uint64_t bytes, unsigned char *host, bool reading)
{
    static const mb_range one = {.count = 1, .step = 1};
    const h5_raw *raw = dataset->raw;
    const int rank = dataset->info.rank;
    const mb_range *frames = rank == 3 ? &ranges[0] : &one, *rows = &ranges[rank - 2];
    if (raw->turned)
        return read_turned(dataset, ranges, (int64_t)(first / raw->row_bytes),
                           (int64_t)(bytes / raw->row_bytes), host);
    while (bytes > 0) {
        uint64_t run = 0;
        const uint64_t offset = locate(raw, frames, rows, first, &run);
        if (run > bytes)
            run = bytes;
        const int64_t moved = reading ? mb_read_at(raw->fd, host, run, offset)
                                      : mb_write_at(raw->fd, host, run, offset);
        if (moved < (int64_t)run)
            return cannot(dataset, reading, moved);
        if (!reading) /* the disk may begin now: a failure here shows again at the final sync */
            (void)sync_file_range(raw->fd, (off_t)offset, (off_t)run, SYNC_FILE_RANGE_WRITE);
        first += run;
        host += run;
        bytes -= run;
    }
    return MB_STATUS_OK;
}

mb_status mb_h5_raw_read(mb_h5_dataset *dataset, const mb_range *ranges, uint64_t first,
                         uint64_t bytes, void *host)
{
    return move(dataset, ranges, first, bytes, host, true);
}

/* The last whole row among the written bytes, if there is one, for the verification. */
static void sample(mb_h5_dataset *dataset, const mb_range *ranges, uint64_t first, uint64_t bytes,
                   const unsigned char *host)
{
    const h5_raw *raw = dataset->raw;
    const int rank = dataset->info.rank;
    const uint64_t end = (first + bytes) / raw->row_bytes * raw->row_bytes;
    if (end < first + raw->row_bytes)
        return;
    const int64_t line = (int64_t)(end / raw->row_bytes) - 1, rows = ranges[rank - 2].count;
    mb_range row[3] = {{.count = 1, .step = 1}, {.count = 1, .step = 1}, {.count = 1, .step = 1}};
    mb_range *at = &row[3 - rank];
    if (rank == 3)
        at[0].first = ranges[0].first + line / rows;
    at[rank - 2].first = ranges[rank - 2].first + line % rows;
    at[rank - 1].count = raw->dims[2];
    mb_h5_sample(dataset, at, raw->dtype, host + (end - raw->row_bytes - first),
                 (uint64_t)raw->dims[2]);
}

static mb_status latch(mb_h5_dataset *dataset, mb_status status)
{
    MB_H5_GUARD;
    return dataset->file ? mb_h5_latch(dataset->file, status) : status;
}

mb_status mb_h5_raw_write(mb_h5_dataset *dataset, const mb_range *ranges, uint64_t first,
                          uint64_t bytes, const void *host)
{
    const mb_status status =
        move(dataset, ranges, first, bytes, (unsigned char *)host, false); /* not written to */
    if (status != MB_STATUS_OK)
        return latch(dataset, status);
    sample(dataset, ranges, first, bytes, host);
    return MB_STATUS_OK;
}

mb_status mb_h5_raw_sync(mb_h5_dataset *dataset)
{
    if (fdatasync(dataset->raw->fd) == 0 || errno == EINVAL)
        return MB_STATUS_OK;
    return latch(dataset, mb_fail(MB_STATUS_IO, NULL, "cannot write '%s' to the disk: %s",
                                  dataset->path, strerror(errno)));
}
