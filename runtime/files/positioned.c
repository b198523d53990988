#include "files/positioned.h"

#include <errno.h>
#include <unistd.h>

int64_t mb_read_at(int fd, void *host, uint64_t bytes, uint64_t offset)
{
    uint64_t done = 0;
    while (done < bytes) {
        const ssize_t n = pread(fd, (char *)host + done, bytes - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        done += (uint64_t)n;
    }
    return (int64_t)done;
}

int64_t mb_write_at(int fd, const void *host, uint64_t bytes, uint64_t offset)
{
    for (uint64_t done = 0; done < bytes;) {
        const ssize_t n =
            pwrite(fd, (const char *)host + done, bytes - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            errno = ENOSPC;
        if (n <= 0)
            return -1;
        done += (uint64_t)n;
    }
    return (int64_t)bytes;
}
