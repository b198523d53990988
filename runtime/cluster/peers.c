/*
** By /proc: a process that was killed is a zombie, until its launcher has taken notice of it, and
** then not there.
*/
#include "cluster/peers.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t *pids; /* by rank; 0: not noted */
static int count;

static bool is_alive(int64_t pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    const size_t bytes = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[bytes] = '\0';
    const char *name_end = strrchr(text, ')'); /* a name may have spaces and parentheses */
    return name_end && strlen(name_end) > 2 && name_end[2] != 'Z' && name_end[2] != 'X';
}

void mb_peers_note(int rank, int64_t pid)
{
    if (!is_alive(pid))
        return;
    if (rank >= count) {
        int64_t *more = realloc(pids, ((size_t)rank + 1) * sizeof *pids);
        if (!more)
            return;
        memset(more + count, 0, ((size_t)rank + 1 - (size_t)count) * sizeof *pids);
        pids = more;
        count = rank + 1;
    }
    pids[rank] = pid;
}

int mb_peers_dead(void)
{
    for (int rank = 0; rank < count; rank++)
        if (pids[rank] != 0 && !is_alive(pids[rank]))
            return rank;
    return -1;
}
