/*
** What a created file must be found to have before it gets its name.
*/
#ifndef MB_FILES_H5MADE_H
#define MB_FILES_H5MADE_H

#include "files/h5/library/h5structs.h"

/* Lists a dataset of a created file, and gives it its number; of other files, nothing. */
mb_status mb_h5_remember(mb_h5_dataset *dataset);
/* Lists the sources of a virtual dataset that was just listed. */
mb_status mb_h5_remember_sources(h5_made *made, const mb_h5_source *sources, int64_t count);
void mb_h5_forget_made(mb_h5 *file);
/* Remembers the last row of what was written to a slab of a created file, in place of older rows
** there; of nothing (NULL), only forgets those. Takes a lock of its own: threads that write beside
** libhdf5 do not wait for what that does. */
void mb_h5_sample(mb_h5_dataset *dataset, const mb_range *ranges, mb_dtype dtype, const void *host,
                  uint64_t elements);
/* Before a dataset's file goes: sets its `file` to NULL, while no thread takes a sample. */
void mb_h5_leave_file(mb_h5_dataset *dataset);
uint64_t mb_h5_sum(const void *bytes, size_t count);

#endif
