/*
** HDF5 files by the serial libhdf5.
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
** This header is for users. Each folder of files/h5 has one more, for the folder and those after
** it; each includes the one before it:
**   library/h5library.h  how libhdf5 is used: h5lock, h5driver, h5filters, h5error, h5ready,
**                        h5describe, h5links, h5path
**   missing/h5missing.h  data that are not there: h5gap_list, h5stored, h5sources, h5gaps
**   data/h5data.h        datasets and values: h5made, h5raw, h5packed, h5dataset, h5create,
**                        h5virtual, h5slab, h5value
**   h5whole.h            whole files: h5walk, h5verify, h5probe, h5file, h5result, h5probe_child
** A .c file calls only files that stand before it in this list.
*/
#ifndef MB_FILES_H5_H
#define MB_FILES_H5_H

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
    bool swmr;           /* a file that its writer shares (single writer, multiple readers) */
    bool replaceable;    /* it is no input (files/inputs): this process may overwrite it */
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

/* ---- files ---- */

/* Opens an ordinary file. One that is not known yet is probed before (see the end). `how` may be
** NULL: for reading. */
mb_status mb_h5_open(const char *path, const mb_h5_access *how, mb_h5 **out);
/* Closes; a created and unfinished file is abandoned. Idempotent. */
mb_status mb_h5_close(mb_h5 *file);
/* Closes if need be, and frees. NULL is fine. Leaves the error record alone. */
void mb_h5_destroy(mb_h5 *file);

bool mb_h5_is_open(const mb_h5 *file);
bool mb_h5_is_writable(const mb_h5 *file);
const char *mb_h5_path(const mb_h5 *file);      /* the final name */
const char *mb_h5_part_path(const mb_h5 *file); /* a created file's name now, or NULL */

/* Fails at once where the folder cannot be written, and where `path` exists unless `overwrite`. */
mb_status mb_h5_create(const char *path, bool overwrite, mb_h5 **out);
/* The same with a file that is called `now` until it is finished, and stays when it is closed
** before (files/target.h). */
mb_status mb_h5_keep(const char *path, const char *now, bool overwrite, mb_h5 **out);
/* Goes on with that file of an earlier process, which has all of its head. `folder` is the name of
** its slices folder, or NULL. What is verified in the end are the datasets that are opened. */
mb_status mb_h5_resume(const char *path, const char *now, const char *folder, bool overwrite,
                       mb_h5 **out);
/* A file without a name in `folder`; it is gone when it is closed, or with the process. */
mb_status mb_h5_scratch(const char *folder, mb_h5 **out);
/* Makes the folder of slices beside a created file (files/target.h); *out is its path. */
mb_status mb_h5_make_folder(mb_h5 *file, const char **out);
/* Has libhdf5 write and close the file for now, so that what it has made is on record, and all that
** is still to come are bytes of datasets at known places. *rests: false where the place of an open
** dataset is not known (it is compressed); the file is then as it was. Raw writes go on while the
** file is at rest; whatever else is done with it opens it again. */
mb_status mb_h5_rest(mb_h5 *file, bool *rests);
/* Completes a created file: writes the completion marker (an ISO time) as a dataset at `marker`, or
** as attribute "end_time" of the root when it is NULL; flush, close, sync, reopen and verify,
** rename. Whatever fails, the temporary file is gone and nothing has the final name. Without `sync`
** the disk is not waited for: for a file among many, whose owner has the disk take them all before
** anything refers to them. `held` (may be NULL): the file that this one replaces stays until
** mb_h5_close; *held is its name, or NULL. */
mb_status mb_h5_finish(mb_h5 *file, const char *marker, bool sync, const char **held);

/* ---- structure ---- */

/* All objects below `path` in name order, parents first. A group that is reached twice is listed
** twice but entered once; groups behind external links are not entered. The list belongs to the
** file, until its next walk or its end. */
mb_status mb_h5_walk(mb_h5 *file, const char *path, const mb_h5_entry **list, int64_t *count);
/* Does `path` lead to an object? It does not where a name is missing, or a soft link leads
** nowhere. A damaged group, a link that is refused, and one into a file that is missing are
** failures: what they hide is not absent. */
mb_status mb_h5_find(mb_h5 *file, const char *path, bool *found);
mb_status mb_h5_describe(mb_h5 *file, const char *path, mb_h5_info *info);
/* Creates a group with all its parents; an existing one is fine. */
mb_status mb_h5_group(mb_h5 *file, const char *path);
/* A hard link to `target`, or a soft one, at `path`. */
mb_status mb_h5_link(mb_h5 *file, const char *target, const char *path, bool soft);

/* ---- datasets ---- */

mb_status mb_h5_dataset_open(mb_h5 *file, const char *path, mb_h5_dataset **out);
void mb_h5_dataset_destroy(mb_h5_dataset *dataset); /* NULL is fine */
const mb_h5_info *mb_h5_dataset_info(const mb_h5_dataset *dataset);
const char *mb_h5_dataset_path(const mb_h5_dataset *dataset);
bool mb_h5_dataset_is_open(const mb_h5_dataset *dataset);
/* Has the bits of a dataset's elements taken for unsigned integers or, with `swapped`, in the other
** byte order (16-bit integers unsigned too), although the file says something else. Its info then
** has that type, and it is read as that type alone. Types: i8 and i16 unsigned; u16, i16, i32, f16
** and f32 swapped. */
mb_status mb_h5_dataset_take(mb_h5_dataset *dataset, bool swapped);
/* Has a dataset of a file that is open for reading shown as (frame, row, column): these are the axes
** axes[0], axes[1] and axes[2] of the file. Its other axes have extent 1. The columns come after the
** frames and rows; those may come in either order. Its info and all ranges are then those of the
** three axes. Nothing has been read yet. */
mb_status mb_h5_dataset_show(mb_h5_dataset *dataset, const int axes[3]);
/* The other files that the data of a dataset are in, as far as that is known without reading them:
** what a link leads to, and the sources of a virtual dataset. NULL after the last; `index` is from
** 0. The text belongs to the dataset, until its next call. */
mb_status mb_h5_dataset_source(mb_h5_dataset *dataset, int64_t index, const char **path);
/* +1: another thread will move data of this dataset; -1: it has. Destroying a dataset in use closes
** it at once, and frees it after its last use. */
void mb_h5_dataset_use(mb_h5_dataset *dataset, int change);
/* A new dataset, with all its parent groups. A large one takes its disk space now: a full disk is
** an error here. */
mb_status mb_h5_dataset_create(mb_h5 *file, const char *path, mb_dtype dtype, int rank,
                               const int64_t *dims, const mb_h5_layout *layout,
                               mb_h5_dataset **out);
/* A new dataset that shows others as one; they may come into being later, but must be there when
** the file is finished. Fails where the disk has no room for their data. */
mb_status mb_h5_virtual_create(mb_h5 *file, const char *path, mb_dtype dtype, int rank,
                               const int64_t *dims, const mb_h5_source *sources, int64_t count,
                               mb_h5_dataset **out);
/* What was never written of a dataset: pairs of indices of axis 0, first and last, that belong to
** the file, and why (NULL: nothing). Frames of a virtual dataset whose source is missing are
** among them. */
mb_status mb_h5_dataset_missing(mb_h5_dataset *dataset, const int64_t (**runs)[2], int64_t *count,
                                const char **why);

/* ---- data ---- */

/* Reads a hyperslab (one range per axis, steps >= 1) into `array`, whose elements in row-major
** order are those of the slab; HDF5 converts the elements. Integers that do not fit are clamped;
** floating point does not become integer. The array must be contiguous. On a device other than the
** host the data go through a buffer of 32 MiB. Polls the cancel flag. In a dry run nothing is
** read. */
mb_status mb_h5_dataset_read(mb_h5_dataset *dataset, const mb_range *ranges, mb_array *array);
/* The same into host memory. */
mb_status mb_h5_dataset_read_host(mb_h5_dataset *dataset, const mb_range *ranges, mb_dtype dtype,
                                  void *host);
/* Writes `array` into a hyperslab; any strides on the host, contiguous elsewhere. */
mb_status mb_h5_dataset_write(mb_h5_dataset *dataset, const mb_range *ranges,
                              const mb_array *array);
mb_status mb_h5_dataset_write_host(mb_h5_dataset *dataset, const mb_range *ranges, mb_dtype dtype,
                                   const void *host);
/* The checks of read and write, without moving anything. */
mb_status mb_h5_dataset_check(mb_h5_dataset *dataset, const mb_range *ranges, const mb_array *array,
                              bool reading);

/* Can threads move this dataset's bytes by pread and pwrite, beside libhdf5? They can where the
** bytes are stored as `dtype` has them in memory: contiguous or in chunks that span the last axis,
** no filter, no conversion, not virtual or external. In a file that is open for reading only, or,
** contiguous and with a place in the file, written to one that is being created; in both directions
** where that is at rest. If not, `why` (may be NULL) says why not. Never a failure. */
bool mb_h5_raw_possible(mb_h5_dataset *dataset, mb_dtype dtype, bool reading, const char **why);
/* Of a file that is being written: is the place of the dataset's bytes known, for elements as they
** are stored? Finds out, if nobody has. */
bool mb_h5_raw_placed(mb_h5_dataset *dataset);
/* Where the bytes of a contiguous dataset are, after either of these has said yes; false for one in
** chunks. */
bool mb_h5_raw_place(const mb_h5_dataset *dataset, uint64_t *offset, uint64_t *bytes);
/* Why the place is not known, where it was looked for; NULL otherwise. */
const char *mb_h5_raw_why(const mb_h5_dataset *dataset);
/* Moves bytes [first, first + bytes) of a slab, seen as dense row-major memory, after
** mb_h5_raw_possible has said yes. Steps are 1 and the last axis is whole. Any thread, any number
** of them; no lock of libhdf5 while bytes move. */
mb_status mb_h5_raw_read(mb_h5_dataset *dataset, const mb_range *ranges, uint64_t first,
                         uint64_t bytes, void *host);
/* The same in the other direction. The file remembers a row of it for its verification; a failure
** is latched. */
mb_status mb_h5_raw_write(mb_h5_dataset *dataset, const mb_range *ranges, uint64_t first,
                          uint64_t bytes, const void *host);
/* Has the disk take what was written. */
mb_status mb_h5_raw_sync(mb_h5_dataset *dataset);

/* Can threads decode this dataset's chunks beside each other? They can where chunks are whole
** frames compressed by deflate, Blosc, LZ4, bitshuffle or Zstandard, shuffled before or not. */
bool mb_h5_packed_possible(mb_h5_dataset *dataset, mb_dtype dtype);
/* Frames [first, first + frames) of a slab whose steps are 1 and whose last axis is whole; any
** thread. libhdf5's lock is held only while it hands out stored bytes. Every call decodes the
** chunks it touches, and takes memory for the stored bytes of one; other codecs than deflate take
** as much as a decoded chunk where it is not wanted as it is, and Blosc twice that for itself. */
mb_status mb_h5_packed_read(mb_h5_dataset *dataset, const mb_range *ranges, int64_t first,
                            int64_t frames, void *host);

/* ---- small values: attributes, and scalar, string or short datasets ---- */

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

/* ---- the probe ----
**
** A look at a file in a process of its own, before this one opens it: libhdf5 hangs on some damaged
** files, crashes on others, and takes gigabytes for more. The other process is the program itself,
** with limits of time and memory. */

/* The option with which the program probes: PROGRAM --probe-hdf5 FILE [FLAGS]. */
#define MB_H5_PROBE_OPTION "--probe-hdf5"

/* Says that the program that runs knows MB_H5_PROBE_OPTION. Without this call (the module in
** another program), a moonbeam beside the module is used; where there is none, files are not
** probed. */
void mb_h5_probe_by_self(void);
/* The other process: reads all the structure and the small values of the file, and returns the exit
** status. */
int mb_h5_probe_child(const char *path, const char *flags);

/* ---- the library ---- */

const char *mb_h5_version(void); /* of libhdf5 */
/* The path of the file that the calling thread uses libhdf5 for, or NULL outside libhdf5. Signal
** handlers may ask: some damaged files crash libhdf5. */
const char *mb_h5_inside(void);

#endif
