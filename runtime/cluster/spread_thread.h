/*
** What the thread that makes all calls of the engine (cluster.c) and spread memory (spread.c) know
** of each other.
*/
#ifndef MB_CLUSTER_SPREAD_THREAD_H
#define MB_CLUSTER_SPREAD_THREAD_H

#include "cluster/engine.h"
#include "cluster/mail.h"

/* The first kind of message (mail.h) that spread.c understands. */
#define MB_SPREAD_KINDS INT64_C(100)

/* What the thread offers. */
typedef struct mb_spread_links {
    const mb_engine *engine;
    /* Sends a message. For the thread. */
    void (*tell)(int rank, const mb_mail_head *head, const void *text, size_t bytes);
    /* Gives the thread a message that no rank has sent. For the others. */
    mb_status (*ask)(const mb_mail_head *head);
    /* Ends all ranks with this exit status. For the thread. */
    void (*end)(int status);
} mb_spread_links;

/* Before the other functions. */
void mb_spread_link(const mb_spread_links *links);
/* A message has come. */
void mb_spread_handle(int from, const mb_mail_head *head, const char *text);
/* Gets on with all pieces. Returns whether any is under way: then the thread must look again
** soon. */
bool mb_spread_work(void);

/* All ranks end: an owner that is gone is not waited for. */
void mb_spread_end(void);

#endif
