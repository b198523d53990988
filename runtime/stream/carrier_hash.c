/*
** The hashes of what a carrier writes to files. Workers hash the lines of a piece while its slot
** has them; the sums belong to transfers, and stay when a transfer leaves the list.
*/
#include "core/line_hash.h"
#include "stream/carrier_internal.h"
#include <stdlib.h>

/* The distance in bytes of a line from the beginning of the dataset, or of the file. */
static uint64_t place_of(const transfer *t, uint64_t line)
{
    const uint64_t frame = line / t->frame_lines, row = line % t->frame_lines;
    if (!t->dataset)
        return t->offset + frame * t->frame_pitch + row * t->line_pitch;
    const mb_h5_info *info = mb_h5_dataset_info(t->dataset);
    const uint64_t at[3] = {frame, row, 0};
    uint64_t place = 0;
    for (int axis = 0; axis < info->rank; axis++) {
        const mb_range *range = &t->ranges[axis];
        const uint64_t index = info->rank == 1 ? row : at[axis + 3 - info->rank];
        place = place * (uint64_t)info->dims[axis] + (uint64_t)range->first +
                index * (uint64_t)range->step;
    }
    return place * mb_dtype_bytes(t->dtype);
}

uint64_t mb_carrier_hash_lines(const transfer *t, uint64_t line, uint64_t lines, const void *memory)
{
    const unsigned char *at = memory;
    uint64_t sum = 0;
    if (!t->dataset && !t->file)
        return 0;
    for (uint64_t end = line + lines; line < end; line++, at += t->line_bytes)
        sum += mb_line_hash(at, t->line_bytes, place_of(t, line));
    return sum;
}

void mb_carrier_keep_hash(mb_carrier *c, const transfer *t)
{
    if (!c->options.hashes || t->hash_taken)
        return;
    if (c->hash_count == c->hash_room) {
        const int room = c->hash_room == 0 ? 16 : 2 * c->hash_room;
        transfer_hash *list = realloc(c->hashes, (size_t)room * sizeof *list);
        if (!list) {
            mb_fail(MB_STATUS_MEMORY, NULL, "no host memory for the hashes of a carrier");
            c->failure = c->failure.code == MB_STATUS_OK ? *mb_error_last() : c->failure;
            return;
        }
        c->hashes = list;
        c->hash_room = room;
    }
    c->hashes[c->hash_count++] = (transfer_hash){t->number, t->hash};
}

mb_status mb_carrier_take_hashes(mb_carrier *c, uint64_t from, uint64_t to, uint64_t *sum)
{
    for (transfer *t = c->first; t; t = t->next) {
        if (t->number < from || t->number >= to || t->hash_taken)
            continue;
        if (t->done < t->lines)
            return mb_fail(MB_STATUS_ARGUMENT, "to",
                           "transfers before the mark %llu are still under way",
                           (unsigned long long)to);
        *sum += t->hash;
        t->hash_taken = true;
    }
    int kept = 0;
    for (int i = 0; i < c->hash_count; i++) {
        if (c->hashes[i].number >= from && c->hashes[i].number < to)
            *sum += c->hashes[i].hash;
        else
            c->hashes[kept++] = c->hashes[i];
    }
    c->hash_count = kept;
    return MB_STATUS_OK;
}
