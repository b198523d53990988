/*
** Handles of HDF5 datasets.
*/
#ifndef MB_FILES_H5DATASET_H
#define MB_FILES_H5DATASET_H

#include "files/h5/library/h5types.h"

mb_status mb_h5_dataset_open(mb_h5 *file, const char *path, mb_h5_dataset **out);
void mb_h5_dataset_destroy(mb_h5_dataset *dataset); /* NULL is fine */
const mb_h5_info *mb_h5_dataset_info(const mb_h5_dataset *dataset);
const char *mb_h5_dataset_path(const mb_h5_dataset *dataset);
bool mb_h5_dataset_is_open(const mb_h5_dataset *dataset);
/* +1: another thread will move data of this dataset; -1: it has. Destroying a dataset in use closes
** it at once, and frees it after its last use. */
void mb_h5_dataset_use(mb_h5_dataset *dataset, int change);
/* A handle for a dataset that is open as `id` (libhdf5's hid_t), which it owns then. */
mb_status mb_h5_adopt(mb_h5 *file, int64_t id, const char *path, mb_h5_dataset **out);
/* Closes all datasets of a file; their handles stay until they are destroyed. */
void mb_h5_close_datasets(mb_h5 *file);

#endif
