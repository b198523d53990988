/*
** Regions of files (regions.h).
*/
#define _GNU_SOURCE
#include "files/regions.h"
#include "core/line_hash.h"
#include "files/positioned.h"
#include "files/target_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a thread reads at a time. */
#define READ_BYTES ((uint64_t)1 << 20)
#define MOST_THREADS 8

/* ---- hashes ---- */

/* Adds the hashes of lines of one frame that are dense in the file. */
static bool add_lines(int fd, const mb_region *r, uint64_t at, uint64_t lines,
                      unsigned char *buffer, uint64_t *sum)
{
    const uint64_t bytes = lines * r->line_bytes;
    if (mb_read_at(fd, buffer, bytes, at) != (int64_t)bytes)
        return false;
    for (uint64_t i = 0; i < lines; i++)
        *sum += mb_line_hash(buffer + i * r->line_bytes, r->line_bytes,
                             at + i * r->line_bytes - r->base);
    return true;
}

static mb_status hash_open(int fd, const mb_region *r, uint64_t *sum, bool *whole)
{
    const bool dense = r->line_pitch == r->line_bytes;
    uint64_t each = dense && r->line_bytes < READ_BYTES ? READ_BYTES / r->line_bytes : 1;
    each = each > r->lines ? r->lines : each;
    const uint64_t pieces = (r->lines + each - 1) / each;
    const int64_t count = (int64_t)(r->frames * pieces);
    uint64_t total = 0;
    int short_of = 0, no_memory = 0;
#pragma omp parallel num_threads(MOST_THREADS) reduction(+ : total, short_of, no_memory)
    {
        unsigned char *buffer = malloc(each * r->line_bytes);
        no_memory += buffer == NULL;
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < count; i++) {
            const uint64_t first = (uint64_t)i % pieces * each;
            const uint64_t lines = first + each > r->lines ? r->lines - first : each;
            const uint64_t at =
                r->offset + (uint64_t)i / pieces * r->frame_pitch + first * r->line_pitch;
            if (buffer && !short_of && !mb_cancelled())
                short_of += !add_lines(fd, r, at, lines, buffer, &total);
        }
        free(buffer);
    }
    MB_TRY(mb_cancel_check());
    if (no_memory)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left to read '%s'", r->path);
    *sum = total;
    *whole = short_of == 0;
    return MB_STATUS_OK;
}

mb_status mb_region_hash(const mb_region *r, uint64_t *sum, bool *whole)
{
    *sum = 0;
    *whole = false;
    if (r->line_bytes == 0 || r->lines == 0)
        return mb_fail(MB_STATUS_ARGUMENT, "lines", "a region has lines of bytes");
    const int fd = open(r->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
        return mb_fail(MB_STATUS_IO, "path", "cannot open '%s': %s", r->path, strerror(errno));
    if (fd < 0)
        return MB_STATUS_OK;
    const mb_status status = hash_open(fd, r, sum, whole);
    close(fd);
    return status;
}

/* ---- heads ---- */

static mb_status fail_for(const char *path, const char *doing)
{
    return mb_fail(MB_STATUS_IO, "path", "cannot %s '%s': %s", doing, path, strerror(errno));
}

/* The bytes of a file at `at`, all of them; NULL with the failure recorded. */
static unsigned char *read_bytes(const char *path, int fd, uint64_t at, uint64_t bytes)
{
    unsigned char *memory = malloc((size_t)bytes + 1);
    errno = ENOMEM;
    if (memory && mb_read_at(fd, memory, bytes, at) == (int64_t)bytes)
        return memory;
    fail_for(path, "read");
    free(memory);
    return NULL;
}

/* The head of an open file: what is before and after the volume, one after the other. */
static unsigned char *read_head(const char *path, int fd, mb_head *head)
{
    struct stat facts;
    if (fstat(fd, &facts) != 0 || (uint64_t)facts.st_size < head->offset) {
        fail_for(path, "read");
        return NULL;
    }
    head->length = (uint64_t)facts.st_size;
    const uint64_t end = head->offset + head->bytes;
    const uint64_t tail = head->length > end ? head->length - end : 0;
    unsigned char *memory = read_bytes(path, fd, 0, head->offset);
    unsigned char *more = memory ? realloc(memory, (size_t)(head->offset + tail + 1)) : NULL;
    if (!more) {
        free(memory);
        return NULL;
    }
    if (mb_read_at(fd, more + head->offset, tail, end) == (int64_t)tail)
        return more;
    fail_for(path, "read");
    free(more);
    return NULL;
}

static uint64_t head_bytes(const mb_head *head)
{
    const uint64_t end = head->offset + head->bytes;
    return head->offset + (head->length > end ? head->length - end : 0);
}

mb_status mb_head_save(const char *path, const char *to, bool sync, mb_head *head)
{
    const int from = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (from < 0)
        return fail_for(path, "open");
    unsigned char *memory = read_head(path, from, head);
    const int fd = memory ? mb_step_open(to, O_WRONLY | O_CREAT | O_TRUNC) : -1;
    mb_status status = memory ? MB_STATUS_OK : MB_STATUS_IO;
    if (memory)
        head->sum = mb_line_hash(memory, head_bytes(head), head->length);
    if (memory && (fd < 0 || mb_write_at(fd, memory, head_bytes(head), 0) < 0 ||
                   (sync && (mb_step_sync(fd) != 0 || mb_step_sync(from) != 0))))
        status = fail_for(to, "write");
    if (fd >= 0)
        close(fd);
    close(from);
    free(memory);
    return status;
}

static mb_status write_head(const char *path, const mb_head *head, const unsigned char *memory)
{
    const uint64_t end = head->offset + head->bytes;
    mb_status status = MB_STATUS_OK;
    const int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || ftruncate(fd, (off_t)head->length) != 0 ||
        mb_write_at(fd, memory, head->offset, 0) < 0 ||
        (head->length > end && mb_write_at(fd, memory + head->offset, head->length - end, end) < 0))
        status = fail_for(path, "write");
    if (fd >= 0)
        close(fd);
    return status;
}

mb_status mb_head_restore(const char *path, const char *from, const mb_head *head)
{
    const uint64_t bytes = head_bytes(head);
    const int fd = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    unsigned char *memory = fd >= 0 ? malloc((size_t)bytes + 1) : NULL;
    const bool good = memory && mb_read_at(fd, memory, bytes, 0) == (int64_t)bytes &&
                      mb_line_hash(memory, bytes, head->length) == head->sum;
    if (fd >= 0)
        close(fd);
    const mb_status status =
        good ? write_head(path, head, memory)
             : mb_fail(MB_STATUS_IO, "path", "'%s' is damaged or missing", from);
    free(memory);
    return status;
}
