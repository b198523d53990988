/*
** Memory that is spread over the ranks (spread.h).
**
** A thread that asks has one of the ASKING pieces, and waits for it. The thread for messages sends
** READ or WRITE to the owner. There it is queued until one of the ANSWERING pieces is free. Of a
** READ the owner copies the lines into the piece, says COMES and pushes it, and the asker pulls.
** Of a WRITE the owner pulls and says GRANTED, the asker pushes, and the owner copies the lines to
** their place and says TAKEN. An owner that closes the memory says REFUSED.
**
** The lock is for the list, and for the states of questions and answers. While a question is ASKED
** it belongs to the thread for messages, else to the thread that asks.
*/
#define _GNU_SOURCE
#include "cluster/spread.h"
#include "cluster/spread_thread.h"
#include "core/clock.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define AWAKE_NS UINT64_C(1000000) /* after a piece the next one comes soon */
#define LOOK_NS UINT64_C(50000000) /* between two looks at the cancel flag */
#define GRACE_NS                                                                                   \
    UINT64_C(3000000000) /* in which an owner that has closed, or is gone, may end all ranks */
#define PATIENCE_NS UINT64_C(10000000000) /* after which closing waits no more */

/* Number: of the spread memory. `a`: number of the asker's piece; of ASK, its question. READ and
** WRITE have the lines as text. */
enum { ASK = MB_SPREAD_KINDS, READ, WRITE, COMES, GRANTED, TAKEN, REFUSED };

/* What this rank asks for. */
typedef struct question {
    enum { FREE, HELD, ASKED, DONE, NOT_DONE } state;
    mb_spread *spread;
    int slot, owner;
    bool writing, taken;
    bool left; /* the thread that asked waits no more */
    mb_spread_lines lines;
    void *piece; /* of the engine, while it moves */
} question;

/* What this rank is asked for. */
typedef struct wish {
    bool writing;
    mb_spread_lines lines;
} wish;

typedef struct answer {
    enum { NOTHING, QUEUED, MOVING } state;
    wish wish;
    int place; /* number of the piece of memory */
    void *piece;
    bool again; /* the asker has what it wanted, and wants this now; the engine still has a piece */
    wish next;
} answer;

struct mb_spread {
    mb_spread *next;
    mb_spread_facts facts;
    int64_t number;
    int references;
    bool closed;
    int users;   /* questions that are not FREE, and copies from or to the share */
    int pending; /* answers that are not NOTHING */
    bool taken[MB_SPREAD_ANSWERING]; /* pieces in use */
    question questions[MB_SPREAD_ASKING];
    answer answers[]; /* by rank and its question */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static mb_spread_links links;
static mb_spread *all;
static int64_t opened;
static _Atomic uint64_t ends_at; /* when all ranks began to end; 0: they do not */
static uint64_t moved_at;        /* when a piece was last under way; of the thread for messages */

static void prepare(void)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

/* Under the lock: sleeps until something has changed, or for LOOK_NS. */
static void sleep_a_little(void)
{
    const uint64_t until = mb_now_ns() + LOOK_NS;
    const struct timespec time = {(time_t)(until / UINT64_C(1000000000)),
                                  (long)(until % UINT64_C(1000000000))};
    pthread_cond_timedwait(&changed, &lock, &time);
}

/* Do all ranks end, and has an owner had its time to answer? */
static bool is_late(void)
{
    const uint64_t now = mb_now_ns(), since = ends_at;
    return since > 0 && now - since > GRACE_NS;
}

void mb_spread_end(void)
{
    if (ends_at == 0)
        ends_at = mb_now_ns();
}

void mb_spread_link(const mb_spread_links *given)
{
    links = *given;
}

/* ---- lines ---- */

static uint64_t begin_of(const mb_spread_lines *l, uint64_t line)
{
    return l->offset + line / l->frame_lines * l->frame_pitch +
           line % l->frame_lines * l->line_pitch;
}

/* How many of the lines from the first one on are of one rank, and at most `most`. */
static uint64_t of_one_rank(const mb_spread_lines *l, uint64_t share_bytes, uint64_t most)
{
    const uint64_t end = (begin_of(l, l->first) / share_bytes + 1) * share_bytes;
    uint64_t count = 0;
    if (most > l->count)
        most = l->count;
    while (count < most) {
        const uint64_t line = l->first + count, at = begin_of(l, line);
        uint64_t rows = l->frame_lines - line % l->frame_lines;
        if (at >= end)
            break;
        if (rows > (end - at + l->line_pitch - 1) / l->line_pitch)
            rows = (end - at + l->line_pitch - 1) / l->line_pitch;
        count += rows;
    }
    return count < most ? count : most;
}

/* Copies lines, all of this rank, between its share and dense memory. */
static void copy_lines(const mb_spread *s, const mb_spread_lines *l, unsigned char *dense,
                       bool writing)
{
    unsigned char *share = s->facts.share;
    const uint64_t base = (uint64_t)s->facts.rank * s->facts.share_bytes;
    const uint64_t frame = l->frame_lines * l->line_bytes;
    for (uint64_t line = l->first, end = l->first + l->count; line < end;) {
        unsigned char *own = share + (begin_of(l, line) - base);
        uint64_t rows = l->frame_lines - line % l->frame_lines;
        if (l->line_pitch != l->line_bytes)
            rows = 1;
        else if (rows == l->frame_lines && l->frame_pitch == frame)
            rows = end - line;
        if (rows > end - line)
            rows = end - line;
        const uint64_t bytes = rows * l->line_bytes;
        memcpy(writing ? own : dense, writing ? dense : own, bytes);
        dense += bytes;
        line += rows;
    }
}

static uint64_t bytes_of(const mb_spread_lines *l)
{
    return l->count * l->line_bytes;
}

static unsigned char *piece_of(const mb_spread *s, int number)
{
    return (unsigned char *)s->facts.pieces + (uint64_t)number * s->facts.piece_bytes;
}

/* ---- the thread for messages ---- */

static int tag_of(const mb_spread *s, int slot, bool writing)
{
    const int64_t number = s->number * MB_SPREAD_ASKING + slot;
    return (int)(number % 16384) * 2 + (writing ? 1 : 0);
}

static void tell(const mb_spread *s, int rank, int64_t kind, int slot)
{
    links.tell(rank, &(mb_mail_head){.kind = kind, .number = s->number, .a = slot}, NULL, 0);
}

/* Under the lock. */
static mb_spread *find(int64_t number)
{
    mb_spread *s = all;
    while (s && s->number != number)
        s = s->next;
    return s;
}

static void *needed(void *piece)
{
    if (!piece)
        links.end(EXIT_FAILURE);
    return piece;
}

/* Under the lock: a question is over. */
static void end_question(question *q, bool done)
{
    q->state = done ? DONE : NOT_DONE;
    if (q->left) {
        q->state = FREE;
        q->spread->users--;
    }
    pthread_cond_broadcast(&changed);
}

/* What the owner says to a question. */
static void hear(question *q, int64_t kind)
{
    const mb_spread *s = q->spread;
    const int tag = tag_of(s, q->slot, q->writing);
    if (kind == COMES)
        q->piece =
            needed(links.engine->pull(q->owner, tag, piece_of(s, q->slot), bytes_of(&q->lines)));
    else if (kind == GRANTED)
        q->piece =
            needed(links.engine->push(q->owner, tag, piece_of(s, q->slot), bytes_of(&q->lines)));
    else if (kind == TAKEN)
        q->taken = true;
    else
        end_question(q, false);
}

static void queue_answer(mb_spread *s, int from, const mb_mail_head *head, const char *text)
{
    answer *a = &s->answers[from * MB_SPREAD_ASKING + head->a];
    a->again = a->state == MOVING;
    wish *own = a->again ? &a->next : &a->wish;
    own->writing = head->kind == WRITE;
    memcpy(&own->lines, text, sizeof own->lines);
    if (a->again)
        return;
    a->state = QUEUED;
    s->pending++;
}

void mb_spread_handle(int from, const mb_mail_head *head, const char *text)
{
    pthread_mutex_lock(&lock);
    if (head->kind == ASK) {
        question *q = (question *)(intptr_t)head->a;
        q->state = ASKED;
        const mb_mail_head wanted = {
            .kind = q->writing ? WRITE : READ, .number = q->spread->number, .a = q->slot};
        links.tell(q->owner, &wanted, &q->lines, sizeof q->lines);
        pthread_mutex_unlock(&lock);
        return;
    }
    mb_spread *s = find(head->number);
    const bool asked = head->kind == READ || head->kind == WRITE;
    if (asked && s && !s->closed)
        queue_answer(s, from, head, text);
    else if (asked)
        links.tell(from, &(mb_mail_head){.kind = REFUSED, .number = head->number, .a = head->a},
                   NULL, 0);
    else if (s)
        hear(&s->questions[head->a], head->kind);
    pthread_mutex_unlock(&lock);
}

/* Under the lock, which it releases meanwhile: copies lines of an answer. */
static void copy_answer(mb_spread *s, const answer *a, bool writing)
{
    s->users++;
    pthread_mutex_unlock(&lock);
    copy_lines(s, &a->wish.lines, piece_of(s, MB_SPREAD_ASKING + a->place), writing);
    pthread_mutex_lock(&lock);
    s->users--;
}

/* A queued answer gets a piece of memory, if there is one. */
static void begin_answer(mb_spread *s, int number)
{
    answer *a = &s->answers[number];
    const int from = number / MB_SPREAD_ASKING, slot = number % MB_SPREAD_ASKING;
    a->place = 0;
    while (a->place < MB_SPREAD_ANSWERING && s->taken[a->place])
        a->place++;
    if (a->place == MB_SPREAD_ANSWERING)
        return;
    s->taken[a->place] = true;
    a->state = MOVING;
    void *memory = piece_of(s, MB_SPREAD_ASKING + a->place);
    const int tag = tag_of(s, slot, a->wish.writing);
    if (!a->wish.writing)
        copy_answer(s, a, false);
    a->piece =
        needed(a->wish.writing ? links.engine->pull(from, tag, memory, bytes_of(&a->wish.lines))
                               : links.engine->push(from, tag, memory, bytes_of(&a->wish.lines)));
    tell(s, from, a->wish.writing ? GRANTED : COMES, slot);
}

static void end_answer(mb_spread *s, int number)
{
    answer *a = &s->answers[number];
    if (a->wish.writing) {
        copy_answer(s, a, true);
        tell(s, number / MB_SPREAD_ASKING, TAKEN, number % MB_SPREAD_ASKING);
    }
    s->taken[a->place] = false;
    a->state = a->again ? QUEUED : NOTHING;
    s->pending -= a->again ? 0 : 1;
    a->wish = a->next;
    a->again = false;
    pthread_cond_broadcast(&changed);
}

static void refuse(mb_spread *s, int number)
{
    tell(s, number / MB_SPREAD_ASKING, REFUSED, number % MB_SPREAD_ASKING);
    s->answers[number].state = NOTHING;
    s->pending--;
}

/* Gets on with what this rank asks for. Returns whether that is anything. */
static bool work_on_questions(mb_spread *s)
{
    bool any = false;
    for (int i = 0; i < MB_SPREAD_ASKING; i++) {
        question *q = &s->questions[i];
        if (q->state != ASKED)
            continue;
        const bool over = q->piece && links.engine->over(q->piece);
        if (over)
            q->piece = NULL;
        if (q->writing ? q->taken && !q->piece : over)
            end_question(q, true);
        any = any || q->state == ASKED;
    }
    return any;
}

static void work_on_answers(mb_spread *s)
{
    for (int i = 0; s->pending > 0 && i < s->facts.size * MB_SPREAD_ASKING; i++) {
        answer *a = &s->answers[i];
        if (a->state == MOVING && links.engine->over(a->piece))
            end_answer(s, i);
        if (a->state == QUEUED && s->closed)
            refuse(s, i);
        else if (a->state == QUEUED)
            begin_answer(s, i);
    }
}

bool mb_spread_work(void)
{
    bool any = false;
    pthread_mutex_lock(&lock);
    for (mb_spread *s = all; s; s = s->next) {
        s->users++; /* it stays on the list */
        any = work_on_questions(s) || any;
        work_on_answers(s);
        any = any || s->pending > 0;
        s->users--;
        if (s->closed)
            pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    if (any)
        moved_at = mb_now_ns();
    return any || (moved_at > 0 && mb_now_ns() - moved_at < AWAKE_NS);
}

/* ---- the threads that ask ---- */

/* A piece for a question; NULL if it was stopped. */
static question *take_question(mb_spread *s)
{
    question *q = NULL;
    pthread_mutex_lock(&lock);
    while (!q && !s->closed && !mb_cancelled() && !is_late()) {
        for (int i = 0; i < MB_SPREAD_ASKING && !q; i++)
            if (s->questions[i].state == FREE)
                q = &s->questions[i];
        if (!q)
            sleep_a_little();
    }
    if (q) {
        *q = (question){.state = HELD, .spread = s, .slot = (int)(q - s->questions)};
        s->users++;
    }
    pthread_mutex_unlock(&lock);
    return q;
}

static void free_question(question *q)
{
    pthread_mutex_lock(&lock);
    q->state = FREE;
    q->spread->users--;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* An owner that has closed the memory has failed: it ends all ranks. */
static mb_status fail_refused(int owner)
{
    for (uint64_t began = mb_now_ns(); mb_now_ns() - began < GRACE_NS;) {
        MB_TRY(mb_cancel_check());
        pthread_mutex_lock(&lock);
        sleep_a_little();
        pthread_mutex_unlock(&lock);
    }
    return mb_fail(MB_STATUS_IO, NULL,
                   "rank %d has closed the memory that it shares with the other ranks (an error "
                   "in it was caught?)",
                   owner);
}

static mb_status fail_late(void)
{
    return mb_fail(MB_STATUS_CANCELLED, NULL, "all ranks end: one is gone or has failed");
}

/* Waits for the answer. The question is free afterwards, or will be. */
static mb_status wait_for(question *q, void *memory)
{
    const int owner = q->owner;
    pthread_mutex_lock(&lock);
    while (q->state < DONE && !mb_cancelled() && !is_late())
        sleep_a_little();
    const bool over = q->state >= DONE, done = q->state == DONE;
    q->left = !over;
    pthread_mutex_unlock(&lock);
    if (!over) {
        MB_TRY(mb_cancel_check());
        return fail_late();
    }
    if (done && !q->writing)
        memcpy(memory, piece_of(q->spread, q->slot), bytes_of(&q->lines));
    free_question(q);
    return done ? MB_STATUS_OK : fail_refused(owner);
}

static mb_status fail_closed(void)
{
    MB_TRY(mb_cancel_check());
    if (is_late())
        return fail_late();
    return mb_fail(MB_STATUS_ARGUMENT, NULL, "the memory that the ranks share has been closed");
}

static mb_status ask(mb_spread *s, int owner, const mb_spread_lines *lines, void *memory,
                     bool writing)
{
    question *q = take_question(s);
    if (!q)
        return fail_closed();
    q->owner = owner;
    q->lines = *lines;
    q->writing = writing;
    if (writing)
        memcpy(piece_of(s, q->slot), memory, bytes_of(lines));
    const mb_mail_head head = {.kind = ASK, .a = (int64_t)(intptr_t)q};
    const mb_status status = links.ask(&head);
    if (status != MB_STATUS_OK) {
        free_question(q);
        return status;
    }
    return wait_for(q, memory);
}

/* Copies lines of this rank. */
static mb_status copy_own(mb_spread *s, const mb_spread_lines *lines, void *memory, bool writing)
{
    pthread_mutex_lock(&lock);
    const bool closed = s->closed;
    s->users += closed ? 0 : 1;
    pthread_mutex_unlock(&lock);
    if (closed)
        return fail_closed();
    copy_lines(s, lines, memory, writing);
    pthread_mutex_lock(&lock);
    s->users--;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return MB_STATUS_OK;
}

static mb_status check_lines(const mb_spread *s, const mb_spread_lines *lines)
{
    const uint64_t last = begin_of(lines, lines->first + lines->count - 1) + lines->line_bytes;
    if (last > s->facts.bytes || lines->line_bytes > s->facts.piece_bytes)
        return mb_fail(MB_STATUS_ARGUMENT, NULL,
                       "lines of %llu bytes end at byte %llu: pieces have %llu, and the ranks "
                       "share %llu bytes",
                       (unsigned long long)lines->line_bytes, (unsigned long long)last,
                       (unsigned long long)s->facts.piece_bytes,
                       (unsigned long long)s->facts.bytes);
    return MB_STATUS_OK;
}

mb_status mb_spread_move(mb_spread *s, const mb_spread_lines *lines, void *memory, bool writing)
{
    unsigned char *at = memory;
    mb_spread_lines part = *lines;
    if (lines->count == 0)
        return MB_STATUS_OK;
    MB_TRY(check_lines(s, lines));
    const uint64_t most = s->facts.piece_bytes / lines->line_bytes;
    for (uint64_t left = lines->count; left > 0;) {
        MB_TRY(mb_cancel_check());
        part.count = left;
        part.count = of_one_rank(&part, s->facts.share_bytes, most);
        const int owner = (int)(begin_of(&part, part.first) / s->facts.share_bytes);
        MB_TRY(owner == s->facts.rank ? copy_own(s, &part, at, writing)
                                      : ask(s, owner, &part, at, writing));
        at += bytes_of(&part);
        left -= part.count;
        part.first += part.count;
    }
    return MB_STATUS_OK;
}

/* ---- opening and closing ---- */

mb_status mb_spread_open(const mb_spread_facts *facts, mb_spread **out)
{
    const size_t answers = (size_t)facts->size * MB_SPREAD_ASKING;
    *out = NULL;
    if (facts->share_bytes == 0 || facts->piece_bytes == 0 ||
        facts->bytes > facts->share_bytes * (uint64_t)facts->size)
        return mb_fail(
            MB_STATUS_ARGUMENT, NULL, "%llu bytes do not fit into %d shares of %llu bytes",
            (unsigned long long)facts->bytes, facts->size, (unsigned long long)facts->share_bytes);
    pthread_once(&once, prepare);
    mb_spread *s = calloc(1, sizeof *s + answers * sizeof s->answers[0]);
    if (!s)
        return mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left for what ranks share");
    s->facts = *facts;
    s->references = 1;
    pthread_mutex_lock(&lock);
    s->number = ++opened;
    s->next = all;
    all = s;
    pthread_mutex_unlock(&lock);
    *out = s;
    return MB_STATUS_OK;
}

mb_spread *mb_spread_retain(mb_spread *s)
{
    pthread_mutex_lock(&lock);
    s->references++;
    pthread_mutex_unlock(&lock);
    return s;
}

void mb_spread_release(mb_spread *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&lock);
    const bool last = --s->references == 0;
    pthread_mutex_unlock(&lock);
    if (last)
        free(s);
}

/* Under the lock: is memory of the caller in use? */
static bool in_use(const mb_spread *s)
{
    return s->users > 0 || s->pending > 0;
}

bool mb_spread_close(mb_spread *s)
{
    const uint64_t began = mb_now_ns();
    if (!s)
        return true;
    pthread_mutex_lock(&lock);
    s->closed = true;
    pthread_cond_broadcast(&changed);
    while (in_use(s) && !is_late() && mb_now_ns() - began < PATIENCE_NS)
        sleep_a_little();
    const bool stays = in_use(s); /* a rank is dead: all will be */
    for (mb_spread **at = &all; *at && !stays; at = &(*at)->next)
        if (*at == s) {
            *at = s->next;
            break;
        }
    pthread_mutex_unlock(&lock);
    if (!stays)
        mb_spread_release(s);
    return !stays;
}

uint64_t mb_spread_bytes(const mb_spread *s)
{
    return s->facts.bytes;
}
