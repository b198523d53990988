/*
** What was never written of a dataset that has its data by itself, not by virtual sources.
*/
#ifndef MB_FILES_H5STORED_H
#define MB_FILES_H5STORED_H

#include "files/h5/library/h5structs.h"

/* Adds the gaps of dataset `id` to the list. It is not virtual and has elements. */
mb_status mb_h5_find_stored_gaps(mb_h5 *file, hid_t id, const mb_h5_info *info, h5_gaps *gaps);

#endif
