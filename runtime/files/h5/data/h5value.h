/*
** Small values in HDF5 files: attributes, and scalar, string or short datasets.
*/
#ifndef MB_FILES_H5VALUE_H
#define MB_FILES_H5VALUE_H

#include "files/h5/library/h5types.h"

/* Values belong to the file, until its next value call or its end. A missing attribute gives *value
** == NULL. */
mb_status mb_h5_attribute_read(mb_h5 *file, const char *path, const char *name,
                               const mb_h5_value **value);
/* Names in order; they belong to the file likewise. */
mb_status mb_h5_attribute_names(mb_h5 *file, const char *path, char ***names, int64_t *count);
/* Creates or replaces. Strings are variable-length UTF-8. */
mb_status mb_h5_attribute_write(mb_h5 *file, const char *path, const char *name,
                                const mb_h5_value *value);
/* A dataset of numbers (as double, or i64 where `integers`) or strings, up to 1 Mi elements. */
mb_status mb_h5_value_read(mb_h5 *file, const char *path, const mb_h5_value **value);
mb_status mb_h5_value_write(mb_h5 *file, const char *path, const mb_h5_value *value);
void mb_h5_free_value(mb_h5 *file);

#endif
