/*
** Regions of files: what a kept file has beside the bytes of its volume, and whether bytes that
** were written are still there.
*/
#ifndef MB_FILES_REGIONS_H
#define MB_FILES_REGIONS_H

#include "core/status.h"

/* Lines of a file: `lines` lines of `line_bytes` bytes each make a frame. */
typedef struct mb_region {
    const char *path;
    uint64_t offset; /* of the first line */
    uint64_t base;   /* of what the places of lines (core/line_hash.h) count from */
    uint64_t frames, lines, line_bytes;
    uint64_t frame_pitch, line_pitch; /* bytes from frame to frame, from line to line */
} mb_region;

/* The sum of the hashes of all lines, modulo 2^64: what mb_carrier_hash gives for those who wrote
** them. *whole: false where the file is too short, or is not there; the sum is then worthless.
** Reads by several threads; polls the cancel flag. */
mb_status mb_region_hash(const mb_region *region, uint64_t *sum, bool *whole);

/* The bytes of a file outside [offset, offset + bytes), kept in a file of their own. */
typedef struct mb_head {
    uint64_t offset, bytes;
    uint64_t length; /* of the whole file */
    uint64_t sum;    /* hash of the kept bytes */
} mb_head;

/* Writes the head of the file `path` to the file `to`, and has the disk take both if `sync`. Sets
** length and sum. */
mb_status mb_head_save(const char *path, const char *to, bool sync, mb_head *head);
/* Gives the file `path` its head and length again, from the file `from`. Fails where that is not
** what was saved; the file is then as it was. */
mb_status mb_head_restore(const char *path, const char *from, const mb_head *head);

#endif
