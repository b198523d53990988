/*
** The structures of HDF5 files, for files/h5 alone. libhdf5 must be 1.10.7 or later
** (H5Pset_file_locking). Later versions are asked for their 1.10 interface.
*/
#ifndef MB_FILES_H5STRUCTS_H
#define MB_FILES_H5STRUCTS_H

#define H5_USE_110_API
#include "files/h5/library/h5types.h"
#include "files/target.h"
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

/* What was never written of a dataset, and where the rest is (missing/). */
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
    bool resting; /* a created file that libhdf5 has closed for now (h5ready.h) */
    bool allow_external, allow_missing;
    hid_t links;    /* access list by which links are followed (h5links.c); 0: none */
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
    int made;           /* number in file->made, or -1 */
    int users;          /* transfers under way that refer to it */
    bool destroyed;     /* frees itself with the last of them */
    struct h5_raw *raw; /* where its bytes are, once that was asked for (h5raw.c) */
    mb_h5_dataset *previous, *next;
};

#endif
