/*
** The other ends of transfers: slabs of HDF5 datasets (without libhdf5, through our decoders, or
** through libhdf5), files of plain elements, host memory, and that of several ranks. Workers move
** their bytes without the carrier's lock.
*/
#include "stream/carrier_internal.h"
#include <string.h>

uint64_t mb_carrier_rows(const transfer *t, uint64_t line, uint64_t lines, uint64_t *at,
                         uint64_t *pitch, mb_lane_rows *rows)
{
    const uint64_t row = line % t->frame_lines;
    *at = line / t->frame_lines * t->frame_pitch + row * t->line_pitch;
    if (row == 0 && lines >= t->frame_lines && t->line_pitch == t->line_bytes) {
        rows->width = t->frame_lines * t->line_bytes;
        rows->count = lines / t->frame_lines;
        *pitch = t->frame_pitch;
        return rows->count * t->frame_lines;
    }
    const uint64_t count = lines < t->frame_lines - row ? lines : t->frame_lines - row;
    const bool dense = t->line_pitch == t->line_bytes;
    rows->width = dense ? count * t->line_bytes : t->line_bytes;
    rows->count = dense ? 1 : count;
    *pitch = dense ? rows->width : t->line_pitch;
    return count;
}

/* Copies lines between a transfer's host memory and dense memory. */
static void copy_lines(const transfer *t, uint64_t line, uint64_t lines, unsigned char *memory,
                       bool writing)
{
    for (uint64_t end = line + lines; line < end;) {
        uint64_t at, pitch;
        mb_lane_rows rows;
        line += mb_carrier_rows(t, line, end - line, &at, &pitch, &rows);
        unsigned char *host = t->host + at;
        for (uint64_t i = 0; i < rows.count; i++, host += pitch, memory += rows.width)
            memcpy(writing ? host : memory, writing ? memory : host, rows.width);
    }
}

/* The same between an open file of plain elements and dense memory. */
static mb_status carry_runs(const transfer *t, int fd, uint64_t line, uint64_t lines,
                            unsigned char *memory, bool writing)
{
    for (uint64_t end = line + lines; line < end;) {
        uint64_t at, pitch;
        mb_lane_rows rows;
        line += mb_carrier_rows(t, line, end - line, &at, &pitch, &rows);
        if (rows.width == pitch) {
            rows.width *= rows.count;
            rows.count = 1;
        }
        for (uint64_t i = 0; i < rows.count; i++, at += pitch, memory += rows.width) {
            MB_TRY(mb_cancel_check());
            MB_TRY(mb_rawfile_carry(t->file, fd, t->offset + at, memory, rows.width, writing));
        }
    }
    return MB_STATUS_OK;
}

static mb_status carry_lines(const transfer *t, uint64_t line, uint64_t lines,
                             unsigned char *memory, bool writing)
{
    int fd = -1;
    MB_TRY(mb_rawfile_enter(t->file, writing, &fd));
    const mb_status status = carry_runs(t, fd, line, lines, memory, writing);
    mb_rawfile_leave(t->file, fd);
    return status;
}

mb_status mb_carrier_move(const transfer *t, uint64_t line, uint64_t lines, void *memory,
                          bool writing)
{
    mb_range part[MB_H5_MAX_RANK];
    if (t->file)
        return carry_lines(t, line, lines, memory, writing);
    if (t->spread) {
        const mb_spread_lines own = {t->offset,      t->line_bytes, t->line_pitch, t->frame_pitch,
                                     t->frame_lines, line,          lines};
        return mb_spread_move(t->spread, &own, memory, writing);
    }
    if (!t->dataset) {
        copy_lines(t, line, lines, memory, writing);
        return MB_STATUS_OK;
    }
    const int rank = mb_h5_dataset_info(t->dataset)->rank;
    if (t->raw && writing)
        return mb_h5_raw_write(t->dataset, t->ranges, line * t->line_bytes, lines * t->line_bytes,
                               memory);
    if (t->raw)
        return mb_h5_raw_read(t->dataset, t->ranges, line * t->line_bytes, lines * t->line_bytes,
                              memory);
    /* Pieces are whole frames, or lie within one. */
    if (t->packed && lines >= t->frame_lines)
        return mb_h5_packed_read(t->dataset, t->ranges, (int64_t)(line / t->frame_lines),
                                 (int64_t)(lines / t->frame_lines), memory);
    memcpy(part, t->ranges, sizeof part);
    if (rank == 3) {
        part[0].first += (int64_t)(line / t->frame_lines) * part[0].step;
        part[0].count = lines > t->frame_lines ? (int64_t)(lines / t->frame_lines) : 1;
    }
    if (rank >= 1 && lines < t->frame_lines) {
        mb_range *rows = &part[rank >= 2 ? rank - 2 : 0];
        rows->first += (int64_t)(line % t->frame_lines) * rows->step;
        rows->count = (int64_t)lines;
    }
    return writing ? mb_h5_dataset_write_host(t->dataset, part, t->dtype, memory)
                   : mb_h5_dataset_read_host(t->dataset, part, t->dtype, memory);
}
