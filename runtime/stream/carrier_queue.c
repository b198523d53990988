/*
** Transfers: the checks of both ends, how a transfer is cut into pieces, and which way its bytes
** go.
*/
#include "stream/carrier_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Size of the pieces of direct transfers: two of them, in turn, keep the lane busy. */
#define DIRECT_BYTES (UINT64_C(32) << 20)

/* Divides the transfer into whole rows, or into whole frames if a slot holds one. Whole frames come
** in whole chunks of `chunk_frames`, so that no chunk is decoded twice. Each element of a single
** axis is a row. `what` names the other end. */
static mb_status cut(const mb_carrier *c, transfer *t, int rank, const int64_t *extents,
                     int64_t chunk_frames, const char *what)
{
    const uint64_t most = t->direct ? DIRECT_BYTES : c->slot_bytes;
    t->line_bytes = mb_dtype_bytes(t->dtype) * (rank > 1 ? (uint64_t)extents[rank - 1] : 1);
    t->frame_lines = rank > 0 ? (uint64_t)extents[rank > 1 ? rank - 2 : 0] : 1;
    t->lines = t->frame_lines * (rank > 2 ? (uint64_t)extents[0] : 1);
    t->piece_lines = t->line_bytes > 0 ? most / t->line_bytes : t->lines;
    if (t->piece_lines == 0 && t->direct)
        t->piece_lines = 1;
    if (t->piece_lines == 0)
        return mb_fail_bytes(
            MB_STATUS_BUDGET, t->line_bytes, c->slot_bytes,
            "a row of %s has %llu bytes, but a slot of the ring has %llu: give more "
            "pinned memory (pinned), or fewer threads",
            what, (unsigned long long)t->line_bytes, (unsigned long long)c->slot_bytes);
    if (t->piece_lines >= t->frame_lines) {
        uint64_t frames = t->piece_lines / t->frame_lines;
        if (rank == 3 && frames > (uint64_t)chunk_frames)
            frames -= frames % (uint64_t)chunk_frames;
        t->piece_lines = frames * t->frame_lines;
    }
    return MB_STATUS_OK;
}

static mb_status check_array(const mb_carrier *c, const mb_array *array, int rank, const char *what)
{
    if (array->device != c->device)
        return mb_fail(MB_STATUS_ARGUMENT, "array", "the array is on %s, but the carrier is for %s",
                       array->device->id, c->device->id);
    if (rank > 3)
        return mb_fail(MB_STATUS_SHAPE, NULL, "%s has %d axes; a carrier takes at most 3", what,
                       rank);
    if (!mb_array_contiguous(array))
        return mb_fail(MB_STATUS_SHAPE, "array", "a carrier needs a contiguous array");
    return MB_STATUS_OK;
}

static mb_status start_transfer(const mb_array *array, transfer **out)
{
    transfer *t = calloc(1, sizeof *t);
    if (!t)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory for a transfer");
    t->dtype = array->dtype;
    t->memory = array->data;
    t->storage = mb_storage_retain(array->storage);
    *out = t;
    return MB_STATUS_OK;
}

mb_status mb_carrier_queue(mb_carrier *c, mb_h5_dataset *dataset, const mb_range *ranges,
                           mb_array *array, bool last)
{
    transfer *t = NULL;
    char what[160];
    int64_t extents[3] = {0};
    const mb_h5_info *info = mb_h5_dataset_info(dataset);
    snprintf(what, sizeof what, "'%s'", mb_h5_dataset_path(dataset));
    MB_TRY(check_array(c, array, info->rank, what));
    MB_TRY(mb_h5_dataset_check(dataset, ranges, array, !c->options.writing));
    if (!mb_array_has_data(array))
        return MB_STATUS_OK;
    MB_TRY(start_transfer(array, &t));
    t->dataset = dataset;
    mb_h5_dataset_use(dataset, 1);
    memcpy(t->ranges, ranges, (size_t)info->rank * sizeof *ranges);
    bool whole = info->rank >= 2 && ranges[info->rank - 1].count == info->dims[info->rank - 1];
    for (int axis = 0; axis < info->rank; axis++) {
        whole = whole && ranges[axis].step == 1;
        extents[axis] = ranges[axis].count;
    }
    t->last = last;
    t->raw = whole && mb_h5_raw_possible(dataset, t->dtype, !c->options.writing, NULL);
    t->packed = whole && !c->options.writing && mb_h5_packed_possible(dataset, t->dtype);
    return mb_carrier_enqueue(
        c, t, cut(c, t, info->rank, extents, info->chunked ? info->chunks[0] : 1, what));
}

bool mb_carrier_direct(const mb_device *device, const mb_array *host)
{
    const mb_device *pinned_for = mb_storage_pinned_for(host->storage);
    return strcmp(device->backend->name, "host") == 0 ||
           (pinned_for && strcmp(pinned_for->backend->name, device->backend->name) == 0);
}

mb_status mb_carrier_queue_host(mb_carrier *c, const mb_array *host, mb_array *array)
{
    transfer *t = NULL;
    const int rank = host->shape.rank;
    const int64_t *strides = host->strides;
    const uint64_t element = mb_dtype_bytes(host->dtype);
    if (strcmp(host->device->backend->name, "host") != 0)
        return mb_fail(MB_STATUS_ARGUMENT, "host",
                       "the other end of a transfer is an array on the host, not on %s",
                       host->device->id);
    MB_TRY(check_array(c, array, rank, "the array on the host"));
    if (host->dtype != array->dtype || !mb_shape_equal(&host->shape, &array->shape))
        return mb_fail(MB_STATUS_SHAPE, "host",
                       "both ends of a transfer must have the same shape and element type");
    for (int axis = 0; axis < rank; axis++)
        if (host->shape.dims[axis] > 1 &&
            (axis == rank - 1 ? strides[axis] != 1 : strides[axis] < 1))
            return mb_fail(MB_STATUS_SHAPE, "host",
                           "a carrier needs host memory whose last axis is dense, and whose others "
                           "are neither reversed nor broadcast");
    if (!mb_array_has_data(array))
        return MB_STATUS_OK;
    if (!mb_array_has_data(host))
        return mb_fail(MB_STATUS_DRY_RUN, "host", "an array of a dry run has no data");
    MB_TRY(start_transfer(array, &t));
    t->host_storage = mb_storage_retain(host->storage);
    t->host = host->data;
    t->direct = mb_carrier_direct(c->device, host);
    const mb_status status = cut(c, t, rank, host->shape.dims, 1, "the array on the host");
    t->line_pitch =
        rank > 1 && t->frame_lines > 1 ? (uint64_t)strides[rank - 2] * element : t->line_bytes;
    t->frame_pitch = rank > 2 ? (uint64_t)strides[0] * element : t->line_bytes * t->frame_lines;
    return mb_carrier_enqueue(c, t, status);
}

/* Puts a block at its place in `bytes` bytes of what `what` names. */
static mb_status put_block(transfer *t, const int64_t *steps, const mb_array *array, uint64_t bytes,
                           const char *what)
{
    const int rank = array->shape.rank;
    const uint64_t element = mb_dtype_bytes(array->dtype);
    uint64_t end = mb_bytes_add(t->offset, element);
    for (int axis = 0; axis < rank; axis++) {
        if (axis == rank - 1 ? steps[axis] != (int64_t)element : steps[axis] < 0)
            return mb_fail(MB_STATUS_ARGUMENT, "steps",
                           "step %d of a block in a file is %lld bytes; the last one is that of an "
                           "element, and none is below 0",
                           axis + 1, (long long)steps[axis]);
        end = mb_bytes_add(
            end, mb_bytes_mul((uint64_t)(array->shape.dims[axis] - 1), (uint64_t)steps[axis]));
    }
    if (end > bytes)
        return mb_fail_bytes(MB_STATUS_IO, end, bytes,
                             "the block ends at byte %llu of %s, which has %llu",
                             (unsigned long long)end, what, (unsigned long long)bytes);
    t->line_pitch = rank > 1 && t->frame_lines > 1 ? (uint64_t)steps[rank - 2] : t->line_bytes;
    t->frame_pitch = rank > 2 ? (uint64_t)steps[0] : t->line_bytes * t->frame_lines;
    return MB_STATUS_OK;
}

/* Cuts a transfer whose other end is named, and puts it at its place there. */
static mb_status cut_and_put(const mb_carrier *c, transfer *t, uint64_t offset,
                             const int64_t *steps, const mb_array *array, uint64_t bytes,
                             const char *what)
{
    t->offset = offset;
    MB_TRY(cut(c, t, array->shape.rank, array->shape.dims, 1, what));
    return put_block(t, steps, array, bytes, what);
}

mb_status mb_carrier_queue_file(mb_carrier *c, mb_rawfile *file, uint64_t offset,
                                const int64_t *steps, mb_array *array)
{
    transfer *t = NULL;
    char what[160];
    snprintf(what, sizeof what, "'%s'", mb_rawfile_path(file));
    MB_TRY(check_array(c, array, array->shape.rank, what));
    if (!mb_array_has_data(array))
        return MB_STATUS_OK;
    MB_TRY(mb_rawfile_use(file, c->options.writing, 1));
    mb_status status = start_transfer(array, &t);
    if (status != MB_STATUS_OK) {
        (void)mb_rawfile_use(file, c->options.writing, -1);
        return status;
    }
    t->file = file;
    status = cut_and_put(c, t, offset, steps, array, mb_rawfile_bytes(file), what);
    return mb_carrier_enqueue(c, t, status);
}

mb_status mb_carrier_queue_spread(mb_carrier *c, mb_spread *spread, uint64_t offset,
                                  const int64_t *steps, mb_array *array)
{
    static const char what[] = "the memory of the ranks";
    transfer *t = NULL;
    MB_TRY(check_array(c, array, array->shape.rank, what));
    if (!mb_array_has_data(array))
        return MB_STATUS_OK;
    MB_TRY(start_transfer(array, &t));
    t->spread = mb_spread_retain(spread);
    return mb_carrier_enqueue(
        c, t, cut_and_put(c, t, offset, steps, array, mb_spread_bytes(spread), what));
}
