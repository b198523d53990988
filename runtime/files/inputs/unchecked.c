/*
** The first file is kept, and whether there are others (unchecked.h): one line is said of all.
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
    if (!noted)
        noted = strdup(path); /* without memory it is noted next time */
    else if (strcmp(noted, path) != 0)
        more = true;
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
