/*
** Reads and writes at a place of an open file, whole where the system moves parts.
*/
#ifndef MB_FILES_POSITIONED_H
#define MB_FILES_POSITIONED_H

#include <stdbool.h>
#include <stdint.h>

/* Both return how many bytes were moved, or -1 with errno set. A read ends early at the end of the
** file; a write does not end early. Any thread. */
int64_t mb_read_at(int fd, void *host, uint64_t bytes, uint64_t offset);
int64_t mb_write_at(int fd, const void *host, uint64_t bytes, uint64_t offset);

#endif
