/*
** The rows of the ledger: one growing list for the process.
*/
#include "device/ledger.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

atomic_int mb_ledger_recordings;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static mb_ledger_row *rows;
static uint64_t count, room, lost;
static _Thread_local int hushed;
static _Thread_local const char *label;

uint64_t mb_ledger_begin(void)
{
    pthread_mutex_lock(&lock);
    atomic_fetch_add(&mb_ledger_recordings, 1);
    uint64_t first = count;
    pthread_mutex_unlock(&lock);
    return first;
}

uint64_t mb_ledger_count(void)
{
    pthread_mutex_lock(&lock);
    uint64_t n = count;
    pthread_mutex_unlock(&lock);
    return n;
}

bool mb_ledger_get(uint64_t index, mb_ledger_row *row)
{
    pthread_mutex_lock(&lock);
    bool found = index < count;
    if (found)
        *row = rows[index];
    pthread_mutex_unlock(&lock);
    return found;
}

void mb_ledger_end(void)
{
    pthread_mutex_lock(&lock);
    if (atomic_fetch_sub(&mb_ledger_recordings, 1) == 1) {
        free(rows);
        rows = NULL;
        count = room = lost = 0;
    }
    pthread_mutex_unlock(&lock);
}

void mb_ledger_note(const mb_device *device, const mb_ledger_row *row)
{
    if (hushed > 0 || !mb_ledger_on(device))
        return;
    pthread_mutex_lock(&lock);
    if (count == room) {
        uint64_t more = room ? 2 * room : 256;
        mb_ledger_row *list = realloc(rows, more * sizeof *list);
        if (list) {
            rows = list;
            room = more;
        }
    }
    if (count < room) {
        rows[count] = *row;
        rows[count].tag = mb_pool_current_tag();
        snprintf(rows[count].device, sizeof rows[count].device, "%s", device->id);
        count++;
    } else {
        lost++;
    }
    pthread_mutex_unlock(&lock);
}

uint64_t mb_ledger_lost(void)
{
    pthread_mutex_lock(&lock);
    uint64_t n = lost;
    pthread_mutex_unlock(&lock);
    return n;
}

void mb_ledger_hush(int change)
{
    hushed += change;
}

void mb_ledger_label(const char *text)
{
    label = text;
}

const char *mb_ledger_current_label(void)
{
    return label ? label : "array";
}
