/*
** Messages between two threads of a rank (mail.h).
*/
#define _GNU_SOURCE
#include "cluster/mail.h"
#include "core/clock.h"
#include <stdlib.h>
#include <string.h>

void mb_mailbox_open(mb_mailbox *box)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&box->lock, NULL);
    pthread_cond_init(&box->come, &monotonic);
    pthread_condattr_destroy(&monotonic);
    box->first = box->last = NULL;
}

mb_mail *mb_mail_new(int rank, const mb_mail_head *head, const void *text, size_t bytes)
{
    mb_mail *mail = malloc(sizeof *mail + bytes);
    if (!mail)
        return NULL;
    mail->next = NULL;
    mail->rank = rank;
    mail->bytes = sizeof mail->head + bytes;
    mail->head = *head;
    if (bytes > 0)
        memcpy(mail->text, text, bytes);
    return mail;
}

mb_status mb_mailbox_send(mb_mailbox *box, int rank, const mb_mail_head *head, const void *text,
                          size_t bytes)
{
    mb_mail *mail = mb_mail_new(rank, head, text, bytes);
    if (!mail)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left for a message to rank %d",
                       rank);
    mb_mailbox_put(box, mail);
    return MB_STATUS_OK;
}

void mb_mailbox_put(mb_mailbox *box, mb_mail *mail)
{
    pthread_mutex_lock(&box->lock);
    if (box->last)
        box->last->next = mail;
    else
        box->first = mail;
    box->last = mail;
    pthread_cond_signal(&box->come);
    pthread_mutex_unlock(&box->lock);
}

mb_mail *mb_mailbox_take(mb_mailbox *box, uint64_t wait_ns)
{
    const uint64_t until = mb_now_ns() + wait_ns;
    const struct timespec time = {(time_t)(until / UINT64_C(1000000000)),
                                  (long)(until % UINT64_C(1000000000))};
    pthread_mutex_lock(&box->lock);
    while (!box->first && wait_ns > 0)
        if (pthread_cond_timedwait(&box->come, &box->lock, &time) != 0)
            break;
    mb_mail *mail = box->first;
    if (mail) {
        box->first = mail->next;
        if (!box->first)
            box->last = NULL;
        mail->next = NULL;
    }
    pthread_mutex_unlock(&box->lock);
    return mail;
}

size_t mb_mail_text_bytes(const mb_mail *mail)
{
    return mail->bytes - sizeof mail->head;
}
