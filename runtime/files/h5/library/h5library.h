/*
** How libhdf5 is used, for files/h5 alone: the structures of files, and the functions of library/.
** libhdf5 must be 1.10.7 or later (H5Pset_file_locking). Later versions are asked for their 1.10
** interface.
*/
#ifndef MB_FILES_H5LIBRARY_H
#define MB_FILES_H5LIBRARY_H

#define H5_USE_110_API
#include "files/codecs/framed_codecs.h"
#include "files/h5/h5.h"
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
    int64_t first, last; /* the indices (h5_gaps) that it may give something to */
} h5_source;

/* What is to come of a chunk: so many bytes (0: not known), and at most so many. */
typedef struct h5_expected {
    uint64_t exact, most;
} h5_expected;

/* What was never written of a dataset, and where the rest is (missing/). */
typedef struct h5_gaps {
    char *path;         /* of the dataset */
    int axis;           /* the one in the file whose indices count, 0 unless frames are another */
    int64_t (*runs)[2]; /* its indices, first and last; for a scalar 0 and 0 */
    int64_t count, capacity, frames;
    char problem[H5_PROBLEM_BYTES]; /* what is missing and why, where something is */
    bool forbidden;                 /* it would be read from a file that may not be opened */
    h5_source *sources;
    int64_t source_count, source_capacity;
    h5_expected chunk; /* what comes of the chunks of a virtual dataset's sources */
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

/* The groups that a walk has entered. */
typedef struct h5_visited {
    struct h5_place {
        unsigned long file;
        haddr_t address;
    } * places;
    int64_t count, room;
} h5_visited;

/* The bytes of a file that a dataset has. */
typedef struct h5_extent {
    unsigned long file;
    haddr_t object, first; /* the address of its header, that of its elements */
    hsize_t bytes;
} h5_extent;

struct mb_h5 {
    hid_t id; /* -1: closed */
    char *path;
    char *found; /* the path that mb_h5_find has found last (nothing is ever removed), or NULL */
    mb_target *target; /* created files; a scratch file has none */
    int fd;            /* created files: the target's descriptor, or a scratch file's own */
    bool writable, created;
    bool resumed; /* a created file that an earlier process has begun */
    bool resting; /* a created file that libhdf5 has closed for now (h5ready.c) */
    bool allow_external, allow_missing, swmr, replaceable;
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
    h5_extent *extents; /* of the datasets that were opened (h5places.c) */
    int64_t extent_count, extent_room;
};

struct mb_h5_dataset {
    mb_h5 *file; /* NULL once the file is closed */
    hid_t id;
    char *path;
    mb_h5_info info;
    int stored_rank;      /* its axes in the file; `info` may show fewer (mb_h5_dataset_show): */
    int axes[3];          /* where these are in the file, */
    bool turned;          /* rows before frames, */
    bool padded;          /* chunks longer than 1 along an axis that is not shown */
    char *source;         /* the text of mb_h5_dataset_source, or NULL */
    int64_t linked_bytes; /* of the file that a link leads to, when it was opened; 0: no link */
    bool taken;           /* for another type than the file says (mb_h5_dataset_take): */
    bool was_signed;      /* its bits are those of signed integers in the file, */
    bool swapped;         /* in the other byte order */
    int made;             /* number in file->made, or -1 */
    int users;            /* transfers under way that refer to it */
    bool destroyed;       /* frees itself with the last of them */
    struct h5_raw *raw;   /* where its bytes are, once that was asked for (h5raw.c) */
    mb_h5_dataset *previous, *next;
};

/* An id that is closed when the function returns; one that is not above 0 is none. */
#define H5_OWNED __attribute__((cleanup(mb_h5_close_id)))
static inline void mb_h5_close_id(const hid_t *id)
{
    if (*id > 0)
        H5Idec_ref(*id);
}

/* ---- h5lock.c ---- */

/* Every function that uses libhdf5 begins with MB_H5_GUARD, which holds the lock until the function
** returns. The lock is recursive. */
#define MB_H5_GUARD int mb_h5_guard_ __attribute__((cleanup(mb_h5_unlock), unused)) = mb_h5_lock()
int mb_h5_lock(void);
void mb_h5_unlock(int *guard);
/* Names the file that the calling thread is about to use libhdf5 for. */
void mb_h5_now_at(const char *path);

/* ---- h5driver.c: the HDF5 file driver by which files are written ---- */

/* Has files that are opened by `access` written by our driver, which refers to `disk`. */
void mb_h5_use_driver(hid_t access, h5_disk *disk);
/* The descriptor of an open file, or -1. */
int mb_h5_descriptor(hid_t file);

/* ---- h5filters.c: filters that are decoded by files/codecs ---- */

/* Tells libhdf5 of the filters whose libraries are there. */
void mb_h5_register_filters(void);
/* Says what decoders are about to be given, until it is said again. */
void mb_h5_expect(const h5_expected *chunk);
/* The same of a creation list and elements of so many bytes; nothing where it has no chunks. */
h5_expected mb_h5_expected_of(hid_t properties, size_t element);
/* Adds what comes of the chunks of one dataset to what comes of those of others. */
void mb_h5_join_expected(h5_expected *all, const h5_expected *one);
/* "bzip2", and the Debian package of the plug-in; both may be NULL. */
const char *mb_h5_filter_name(H5Z_filter_t id, const char **package);
/* Can all filters of a creation list be decoded? `why` says why not: "is compressed by ...". */
bool mb_h5_filters_there(hid_t properties, char *why, size_t bytes);
mb_filtered mb_h5_filtered(int id, size_t count, const unsigned *values);
/* Filter `index` of a creation list. */
mb_filtered mb_h5_get_filter(hid_t properties, int index);

/* ---- h5error.c: failures of libhdf5 as one helpful line, and failures that are latched ---- */

/* Start of every entry point: the thread's HDF5 error stack neither prints nor holds old errors. */
void mb_h5_quiet(void);
/* What HDF5 said (innermost record), or "". */
char *mb_h5_said(char *buffer, size_t bytes);
/* Has one of these failures been that libhdf5 got no memory? */
bool mb_h5_lacked_memory(void);
/* Records "cannot <doing> '<path>' of '<file>': HDF5 says <its words>; <remedy>". */
mb_status mb_h5_failure(mb_h5 *file, const char *path, const char *doing);
/* Records that the disk has refused a write of the file (file->disk.error), as mb_h5_failure
** does. */
mb_status mb_h5_refused(mb_h5 *file, const char *path, const char *doing);
/* Latches the recorded failure of a created file; returns `status`. */
mb_status mb_h5_latch(mb_h5 *file, mb_status status);
/* A copy of the text, or NULL without memory, with the failure recorded. */
char *mb_h5_copy_text(const char *text);

/* ---- h5ready.c: whether a file can be used, and created files at rest: closed by libhdf5, while
** their bytes are still written at known places (h5raw.c) ---- */

/* Fails unless the file is open, and open for writing if `writing`. Restores a latched failure. A
** file at rest is opened again. */
mb_status mb_h5_ready(mb_h5 *file, bool writing);
/* The same for what does without libhdf5: a file at rest stays at rest. */
mb_status mb_h5_usable(mb_h5 *file, bool writing);
/* The access list by which libhdf5 opens the descriptor of a created file; to be closed. */
hid_t mb_h5_created_access(mb_h5 *file);
/* Has libhdf5 write and close a created file, and its datasets with it. Their handles stay. */
mb_status mb_h5_begin_rest(mb_h5 *file);

/* ---- h5describe.c: what objects are ---- */

/* The memory type of a dtype, to be closed. */
hid_t mb_h5_type_of(mb_dtype dtype);
mb_h5_info mb_h5_classify_type(hid_t type);
/* Are the elements stored as an array of `dtype` has them in memory? */
bool mb_h5_same_type(const mb_h5_dataset *dataset, mb_dtype dtype);
/* Adds an open group to the list, whose places are to be freed. False where it is on the list, or
** memory is short. */
bool mb_h5_enter(h5_visited *visited, hid_t group);
/* The number of elements of so many extents; UINT64_MAX: too many. */
uint64_t mb_h5_product(const int64_t *extents, int count);
mb_status mb_h5_describe_dataset(mb_h5 *file, hid_t dataset, const char *path, mb_h5_info *info);
/* The same of any object. */
mb_status mb_h5_describe_object(mb_h5 *file, hid_t id, const char *path, mb_h5_info *info);
/* Fails where the chunks are larger than the dataset can be in a sound file. */
mb_status mb_h5_check_chunk(const mb_h5_dataset *dataset);

/* ---- h5places.c ---- */

/* Fails where a contiguous dataset that is open has bytes of one that was opened before. */
mb_status mb_h5_check_place(mb_h5 *file, hid_t dataset, const char *path);
void mb_h5_forget_places(mb_h5 *file);

/* ---- h5header.c ---- */

/* Fails where libhdf5 would read beyond its memory for the attributes of an open object. */
mb_status mb_h5_check_header(mb_h5 *file, hid_t object, const char *path);

/* ---- h5links.c: links, and the files that they and other references may lead to ---- */

/* Sets file->folder to the real folder of the file that is called `name`. */
mb_status mb_h5_set_folder(mb_h5 *file, const char *name);
/* Sets file->folder and file->links; frees both. */
mb_status mb_h5_begin_links(mb_h5 *file);
void mb_h5_end_links(mb_h5 *file);
/* A list of class `kind` by which links are followed as file->links says; to be closed. */
hid_t mb_h5_link_access(mb_h5 *file, hid_t kind);
/* Opens a file that another one refers to, for reading and without a lock: its id, or -1. `said`
** (may be NULL) is what HDF5 says then. */
hid_t mb_h5_open_source(const char *name, char *said, size_t bytes);
/* The link creation list that makes parent groups; to be closed. */
hid_t mb_h5_parents(void);
/* Finds the file that libhdf5 will take for `name`, which the file `parent` refers to: its name in
** `found` (PATH_MAX bytes). `prefixes` is the environment variable with folders to look in.
** `problem` (H5_PROBLEM_BYTES) says what is wrong where it is not found. */
h5_verdict mb_h5_resolve(mb_h5 *file, const char *parent, const char *name, const char *prefixes,
                         char *found, char *problem);
/* The same for a file of external storage. */
h5_verdict mb_h5_resolve_storage(mb_h5 *file, const char *name, char *found, char *problem);

/* ---- h5path.c ---- */

/* Fails unless there is an object at `path`. */
mb_status mb_h5_need(mb_h5 *file, const char *path);
/* Fails unless there is none, and the path can be used. */
mb_status mb_h5_need_new(mb_h5 *file, const char *path);

#endif
