/*
** What was never written of a dataset, for files/h5 alone.
*/
#ifndef MB_FILES_H5MISSING_H
#define MB_FILES_H5MISSING_H

#include "files/h5/library/h5library.h"

/* ---- h5gap_list.c: lists of gaps, and of the files that the rest comes from ---- */

/* Adds indices [first, last] of the list's axis, which come after those that are listed. */
mb_status mb_h5_add_gap(h5_gaps *gaps, int64_t first, int64_t last);
/* Adds all indices of the list's axis; `info` has those of the file. */
mb_status mb_h5_add_whole_gap(h5_gaps *gaps, const mb_h5_info *info);
mb_status mb_h5_add_source(h5_gaps *gaps, const char *path, int64_t first, int64_t last);
void mb_h5_clear_gaps(h5_gaps *gaps);

/* ---- h5stored.c ---- */

/* Adds the gaps of dataset `id` to the list. It is not virtual and has elements. `info` is that of
** the file, here and below. */
mb_status mb_h5_find_stored_gaps(mb_h5 *file, hid_t id, const mb_h5_info *info, h5_gaps *gaps);

/* ---- h5sources.c ---- */

/* Adds what dataset `id`, in a file that is called `name`, lacks to the list. */
mb_status mb_h5_find_gaps(mb_h5 *file, hid_t id, const char *name, const mb_h5_info *info,
                          h5_gaps *gaps);
/* Fails where something of a virtual dataset is missing; it is open as `id` in a file that is
** called `name`, and has the path `path`. */
mb_status mb_h5_check_sources(mb_h5 *file, hid_t id, const char *name, const char *path);

/* ---- h5gaps.c ---- */

/* The other files that what is there of a dataset comes from (h5_gaps); *count of them. */
mb_status mb_h5_sources(mb_h5_dataset *dataset, const h5_source **list, int64_t *count);
/* Fails where a slab has parts that were never written; NULL: all of the dataset. */
mb_status mb_h5_check_written(mb_h5_dataset *dataset, const mb_range *ranges);
/* Fails where the file, or one that it takes these indices from, has become shorter. */
mb_status mb_h5_check_whole(mb_h5_dataset *dataset, const mb_range *ranges);
void mb_h5_forget_gaps(mb_h5 *file);

#endif
