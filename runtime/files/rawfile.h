/*
** Files of plain elements, read and written by blocks: .npy, TIFF, scratch.
**
** - A block is a host array; each of its axes has a step in the file, in bytes. Nothing is buffered
**   here: elements go straight between the file and the array, so a block's bytes are the pool's.
** - A created file is a target (files/target.h): mb_rawfile_finish gives it its name; one that is
**   closed before is gone. A scratch file has no name at all: whatever happens to the process,
**   nothing of it stays behind. A kept file has its name from the beginning, and stays.
** - Files written here are little-endian, as this machine is, and have element types; mb_stored says
**   what else is read.
**
** Threads: one file belongs to one thread at a time; reading uses positions, not a cursor. While
** that thread keeps the file in use (mb_rawfile_use), others may call mb_rawfile_enter, _carry and
** _leave.
*/
#ifndef MB_IO_RAWFILE_H
#define MB_IO_RAWFILE_H

#include "array/array.h"
#include "core/samples.h"

typedef struct mb_rawfile mb_rawfile;

/* Opens a file for reading. `part`: of a folder that is noted as an input (files/inputs). */
mb_status mb_rawfile_open(const char *path, bool part, mb_rawfile **out);
/* Fails at once where the folder cannot be written, and where `path` exists unless `overwrite`. */
mb_status mb_rawfile_create(const char *path, bool overwrite, mb_rawfile **out);
/* A new file for `path` that is called `now`, in the folder of an unfinished run: it stays there
** when it is closed before it is finished. */
mb_status mb_rawfile_create_kept(const char *path, const char *now, bool overwrite,
                                 mb_rawfile **out);
/* The same with the file that an earlier process has left. */
mb_status mb_rawfile_resume_kept(const char *path, const char *now, bool overwrite,
                                 mb_rawfile **out);
/* A file without a name in the folder of `beside`, for reading and writing. */
mb_status mb_rawfile_scratch(const char *beside, mb_rawfile **out);
/* The file `path`, for reading and writing; new, unless it is there. A new one is for others to
** read too if `shared`, as the system's defaults have it. `brief`: one of very many, which is open
** for each piece of a transfer alone and not while it waits; it must keep its name until then. */
mb_status mb_rawfile_keep(const char *path, bool shared, bool brief, mb_rawfile **out);
/* Sets the size; takes the disk space now, so that a full disk is an error here. */
mb_status mb_rawfile_resize(mb_rawfile *file, uint64_t bytes);
/* Completes a created file: sync, check of the size, rename. */
mb_status mb_rawfile_finish(mb_rawfile *file);
/* Closes; a created and unfinished file is gone. Idempotent. */
void mb_rawfile_close(mb_rawfile *file);
void mb_rawfile_destroy(mb_rawfile *file); /* NULL is fine */

bool mb_rawfile_is_open(const mb_rawfile *file);
const char *mb_rawfile_path(const mb_rawfile *file);
/* The name that the file has now; NULL: none. */
const char *mb_rawfile_now(const mb_rawfile *file);
uint64_t mb_rawfile_bytes(const mb_rawfile *file); /* size as opened, or as set */

/* `count` bytes at `offset`; fewer are an error that says that the file is cut short. */
mb_status mb_rawfile_get(mb_rawfile *file, uint64_t offset, void *to, uint64_t count);
mb_status mb_rawfile_put(mb_rawfile *file, uint64_t offset, const void *from, uint64_t count);

/* How the elements of an array are stored. */
typedef struct mb_stored {
    bool swap;            /* big-endian */
    mb_samples samples;   /* widened, unless MB_SAMPLES_AS_STORED */
    const int64_t *first; /* indices in the whole array of what is read first, for messages */
} mb_stored;

/* Element (i, j, ...) of the array is at offset + i * steps[0] + j * steps[1] + ...; host arrays of
** any strides. On a dry device nothing is read or written. Polls the cancel flag. */
mb_status mb_rawfile_read(mb_rawfile *file, uint64_t offset, const int64_t *steps,
                          const mb_stored *stored, mb_array *array);
mb_status mb_rawfile_write(mb_rawfile *file, uint64_t offset, const int64_t *steps,
                           const mb_array *array);

/* For what moves bytes by threads of its own (stream/carrier.h). A file in use cannot be finished;
** closed, it stays open for those that use it. `change` is 1 or -1. */
mb_status mb_rawfile_use(mb_rawfile *file, bool writing, int change);
/* A descriptor of a file in use, from any thread, which mb_rawfile_leave gives back. */
mb_status mb_rawfile_enter(const mb_rawfile *file, bool writing, int *fd);
void mb_rawfile_leave(const mb_rawfile *file, int fd);
/* Bytes of a file in use by such a descriptor. Nothing is latched. */
mb_status mb_rawfile_carry(const mb_rawfile *file, int fd, uint64_t offset, void *host,
                           uint64_t bytes, bool writing);
/* A created file never gets its name: what was to be written to it is not all there. */
void mb_rawfile_spoil(mb_rawfile *file);

/* Reverses the bytes of `count` elements of `bytes` (1, 2, 4 or 8) each. */
void mb_swap_bytes(void *data, uint64_t count, size_t bytes);

#endif
