/*
** What objects of HDF5 files are: element types, filters, extents.
*/
#ifndef MB_FILES_H5DESCRIBE_H
#define MB_FILES_H5DESCRIBE_H

#include "files/h5/library/h5structs.h"

/* The memory type of a dtype, to be closed. */
hid_t mb_h5_type_of(mb_dtype dtype);
mb_h5_info mb_h5_classify_type(hid_t type);
/* Are the elements stored as an array of `dtype` has them in memory? */
bool mb_h5_same_type(const mb_h5_dataset *dataset, mb_dtype dtype);
/* "bitshuffle", and the Debian package of the plug-in; both may be NULL. */
const char *mb_h5_filter_name(H5Z_filter_t id, const char **package);
mb_status mb_h5_describe_dataset(mb_h5 *file, hid_t dataset, const char *path, mb_h5_info *info);
/* The same of any object. */
mb_status mb_h5_describe_object(mb_h5 *file, hid_t id, const char *path, mb_h5_info *info);
/* Fails where the chunks are larger than the dataset can be in a sound file. */
mb_status mb_h5_check_chunk(const mb_h5_dataset *dataset);

#endif
