/*
** Datasets and values, for files/h5 alone.
*/
#ifndef MB_FILES_H5DATA_H
#define MB_FILES_H5DATA_H

#include "files/h5/missing/h5missing.h"

/* ---- h5made.c: what a created file must be found to have before it gets its name ---- */

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

/* ---- h5raw.c ---- */

void mb_h5_raw_free(struct h5_raw *raw); /* NULL is fine */

/* ---- h5dataset.c ---- */

/* A handle for a dataset that is open as `id`, which it owns then. */
mb_status mb_h5_adopt(mb_h5 *file, hid_t id, const char *path, mb_h5_dataset **out);
/* Closes all datasets of a file; their handles stay until they are destroyed. */
void mb_h5_close_datasets(mb_h5 *file);

/* ---- h5create.c ---- */

/* Fails where the disk has no room for `bytes` more. */
mb_status mb_h5_check_space(mb_h5 *file, uint64_t bytes);
/* A handle for a dataset just created as `id`, which the file will look for when it is
** verified. */
mb_status mb_h5_adopt_made(mb_h5 *file, hid_t id, const char *path, mb_h5_dataset **out);

/* ---- h5value.c ---- */

void mb_h5_free_value(mb_h5 *file);

#endif
