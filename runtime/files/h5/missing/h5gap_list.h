/*
** Lists of what was never written of a dataset, and of the files that the rest comes from.
*/
#ifndef MB_FILES_H5GAP_LIST_H
#define MB_FILES_H5GAP_LIST_H

#include "files/h5/library/h5structs.h"

/* Adds indices [first, last] of axis 0, which come after those that are listed. */
mb_status mb_h5_add_gap(h5_gaps *gaps, int64_t first, int64_t last);
/* Adds all indices of axis 0. */
mb_status mb_h5_add_whole_gap(h5_gaps *gaps, const mb_h5_info *info);
mb_status mb_h5_add_source(h5_gaps *gaps, const char *path, int64_t first, int64_t last);
void mb_h5_clear_gaps(h5_gaps *gaps);

#endif
