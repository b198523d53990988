/*
** The first file by its name is kept, as threads come in any order, and whether there are others
** (unchecked.h): one line is said of all.
*/
#include "files/inputs/unchecked.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *noted, *taken;
static bool more;

void mb_unchecked_note(const char *path)
{
    pthread_mutex_lock(&lock);
    const int order = noted ? strcmp(path, noted) : -1;
    more = more || (noted && order != 0);
    char *own = order < 0 ? strdup(path) : NULL; /* without memory it is noted next time */
    if (own) {
        free(noted);
        noted = own;
    }
    pthread_mutex_unlock(&lock);
}

const char *mb_unchecked_take(bool *others)
{
    pthread_mutex_lock(&lock);
    free(taken);
    taken = noted;
    *others = more;
    noted = NULL;
    more = false;
    pthread_mutex_unlock(&lock);
    return taken;
}
