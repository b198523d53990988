/*
** What was never written of a dataset, asked before data are read, and files that become shorter.
*/
#ifndef MB_FILES_H5GAPS_H
#define MB_FILES_H5GAPS_H

#include "files/h5/library/h5types.h"

/* What was never written of a dataset: pairs of indices of axis 0, first and last, that belong to
** the file, and why (NULL: nothing). Frames of a virtual dataset whose source is missing are
** among them. */
mb_status mb_h5_dataset_missing(mb_h5_dataset *dataset, const int64_t (**runs)[2], int64_t *count,
                                const char **why);
/* Fails where a slab has parts that were never written; NULL: all of the dataset. */
mb_status mb_h5_check_written(mb_h5_dataset *dataset, const mb_range *ranges);
/* Fails where the file, or one that it takes these indices from, has become shorter. */
mb_status mb_h5_check_whole(mb_h5_dataset *dataset, const mb_range *ranges);
void mb_h5_forget_gaps(mb_h5 *file);

#endif
