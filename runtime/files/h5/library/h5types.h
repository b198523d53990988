/*
** HDF5 files by the serial libhdf5: the public types, and the order of the files of files/h5.
**
** - Every failure is an mb_status. Its text names the file, the object, what HDF5 said and what to
**   do about it. HDF5's own printing is off.
** - Files that are opened for reading are not locked. A file that a detector still writes can be
**   read.
** - A created file has a temporary name (files/target.h) until mb_h5_finish. The first failure is
**   latched: later calls fail with that first cause.
** - A handle of a dataset stays a valid pointer after its file was closed. Its functions then fail.
**
** Threads: libhdf5 is used under one lock, which every function takes. An mb_h5 and its datasets
** belong to one thread. Other threads may move the data of datasets (read_host, write_host, the raw
** and packed functions) while the owning thread keeps those datasets in use (mb_h5_dataset_use).
**
** Order: a file includes and calls only files that stand before it in this list.
**   library/  how libhdf5 is used:      h5types.h, h5structs.h, h5lock, h5driver, h5error,
**                                       h5ready, h5describe, h5links, h5path
**   missing/  data that are not there:  h5gap_list, h5stored, h5sources, h5gaps
**   data/     datasets and values:      h5made, h5raw, h5packed, h5dataset, h5create, h5virtual,
**                                       h5slab, h5value
**   .         whole files:              h5walk, h5verify, h5probe, h5file, h5result, h5probe_child
** Each .c file has one header, which declares what that file defines and nothing else.
*/
#ifndef MB_FILES_H5TYPES_H
#define MB_FILES_H5TYPES_H

#include "array/array.h"

#define MB_H5_MAX_RANK 32

typedef struct mb_h5 mb_h5;
typedef struct mb_h5_dataset mb_h5_dataset;

typedef enum mb_h5_kind {
    MB_H5_GROUP,
    MB_H5_DATASET,
    MB_H5_DATATYPE,
    MB_H5_DANGLING /* a soft or external link to nothing */
} mb_h5_kind;

typedef struct mb_h5_info {
    mb_h5_kind kind;
    char stored[40]; /* element type as stored: "u16", "i64", "c64", "string", "compound", ... */
    bool numeric;    /* fits an array of `dtype`, the nearest one (i64 and u32: f64) */
    bool text;       /* strings */
    bool empty;      /* a null dataspace: no elements and no shape */
    mb_dtype dtype;
    int rank;
    int64_t dims[MB_H5_MAX_RANK];
    bool chunked;
    int64_t chunks[MB_H5_MAX_RANK];
    bool is_virtual; /* put together from other files */
    bool filtered;
    char filters[120];     /* "shuffle, deflate(4)" */
    uint64_t stored_bytes; /* what the data take in the file */
} mb_h5_info;

/* One object found by a walk. */
typedef struct mb_h5_entry {
    char *path;
    char *link; /* NULL, or where a soft ("/a/b") or external ("file.h5:/a/b") link points */
    mb_h5_info info;
} mb_h5_entry;

/* A small value: an attribute, or a scalar or string dataset. */
typedef struct mb_h5_value {
    bool text;
    int rank; /* 0: scalar */
    int64_t dims[MB_H5_MAX_RANK];
    int64_t count;
    double *numbers; /* text == false */
    char **strings;  /* text == true; never NULL inside */
    bool integers;   /* numbers that are stored as integers */
} mb_h5_value;

typedef struct mb_h5_access {
    bool writable;
    bool allow_external; /* links, virtual datasets and storage may lead out of the file's folder */
    bool allow_missing;  /* what was never written reads as the fill value, instead of failing */
} mb_h5_access;

typedef struct mb_h5_layout {
    const int64_t *chunks; /* NULL: contiguous, or whole frames where deflate asks for chunks */
    int deflate;           /* 0 none ... 9; the bytes are shuffled first */
    bool sparse;           /* its place is fixed, but its disk space is taken as it is written */
    bool early;            /* its place is fixed however small it is; never with deflate */
} mb_h5_layout;

/* A part of a virtual dataset: the whole of a dataset of another file, as indices [first, first +
** count) of axis 0. */
typedef struct mb_h5_source {
    const char *file; /* relative to the folder of the file with the virtual dataset */
    const char *path;
    int64_t first, count;
} mb_h5_source;

#endif
