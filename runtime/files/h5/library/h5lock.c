/*
** The lock of libhdf5, and the file that libhdf5 is used for while a thread holds the lock.
*/
#define _GNU_SOURCE
#include "files/h5/library/h5library.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t library_lock;
static __thread int inside;        /* how often this thread holds it */
static char latest_path[PATH_MAX]; /* of the file that it was used for last */

static void make_lock(void)
{
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&library_lock, &kind);
    pthread_mutexattr_destroy(&kind);
}

int mb_h5_lock(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_lock);
    const int result = pthread_mutex_lock(&library_lock);
    inside++;
    return result;
}

void mb_h5_unlock(int *guard)
{
    (void)guard;
    inside--;
    pthread_mutex_unlock(&library_lock);
}

void mb_h5_now_at(const char *path)
{
    snprintf(latest_path, sizeof latest_path, "%s", path);
}

const char *mb_h5_inside(void)
{
    return inside > 0 ? latest_path : NULL;
}
