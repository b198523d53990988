/*
** The bell of the process: threads sleep until something has changed. A thread may wait for the work
** of many others and for the cancel flag, so there is one bell for everything. A waiting thread
** takes a ticket, looks at its condition, and sleeps with the ticket. A thread that changes a
** condition rings the bell after the change. A ring between the ticket and the sleep ends the sleep
** at once, so no ring is lost and no thread polls. A ring wakes all sleepers: each looks at its own
** condition again.
**
** Ownership: the bell is a counter, and no thread registers with it. A thread that is woken, or that
** takes its ticket later, sees everything that was written before the ring. Ringing takes no lock:
** workers ring while they hold theirs, and signal handlers may ring.
*/
#ifndef MB_CORE_WAKE_H
#define MB_CORE_WAKE_H

#include <stdbool.h>
#include <stdint.h>

/* Take the ticket before you look at the condition. */
uint32_t mb_wake_ticket(void);
/* Sleeps until the bell has rung after the ticket was taken, and returns true. Returns false if a
** signal handler ran on this thread during the sleep. */
bool mb_wake_sleep(uint32_t ticket);
/* Ends all sleeps. Any thread and any signal handler may call it. */
void mb_wake_ring(void);

#endif
