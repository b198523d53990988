/*
** What the HDF5 files of runtime/files/h5 share; nobody else includes this. libhdf5 must be 1.10.7
** or later (H5Pset_file_locking); its 1.10 interface is asked for under later versions.
*/
#ifndef MB_IO_H5INTERNAL_H
#define MB_IO_H5INTERNAL_H

#define H5_USE_110_API
#include "files/target.h"
#include "files/h5/h5file.h"
#include <hdf5.h>

/* libhdf5 may be used by one thread at a time. Every entry point that uses it begins with
** MB_H5_GUARD, which holds its lock until the function returns; the lock is recursive. */
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

#define H5_PROBLEM_BYTES 700

typedef enum h5_verdict {
    H5_ABSENT,
    H5_FOUND,
    H5_REFUSED, /* it is there, and may not be opened */
} h5_verdict;

/* Another file that data come from, as it was when it was found. */
typedef struct h5_source {
    char *path;
    int64_t bytes;       /* its size */
    int64_t first, last; /* the indices of axis 0 that it may give something to */
} h5_source;

/* What was never written of a dataset, and where the rest is (h5gaps.c). */
typedef struct h5_gaps {
    char *path;         /* of the dataset */
    int64_t (*runs)[2]; /* indices of axis 0, first and last; for a scalar 0 and 0 */
    int64_t count, capacity, frames;
    char problem[H5_PROBLEM_BYTES]; /* what is missing and why, where something is */
    bool forbidden;                 /* it would be read from a file that may not be opened */
    h5_source *sources;
    int64_t source_count, source_capacity;
    struct h5_gaps *next;
} h5_gaps;

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
    mb_h5_source *sources; /* of a virtual dataset, with texts of their own */
    int64_t source_count;
    struct h5_made *next;
    int number;
} h5_made;

struct mb_h5 {
    hid_t id; /* -1: closed */
    char *path;
    mb_target *target; /* created files; a scratch file has none */
    int fd;            /* created files: the target's descriptor, or a scratch file's own */
    bool writable, created;
    bool allow_external, allow_missing;
    hid_t links;    /* access list by which links are followed (h5outside.c); 0: none */
    char *folder;   /* where it really is; what it refers to must be there */
    int64_t bytes;  /* its size when it was opened */
    h5_gaps *gaps;  /* of its datasets, once they were asked for */
    int link_depth; /* external links that are being followed */
    char refused[H5_PROBLEM_BYTES]; /* why the latest link was not followed, or empty */
    h5_disk disk;                   /* files that are written */
    mb_error latched;               /* created files: the first failure */
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
/* Records that the disk has refused a write of the file (file->disk.error), as mb_h5_failure does.
** */
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

/* Fails unless there is an object at `path`; unless there is none, and the path can be used. */
mb_status mb_h5_need(mb_h5 *file, const char *path);
mb_status mb_h5_need_new(mb_h5 *file, const char *path);

/* ---- what lies in other files (h5outside.c, h5sources.c) ---- */

/* Sets file->folder to the real folder of the file that is called `name`; that and file->links. */
mb_status mb_h5_set_folder(mb_h5 *file, const char *name);
mb_status mb_h5_begin_outside(mb_h5 *file);
void mb_h5_end_outside(mb_h5 *file);
/* A list of class `kind` by which links are followed as file->links says; to be closed. */
hid_t mb_h5_link_access(mb_h5 *file, hid_t kind);
/* Finds the file that libhdf5 will take for `name`, which the file `parent` refers to: its name in
** `found` (PATH_MAX bytes). `prefixes` is the environment variable with folders to look in.
** `problem` (H5_PROBLEM_BYTES) says what is wrong where it is not found. */
h5_verdict mb_h5_resolve(mb_h5 *file, const char *parent, const char *name, const char *prefixes,
                         char *found, char *problem);
/* Checks the files in which a dataset has its bytes by H5Pset_external. */
bool mb_h5_check_storage(mb_h5 *file, hid_t id, const mb_h5_info *info, h5_gaps *gaps);
/* Finds what virtual dataset `id`, in a file that is called `name`, does not get. */
mb_status mb_h5_find_virtual_gaps(mb_h5 *file, hid_t id, const char *name, const mb_h5_info *info,
                                  h5_gaps *gaps, int depth);
/* Fails where something of a virtual dataset is missing; it is open as `id` in a file that is
** called `name`, and has the path `path`. */
/* Remembers what a virtual dataset that was just made shows (h5virtual.c). */
mb_status mb_h5_remember_sources(h5_made *made, const mb_h5_source *sources, int64_t count);
void mb_h5_forget_sources(h5_made *made);
/* HDF5 takes names of sources as formats: the name with every '%' doubled; to be freed. */
char *mb_h5_literal(const char *name);
/* Fails where the virtual dataset, open as `id`, shows other values than its sources have. */
mb_status mb_h5_verify_virtual(mb_h5 *file, const h5_made *made, hid_t id);
mb_status mb_h5_check_sources(mb_h5 *file, hid_t id, const char *name, const char *path);

/* ---- what was never written (h5gaps.c) ---- */

mb_status mb_h5_find_gaps(mb_h5 *file, hid_t id, const char *name, const mb_h5_info *info,
                          h5_gaps *gaps, int depth);
mb_status mb_h5_add_gap(h5_gaps *gaps, int64_t first, int64_t last);
mb_status mb_h5_add_source(h5_gaps *gaps, const char *path, int64_t first, int64_t last);
void mb_h5_clear_gaps(h5_gaps *gaps);
void mb_h5_forget_gaps(mb_h5 *file);
/* Fails where a slab has parts that were never written; NULL: all of the dataset. */
mb_status mb_h5_check_written(mb_h5_dataset *dataset, const mb_range *ranges);
/* Fails where the file, or one that it takes these indices from, has become shorter. */
mb_status mb_h5_check_whole(mb_h5_dataset *dataset, const mb_range *ranges);
/* libhdf5's descriptor of a file that is open for reading, or -1. */
int mb_h5_descriptor(const mb_h5 *file);

/* Fails where the chunks are larger than the dataset can be in a sound file. */
mb_status mb_h5_check_chunk(const mb_h5_dataset *dataset);
/* Checks a slab against the dataset. */
mb_status mb_h5_check_ranges(const mb_h5_dataset *dataset, const mb_range *ranges,
                             uint64_t *elements);
/* Remembers the last row of what was written to a slab of a created file, in place of older rows
** there; of nothing (NULL), only forgets those. Takes a lock of its own: threads that write beside
** libhdf5 do not wait for what that does. */
void mb_h5_sample(mb_h5_dataset *dataset, const mb_range *ranges, mb_dtype dtype, const void *host,
                  uint64_t elements);
void mb_h5_raw_free(h5_raw *raw); /* NULL is fine */
/* Frees what a dataset of a closed file that nobody uses has no more need of; itself, once it was
** destroyed. */
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
