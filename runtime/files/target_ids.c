/*
** The random ids of the targets that this process has. A part with this process's PID and another
** id was left by an earlier process with the same number.
*/
#include "files/target_ids.h"

#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static mb_own_id *first;

void mb_own_id_add(mb_own_id *own)
{
    pthread_mutex_lock(&lock);
    own->next = first;
    own->link = &first;
    if (first)
        first->link = &own->next;
    first = own;
    pthread_mutex_unlock(&lock);
}

void mb_own_id_remove(mb_own_id *own)
{
    pthread_mutex_lock(&lock);
    if (own->link) {
        *own->link = own->next;
        if (own->next)
            own->next->link = own->link;
        own->link = NULL;
    }
    pthread_mutex_unlock(&lock);
}

bool mb_own_id_exists(const char *text)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (const mb_own_id *own = first; own && !found; own = own->next)
        found = strcmp(own->text, text) == 0;
    pthread_mutex_unlock(&lock);
    return found;
}
