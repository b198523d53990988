/*
** Bytes of HDF5 datasets, moved without libhdf5.
*/
#ifndef MB_FILES_H5RAW_H
#define MB_FILES_H5RAW_H

#include "files/h5/library/h5types.h"

typedef struct h5_raw h5_raw;

/* Can threads move this dataset's bytes by pread and pwrite, beside libhdf5? They can where the
** bytes are stored as `dtype` has them in memory: contiguous or in chunks that span the last axis,
** no filter, no conversion, not virtual or external. In a file that is open for reading only, or,
** contiguous and with a place in the file, in one that is being created. If not, `why` (may be
** NULL) says why not. Never a failure. */
bool mb_h5_raw_possible(mb_h5_dataset *dataset, mb_dtype dtype, bool reading, const char **why);
/* Of a file that is being written: is the place of the dataset's bytes known, for elements as they
** are stored? Finds out, if nobody has. */
bool mb_h5_raw_placed(mb_h5_dataset *dataset);
/* Where the bytes of a contiguous dataset are, after either of these has said yes; false for one in
** chunks. */
bool mb_h5_raw_place(const mb_h5_dataset *dataset, uint64_t *offset, uint64_t *bytes);
/* Moves bytes [first, first + bytes) of a slab, seen as dense row-major memory, after
** mb_h5_raw_possible has said yes. Steps are 1 and the last axis is whole. Any thread, any number
** of them; no lock of libhdf5 while bytes move. */
mb_status mb_h5_raw_read(mb_h5_dataset *dataset, const mb_range *ranges, uint64_t first,
                         uint64_t bytes, void *host);
/* The same in the other direction. The file remembers a row of it for its verification; a failure
** is latched. */
mb_status mb_h5_raw_write(mb_h5_dataset *dataset, const mb_range *ranges, uint64_t first,
                          uint64_t bytes, const void *host);
/* Has the disk take what was written. */
mb_status mb_h5_raw_sync(mb_h5_dataset *dataset);
void mb_h5_raw_free(h5_raw *raw); /* NULL is fine */

#endif
