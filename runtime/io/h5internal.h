/*
** What the HDF5 files of runtime/io share; nobody else includes this. libhdf5 must be 1.10.7 or
** later (H5Pset_file_locking); its 1.10 interface is asked for under later versions.
*/
#ifndef MB_IO_H5INTERNAL_H
#define MB_IO_H5INTERNAL_H

#define H5_USE_110_API
#include "io/h5file.h"
#include <hdf5.h>

/* One written row of a created file, to be read back before the file gets its name. */
typedef struct h5_sample {
    int made;
    int64_t first[MB_H5_MAX_RANK]; /* of the row; its extent along the last axis is `count` */
    int64_t count;
    uint64_t sum;
    mb_dtype dtype;
} h5_sample;

#define H5_MAX_SAMPLES 128

/* One dataset of a created file, as it must be found again. */
typedef struct h5_made {
    char *path;
    mb_h5_info info;
    struct h5_made *next;
    int number;
} h5_made;

struct mb_h5 {
    hid_t id; /* -1: closed */
    char *path;
    char *part; /* created files: the temporary name */
    int fd;     /* created files: our own descriptor, locked; keeps write-back errors for fsync */
    bool writable, created, overwrite;
    mb_error latched; /* created files: the first failure */
    mb_h5 *next_unfinished, **link_unfinished;
    mb_h5_dataset *datasets;
    h5_made *made;
    int made_count;
    h5_sample *samples;
    int sample_count;
    mb_h5_entry *entries;
    int64_t entry_count;
    mb_h5_value *value;
    char **names;
    int64_t name_count;
};

struct mb_h5_dataset {
    mb_h5 *file; /* NULL once the file is closed */
    hid_t id;
    char *path;
    mb_h5_info info;
    int made; /* number in file->made, or -1 */
    mb_h5_dataset *previous, *next;
};

/* Start of every entry point: the thread's HDF5 error stack neither prints nor holds old errors. */
void mb_h5_quiet(void);
/* Records "cannot <doing> '<path>' in '<file>': <what HDF5 said>; <remedy>". */
mb_status mb_h5_failure(mb_h5 *file, const char *path, const char *doing);
/* What HDF5 said (innermost record), or "". */
char *mb_h5_said(char *buffer, size_t bytes);
/* Latches the recorded failure of a created file; returns `status`. */
mb_status mb_h5_latch(mb_h5 *file, mb_status status);
/* Open for the purpose? Restores a latched failure. */
mb_status mb_h5_ready(mb_h5 *file, bool writing);

mb_h5_info mb_h5_classify_type(hid_t type);
/* Memory type of a dtype, to be closed. */
hid_t mb_h5_type_of(mb_dtype dtype);
mb_status mb_h5_describe_dataset(mb_h5 *file, hid_t dataset, const char *path, mb_h5_info *info);
/* "bitshuffle", and the Debian package of the plug-in; both may be NULL. */
const char *mb_h5_filter_name(H5Z_filter_t id, const char **package);
/* The link creation list that makes parent groups; to be closed. */
hid_t mb_h5_parents(void);

/* Takes a created file off the list of those whose temporary file is removed when the process ends.
** */
void mb_h5_settled(mb_h5 *file);
void mb_h5_free_entries(mb_h5 *file);
void mb_h5_free_value(mb_h5 *file);
void mb_h5_close_datasets(mb_h5 *file);
void mb_h5_forget_made(mb_h5 *file);
/* Reads the samples of a reopened file back. */
mb_status mb_h5_verify(mb_h5 *file, hid_t reopened);
uint64_t mb_h5_sum(const void *bytes, size_t count);
/* The current time as "2026-08-01T12:34:56+00:00". */
char *mb_h5_now(char *buffer, size_t bytes);

char *mb_h5_copy_text(const char *text); /* NULL without memory, with the failure recorded */

#endif
