/*
** The processors near a device. On a machine with several sockets, each device is attached to one
** of them, and so is each part of the memory. Threads that copy for a device run on the processors
** of its node, and its pinned memory is touched there, so that bytes cross between sockets only
** where they must. The system says which these are: the device's PCI address leads to a node under
** /sys, and the node to its processors. Only those count on which the process may run (affinity,
** cgroup). Where the system says nothing, or there is one node, threads run anywhere.
*/
#ifndef MB_DEVICE_NUMA_H
#define MB_DEVICE_NUMA_H

#include "core/status.h"
#include <stddef.h>

#define MB_MOST_PROCESSORS 8192

typedef struct mb_processors {
    uint64_t bits[MB_MOST_PROCESSORS / 64];
} mb_processors;

typedef struct mb_numa {
    int node;
    mb_processors processors; /* at least one */
} mb_numa;

/* The processors on which the process may run: those of the thread that asks first and of OpenMP's
** places. The answer stays the same when threads are bound later. False: the system does not
** say. */
bool mb_processors_allowed(mb_processors *out);
/* How many these are; those of the machine, if the system does not say. */
int mb_processors_count(void);
/* No more than these, although there are others: several processes share them. */
void mb_processors_limit(int most);
/* From and to lists such as "0-15,32-47". A list that cannot be read gives false; a text that has
** no room for the list is cut. */
bool mb_processors_parse(const char *list, mb_processors *out);
const char *mb_processors_text(const mb_processors *processors, char *text, size_t bytes);

/* Those of `allowed` that are near the device with the PCI address `pci` ("0000:3B:00.0"). `root`
** is put before every path, so that a spec can give a tree of its own: ROOT/sys/... It is "" for
** the system's files. False: any of them. */
bool mb_numa_find(const char *root, const char *pci, const mb_processors *allowed, mb_numa *out);

/* Moves the calling thread to the processors near a device, and back again. NULL: does nothing. The
** threads that it starts in between run there too. A system that refuses leaves it where it is. */
void mb_numa_enter(const mb_numa *numa, mb_processors *before);
void mb_numa_leave(const mb_numa *numa, const mb_processors *before);
/* For a thread that works for a device until it ends: moves it near the device or, without `numa`,
** to all processors of the process, because it may have been started by a thread that is bound. */
void mb_numa_stay(const mb_numa *numa);

#endif
