/*
** What the HDF5 files of runtime/io share; nobody else includes this. libhdf5 must be 1.10.7 or
** later (H5Pset_file_locking); its 1.10 interface is asked for under later versions.
*/
#ifndef MB_IO_H5INTERNAL_H
#define MB_IO_H5INTERNAL_H

#define H5_USE_110_API
#include "files/target.h"
#include "io/h5file.h"
#include <hdf5.h>

/* libhdf5 may be used by one thread at a time. Every entry point that uses it begins with MB_H5_GUARD, which holds its lock
** until the function returns; the lock is recursive. */
int mb_h5_lock(void);
void mb_h5_unlock(int *);
#define MB_H5_GUARD int mb_h5_guard_ __attribute__((cleanup(mb_h5_unlock), unused)) = mb_h5_lock()

/* One written row of a created file, to be read back before the file gets its name. */
typedef struct h5_sample {
    int made;
    int64_t first[MB_H5_MAX_RANK]; /* of the row; its extent along the last axis is `count` */
    int64_t count;
    uint64_t sum;
    mb_dtype dtype;
} h5_sample;

#define H5_MAX_SAMPLES 128

typedef struct h5_raw h5_raw;

/* What the driver of a file that is written (h5driver.c) and the file's owner tell each other. */
typedef struct h5_disk {
    bool created; /* in: a file of our own, which is locked already, open as `fd` */
    int fd;
    bool abandoned; /* in: nothing more is to be written */
    int error;      /* out: errno of the first write that the disk refused, or 0 */
} h5_disk;

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
    mb_target *target; /* created files; a scratch file has none */
    int fd;            /* created files: the target's descriptor, or a scratch file's own */
    bool writable, created;
    h5_disk disk;     /* files that are written */
    mb_error latched; /* created files: the first failure */
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
    int made;       /* number in file->made, or -1 */
    int users;      /* transfers under way that refer to it */
    bool destroyed; /* frees itself with the last of them */
    h5_raw *raw;    /* where its bytes are, once that was asked for (h5raw.c) */
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

/* Files opened by `access` are written by our driver, which refers to `disk`. */
void mb_h5_use_driver(hid_t access, h5_disk *disk);
/* Records that the disk has refused a write of the file (file->disk.error), as mb_h5_failure does. */
mb_status mb_h5_refused(mb_h5 *file, const char *path, const char *doing);

mb_h5_info mb_h5_classify_type(hid_t type);
bool mb_h5_same_type(const mb_h5_dataset *dataset, mb_dtype dtype);
/* Memory type of a dtype, to be closed. */
hid_t mb_h5_type_of(mb_dtype dtype);
mb_status mb_h5_describe_dataset(mb_h5 *file, hid_t dataset, const char *path, mb_h5_info *info);
/* "bitshuffle", and the Debian package of the plug-in; both may be NULL. */
const char *mb_h5_filter_name(H5Z_filter_t id, const char **package);
/* The link creation list that makes parent groups; to be closed. */
hid_t mb_h5_parents(void);

/* Fails where a source file of a virtual dataset is missing; `file` has the dataset `path`, which is open as `id`. */
mb_status mb_h5_check_sources(hid_t id, const char *file, const char *path);
/* Checks a slab against the dataset. */
mb_status mb_h5_check_ranges(const mb_h5_dataset *dataset, const mb_range *ranges,
                             uint64_t *elements);
/* Remembers the last row of what was written to a slab of a created file, in place of older rows there; of nothing (NULL), only
** forgets those. Takes a lock of its own: threads that write beside libhdf5 do not wait for what that does. */
void mb_h5_sample(mb_h5_dataset *dataset, const mb_range *ranges, mb_dtype dtype, const void *host,
                  uint64_t elements);
void mb_h5_raw_free(h5_raw *raw); /* NULL is fine */
/* Frees what a dataset of a closed file that nobody uses has no more need of; itself, once it was destroyed. */
void mb_h5_dataset_let_go(mb_h5_dataset *dataset);

void mb_h5_free_entries(mb_h5 *file);
void mb_h5_free_value(mb_h5 *file);
void mb_h5_close_datasets(mb_h5 *file);
void mb_h5_forget_made(mb_h5 *file);
/* Before a dataset's file goes: sets its `file` to NULL, while no thread takes a sample. */
void mb_h5_leave_file(mb_h5_dataset *dataset);
/* Reads the samples of a reopened file back. */
mb_status mb_h5_verify(mb_h5 *file, hid_t reopened);
uint64_t mb_h5_sum(const void *bytes, size_t count);
/* The current time as "2026-08-01T12:34:56+00:00". */
char *mb_h5_now(char *buffer, size_t bytes);

char *mb_h5_copy_text(const char *text); /* NULL without memory, with the failure recorded */

#endif
