/*
** Compressed frames, decoded beside libhdf5.
*/
#ifndef MB_FILES_H5PACKED_H
#define MB_FILES_H5PACKED_H

#include "files/h5/library/h5types.h"

/* Can threads decode this dataset's chunks beside each other? They can where chunks are whole
** frames compressed by deflate, shuffled or not. */
bool mb_h5_packed_possible(mb_h5_dataset *dataset, mb_dtype dtype);
/* Frames [first, first + frames) of a slab whose steps are 1 and whose last axis is whole; any
** thread. libhdf5's lock is held only while it hands out stored bytes. Every call decodes the
** chunks it touches, and takes memory for the stored bytes of one. */
mb_status mb_h5_packed_read(mb_h5_dataset *dataset, const mb_range *ranges, int64_t first,
                            int64_t frames, void *host);

#endif
