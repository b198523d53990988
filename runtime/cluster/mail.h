/*
** Messages between two threads of a rank: a queue with a lock, in order.
*/
#ifndef MB_CLUSTER_MAIL_H
#define MB_CLUSTER_MAIL_H

#include "core/status.h"
#include <pthread.h>
#include <stddef.h>

/* What each message begins with. `a` and `b` depend on the kind (cluster.c). */
typedef struct mb_mail_head {
    int64_t kind, number, a, b;
} mb_mail_head;

typedef struct mb_mail {
    struct mb_mail *next;
    int rank;     /* who it goes to, or comes from */
    size_t bytes; /* of head and text */
    mb_mail_head head;
    char text[];
} mb_mail;

typedef struct mb_mailbox {
    pthread_mutex_t lock;
    pthread_cond_t come;
    mb_mail *first, *last;
} mb_mailbox;

void mb_mailbox_open(mb_mailbox *box);
/* A message with a copy of the text; NULL: no memory. Free it with free(). */
mb_mail *mb_mail_new(int rank, const mb_mail_head *head, const void *text, size_t bytes);
/* The same, into the box. */
mb_status mb_mailbox_send(mb_mailbox *box, int rank, const mb_mail_head *head, const void *text,
                          size_t bytes);
/* Puts a message into the box, which owns it from then on. */
void mb_mailbox_put(mb_mailbox *box, mb_mail *mail);
/* The oldest message, after at most `wait_ns`; NULL if none has come. */
mb_mail *mb_mailbox_take(mb_mailbox *box, uint64_t wait_ns);
/* The length of the text of a message. */
size_t mb_mail_text_bytes(const mb_mail *mail);

#endif
