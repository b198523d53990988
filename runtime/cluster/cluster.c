/*
** The ranks of a run (cluster.h): the thread that makes all calls of the engine, and what the main
** thread asks of it.
**
** Messages go through the thread: `leaving` has those of the main thread, `come` those for it. A
** message of rank 0 to itself goes the same way, without the engine. What rank 0 keeps for all (the
** deals, the parts of an exchange, failures) belongs to its thread, but for `dealt`, which has a
** lock.
*/
#define _GNU_SOURCE
#include "cluster/cluster.h"
#include "cluster/ending.h"
#include "cluster/mail.h"
#include "cluster/spread_thread.h"
#include "core/clock.h"
#include <dlfcn.h>
#include <errno.h>
#include <sys/prctl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Between two looks at messages: the shorter pause, and the longest one after a while without any.
** A look takes 10 us. A pause is at most 1/QUIET of that while, so that it delays little. */
#define POLL_NS UINT64_C(200000)
#define LONGEST_POLL_NS UINT64_C(4000000)
#define QUIET 64
/* While bytes move. A thread that does not sleep takes processors from those that compute. */
#define HASTE_NS UINT64_C(10000)
#define PATIENCE_NS UINT64_C(15000000000) /* after which a failed rank ends all by itself */
#define HANG_NS UINT64_C(3000000000)      /* which that may take */
#define FINISHING_NS UINT64_C(50000000)   /* between two looks at whether the engine has ended */

/* The kinds of messages. NEXT (number of the deal, a = its count, b = work done), PART (text) and
** FAIL (a = exit status, text = node, 0, line), BYE and HERE (text = node) go to rank 0. DEALT (a =
** number), ALL (text), GO and MEET (text of ending.c) come from it, and SIGN (a = the sign) both
** ways. Those from MB_SPREAD_KINDS on are for spread.c. */
enum { NEXT, DEALT, PART, ALL, FAIL, BYE, GO, HERE, MEET, SIGN };

/* A deal: how many numbers have gone, and how much work has been told of. */
typedef struct deal {
    int64_t taken, done;
} deal;

static mb_place place = {.size = 1, .node_size = 1, .nodes = 1};
static const mb_engine *engine;
static pthread_t thread;
static mb_mailbox leaving, come;
static char start_problem[400];
static atomic_bool gone, desperate, finishing;

/* The main thread's. */
static int64_t deal_number, deal_count;
static mb_mail *own_part; /* what a single rank has posted */

/* Rank 0's. */
static pthread_mutex_t dealt_lock = PTHREAD_MUTEX_INITIALIZER;
static deal *deals;
static int64_t deals_count, deals_room;
static mb_mail **parts;
static int parts_count, byes;

const mb_place *mb_cluster_place(void)
{
    return &place;
}

bool mb_cluster_ending(void)
{
    return mb_ending_begun();
}

void mb_cluster_stopped(void)
{
    mb_ending_stopped();
}

mb_cluster_stop_kind mb_cluster_stops(const siginfo_t *info)
{
    if (info->si_code == SI_QUEUE && info->si_value.sival_ptr == mb_ending_signal_value(true))
        return MB_CLUSTER_STOP_NOW;
    return info->si_code == SI_QUEUE && info->si_value.sival_ptr == mb_ending_signal_value(false)
               ? MB_CLUSTER_STOP
               : MB_CLUSTER_NO_STOP;
}

bool mb_cluster_speaks(void)
{
    return mb_ending_speaks();
}

void mb_cluster_await_others(void)
{
    mb_ending_await_others();
}

/* ---- deals ---- */

/* The next number of a deal; 0: all are dealt, -1: no memory. */
static int64_t next_of(int64_t number, int64_t count, int64_t done)
{
    int64_t next = -1;
    pthread_mutex_lock(&dealt_lock);
    while (deals_count < number) {
        if (deals_count == deals_room) {
            const int64_t room = deals_room * 2 + 8;
            deal *more = realloc(deals, (size_t)room * sizeof *deals);
            if (!more)
                break;
            deals = more;
            deals_room = room;
        }
        deals[deals_count++] = (deal){0, 0};
    }
    if (deals_count >= number) {
        deal *own = &deals[number - 1];
        own->done += done;
        next = own->taken < count ? ++own->taken : 0;
    }
    pthread_mutex_unlock(&dealt_lock);
    return next;
}

int64_t mb_cluster_done(void)
{
    pthread_mutex_lock(&dealt_lock);
    const int64_t done =
        deal_number > 0 && deal_number <= deals_count ? deals[deal_number - 1].done : 0;
    pthread_mutex_unlock(&dealt_lock);
    return done;
}

/* ---- the thread ---- */

static _Noreturn void end_all(int status)
{
    mb_ending_now(status);
}

static void handle(int from, const mb_mail_head *head, const char *text, size_t bytes);

/* To a rank that is gone nothing goes. */
static void send_to(int rank, const mb_mail_head *head, const void *text, size_t bytes)
{
    if (mb_ending_lost(rank))
        return;
    mb_mail *mail = mb_mail_new(rank, head, text, bytes);
    if (!mail)
        end_all(EXIT_FAILURE);
    if (rank == place.rank)
        handle(rank, &mail->head, mail->text, bytes);
    else if (!engine->send(rank, &mail->head, mail->bytes)) {
        fprintf(stderr, "moonbeam: rank %d on %s cannot send %zu bytes to rank %d\n", place.rank,
                place.node, bytes, rank);
        end_all(EXIT_FAILURE);
    }
    free(mail);
}

static void fail_by(int rank, const char *node, const char *text, int status)
{
    char line[2048];
    const int length = snprintf(line, sizeof line, "%s%c%s", node, '\0', text);
    const size_t bytes = (size_t)length < sizeof line ? (size_t)length + 1 : sizeof line;
    handle(rank, &(mb_mail_head){.kind = FAIL, .a = status}, line, bytes);
}

/* Do some wait for what can never come? */
static void check_waiting(void)
{
    if (parts_count > 0 && byes > 0 && parts_count + byes == place.size)
        fail_by(place.rank, place.node,
                "some ranks have ended, while others wait for all of them: all ranks must make the "
                "same calls of mb.cluster in the same order",
                EXIT_FAILURE);
}

static void send_all_parts(void)
{
    size_t bytes = 0;
    for (int i = 0; i < place.size; i++)
        bytes += sizeof(uint64_t) + mb_mail_text_bytes(parts[i]);
    char *all = malloc(bytes + 1);
    if (!all)
        end_all(EXIT_FAILURE);
    char *at = all;
    for (int i = 0; i < place.size; i++) {
        const uint64_t own = mb_mail_text_bytes(parts[i]);
        memcpy(at, &own, sizeof own);
        memcpy(at + sizeof own, parts[i]->text, own);
        at += sizeof own + own;
        free(parts[i]);
        parts[i] = NULL;
    }
    parts_count = 0;
    for (int i = 0; i < place.size; i++)
        send_to(i, &(mb_mail_head){.kind = ALL}, all, bytes);
    free(all);
}

static void take_part(int from, const mb_mail_head *head, const char *text, size_t bytes)
{
    if (parts[from]) {
        fail_by(
            from, place.node,
            "this rank has left a call that waits for all ranks (an error was caught?), and has "
            "begun another one: all ranks must make the same calls of mb.cluster",
            EXIT_FAILURE);
        return;
    }
    parts[from] = mb_mail_new(from, head, text, bytes);
    if (!parts[from])
        end_all(EXIT_FAILURE);
    if (++parts_count == place.size)
        send_all_parts();
    else
        check_waiting();
}

static void meet(int rank, const char *node)
{
    const char *text = mb_ending_meet(rank, node);
    if (!text)
        return;
    for (int i = 1; i < place.size; i++)
        send_to(i, &(mb_mail_head){.kind = MEET}, text, strlen(text) + 1);
}

static void sign(int rank, mb_sign what)
{
    send_to(rank, &(mb_mail_head){.kind = SIGN, .a = what}, NULL, 0);
}

static void handle(int from, const mb_mail_head *head, const char *text, size_t bytes)
{
    switch (head->kind) {
    case NEXT: {
        const int64_t next = next_of(head->number, head->a, head->b);
        if (next < 0)
            end_all(EXIT_FAILURE);
        send_to(from, &(mb_mail_head){.kind = DEALT, .number = head->number, .a = next}, NULL, 0);
        return;
    }
    case PART: take_part(from, head, text, bytes); return;
    case FAIL: mb_ending_fail(from, (int)head->a, text, bytes); return;
    case BYE:
        if (++byes == place.size)
            for (int i = 0; i < place.size; i++)
                send_to(i, &(mb_mail_head){.kind = GO}, NULL, 0);
        else
            check_waiting();
        return;
    case GO: gone = true; return;
    case HERE: meet(from, text); return;
    case MEET: mb_ending_join(text); return;
    case SIGN: mb_ending_sign(from, (mb_sign)head->a); return;
    default: /* DEALT, ALL, and the kinds of spread.c */
        if (head->kind >= MB_SPREAD_KINDS)
            mb_spread_handle(from, head, text);
        else if (mb_mailbox_send(&come, from, head, text, bytes) != MB_STATUS_OK)
            end_all(EXIT_FAILURE);
    }
}

static bool receive_one(void)
{
    int from;
    void *data;
    size_t bytes;
    if (!engine->receive(&from, &data, &bytes))
        return false;
    mb_mail_head head;
    memcpy(&head, data, sizeof head);
    mb_ending_heard(from);
    handle(from, &head, (const char *)data + sizeof head, bytes - sizeof head);
    free(data);
    return true;
}

/* A message of another thread of this rank, for the thread. */
static mb_status ask(const mb_mail_head *head)
{
    return mb_mailbox_send(&leaving, place.rank, head, NULL, 0);
}

/* Until the next look, where nothing is under way and the last message came at `last_ns`. */
static uint64_t pause_after(uint64_t last_ns)
{
    const uint64_t pause = (mb_now_ns() - last_ns) / QUIET;
    return pause < POLL_NS ? POLL_NS : pause < LONGEST_POLL_NS ? pause : LONGEST_POLL_NS;
}

/* Where rank 0 is gone, nothing more is dealt: the main thread does not wait for that in vain. */
static void deal_none(void)
{
    if (mb_mailbox_send(&come, 0, &(mb_mail_head){.kind = DEALT}, NULL, 0) != MB_STATUS_OK)
        end_all(EXIT_FAILURE);
}

/* All ranks begin to end. The main thread may have asked rank 0 for a number. */
static void begin_to_end(void)
{
    mb_spread_end();
    if (mb_ending_lost(0))
        deal_none();
}

/* A message of the main thread leaves. */
static void leave(const mb_mail *mail)
{
    if (mail->head.kind == NEXT && mb_ending_lost(0))
        deal_none();
    else
        send_to(mail->rank, &mail->head, mail->text, mb_mail_text_bytes(mail));
}

/* The main thread waits for this. */
static void tell_start(bool started)
{
    mb_mailbox_send(&come, 0, &(mb_mail_head){.a = started}, NULL, 0);
}

static void *work(void *unused)
{
    (void)unused;
    bool told = false;
    uint64_t last_ns = mb_now_ns();
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); /* HASTE_NS is short */
    const bool started = engine->start(&place, start_problem, sizeof start_problem);
    parts = started ? calloc((size_t)place.size, sizeof(mb_mail *)) : NULL;
    mb_spread_link(
        &(mb_spread_links){.engine = engine, .tell = send_to, .ask = ask, .end = end_all});
    if (!started || !parts) {
        tell_start(false);
        return NULL;
    }
    mb_ending_start(
        &(mb_ending_links){.engine = engine, .place = &place, .sign = sign, .ends = begin_to_end});
    send_to(0, &(mb_mail_head){.kind = HERE}, place.node, strlen(place.node) + 1);
    while (!gone) {
        while (receive_one())
            last_ns = mb_now_ns();
        /* MPI moves large messages and pieces only while it is asked. */
        const bool moving = mb_spread_work(), hurries = !engine->sent() || moving;
        mb_mail *mail = mb_mailbox_take(&leaving, hurries ? HASTE_NS : pause_after(last_ns));
        if (mail)
            leave(mail);
        if (mail || hurries)
            last_ns = mb_now_ns();
        free(mail);
        mb_ending_work();
        if (!told && mb_ending_is_connected()) {
            tell_start(true);
            told = true;
        }
        if (desperate)
            end_all(EXIT_FAILURE);
    }
    while (!engine->sent())
        ;
    finishing = true;
    engine->finish();
    return NULL;
}

/* ---- starting and ending ---- */

/* What launchers tell the processes that they start. Slurm sets SLURM_NTASKS for scripts too, which
** it starts once; the number of a step is there only for what srun has started. */
static const struct {
    const char *name, *only_with;
} SIZES[] = {{"OMPI_COMM_WORLD_SIZE", NULL},
             {"PMI_SIZE", NULL},
             {"SLURM_STEP_NUM_TASKS", NULL},
             {"SLURM_NTASKS", "SLURM_STEP_ID"}};

int mb_cluster_launched(const char **variable)
{
    int most = 0;
    *variable = "";
    for (size_t i = 0; i < sizeof SIZES / sizeof SIZES[0]; i++) {
        const char *text = getenv(SIZES[i].name);
        const int count = text && (!SIZES[i].only_with || getenv(SIZES[i].only_with))
                              ? (int)strtol(text, NULL, 10)
                              : 0;
        if (count > most) {
            most = count;
            *variable = SIZES[i].name;
        }
    }
    return most;
}

bool mb_cluster_has_pmi(void)
{
    static const char *const names[] = {"PMIX_NAMESPACE", "PMIX_RANK",   "OMPI_COMM_WORLD_SIZE",
                                        "PMI_FD",         "PMI_PORT",    "PMI_RANK",
                                        "PMI_SIZE",       "PALS_RANKID", "I_MPI_PMI_LIBRARY"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (getenv(names[i]))
            return true;
    return false;
}

bool mb_cluster_is_first(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                        "PALS_RANKID", "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *rank = getenv(names[i]);
        if (rank)
            return strcmp(rank, "0") == 0;
    }
    return true;
}

static mb_status load(const char *plugin)
{
    const char *variable;
    const int launched = mb_cluster_launched(&variable);
    void *library = dlopen(plugin, RTLD_NOW | RTLD_GLOBAL);
    if (!library && launched > 1)
        return mb_fail(
            MB_STATUS_UNSUPPORTED, NULL,
            "a launcher has started %d processes (%s), which need %s to work together: "
            "%s; build it with the mpicc of this place (mpi/build), or let each work on its "
            "own with --no-mpi",
            launched, variable, plugin, dlerror());
    if (!library)
        return mb_fail(MB_STATUS_UNSUPPORTED, NULL,
                       "cannot load the MPI plug-in: %s; build it with the mpicc of this place "
                       "(mpi/build)",
                       dlerror());
    mb_engine_entry_function entry;
    *(void **)&entry = dlsym(library, MB_ENGINE_ENTRY);
    engine = entry ? entry() : NULL;
    if (engine && engine->abi == MB_ENGINE_ABI)
        return MB_STATUS_OK;
    engine = NULL;
    return mb_fail(MB_STATUS_UNSUPPORTED, NULL,
                   "%s was built for another version of Moonbeam; build it again", plugin);
}

/* Processes that a launcher has started, and of which each is alone. */
static mb_status check_singleton(void)
{
    const char *variable;
    const int launched = mb_cluster_launched(&variable);
    if (place.size > 1 || launched <= 1)
        return MB_STATUS_OK;
    return mb_fail(
        MB_STATUS_UNSUPPORTED, NULL,
        "the launcher has started %d processes (%s), but MPI knows of one: each would do "
        "the whole work; start them by srun --mpi=pmix, by the mpirun of %s, or one "
        "process alone with --no-mpi",
        launched, variable, place.library);
}

mb_status mb_cluster_start(const char *plugin)
{
    sigset_t all, before;
    MB_TRY(mb_ending_read_environment());
    MB_TRY(load(plugin));
    mb_mailbox_open(&leaving);
    mb_mailbox_open(&come);
    sigfillset(&all); /* signals are for the main thread */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int problem = pthread_create(&thread, NULL, work, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (problem != 0) {
        engine = NULL;
        return mb_fail(MB_STATUS_MEMORY, NULL, "cannot start the thread for MPI: %s",
                       strerror(problem));
    }
    mb_mail *mail = NULL;
    while (!mail)
        mail = mb_mailbox_take(&come, PATIENCE_NS);
    const bool started = mail->head.a != 0;
    free(mail);
    if (started)
        return check_singleton();
    engine = NULL;
    return mb_fail(MB_STATUS_UNSUPPORTED, NULL, "MPI cannot start: %s", start_problem);
}

void mb_cluster_stop(void)
{
    struct timespec until;
    if (!engine)
        return;
    mb_ending_main_over();
    if (mb_mailbox_send(&leaving, 0, &(mb_mail_head){.kind = BYE}, NULL, 0) == MB_STATUS_OK) {
        do {
            if (finishing)
                mb_ending_look_finishing();
            clock_gettime(CLOCK_REALTIME, &until);
            until.tv_nsec += (long)FINISHING_NS;
            until.tv_sec += until.tv_nsec / 1000000000;
            until.tv_nsec %= 1000000000;
        } while (pthread_timedjoin_np(thread, NULL, &until) == ETIMEDOUT);
        mb_lifeline_close();
    }
    engine = NULL;
}

void mb_cluster_failing(void)
{
    mb_ending_failing();
}

void mb_cluster_fail(const char *text, int status)
{
    if (!engine || place.size == 1)
        return;
    char line[2048];
    const int length = snprintf(line, sizeof line, "%s%c%s", place.node, '\0', text);
    const size_t bytes = (size_t)length < sizeof line ? (size_t)length + 1 : sizeof line;
    line[sizeof line - 1] = '\0';
    mb_ending_main_over();
    mb_mailbox_send(&leaving, 0, &(mb_mail_head){.kind = FAIL, .a = status}, line, bytes);
    const uint64_t began = mb_now_ns();
    while (mb_now_ns() - began < PATIENCE_NS)
        usleep(10000);
    desperate = true;
    while (mb_now_ns() - began < PATIENCE_NS + HANG_NS)
        usleep(10000);
    _exit(status);
}

/* ---- what the main thread asks ---- */

/* The answer to a request; NULL if it has not come in this time. */
static mb_mail *answer(int kind, uint64_t wait_ns)
{
    mb_mail *mail = mb_mailbox_take(&come, wait_ns);
    if (mail && mail->head.kind != kind) { /* an order of calls that no rank may have */
        free(mail);
        mail = NULL;
    }
    return mail;
}

void mb_cluster_deal(int64_t count)
{
    deal_number++;
    deal_count = count;
}

/* Tells of work, and takes a number up to `count`. */
static mb_status take_number(int64_t count, int64_t done, int64_t *number)
{
    if (deal_number == 0)
        return mb_fail(MB_STATUS_ARGUMENT, NULL, "nothing has been dealt yet");
    if (place.size == 1) {
        *number = next_of(deal_number, count, done);
        return *number >= 0 ? MB_STATUS_OK
                            : mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left for a deal");
    }
    const mb_mail_head head = {.kind = NEXT, .number = deal_number, .a = count, .b = done};
    MB_TRY(mb_mailbox_send(&leaving, 0, &head, NULL, 0));
    mb_mail *mail = NULL;
    while (!mail)
        mail = answer(DEALT, PATIENCE_NS);
    *number = mail->head.a;
    free(mail);
    return MB_STATUS_OK;
}

mb_status mb_cluster_next(int64_t done, int64_t *number)
{
    return take_number(deal_count, done, number);
}

mb_status mb_cluster_tell(int64_t done)
{
    int64_t none;
    return take_number(0, done, &none);
}

mb_status mb_cluster_post(const void *data, size_t bytes)
{
    const mb_mail_head head = {.kind = PART};
    if (bytes > (size_t)INT32_MAX / (size_t)place.size - 64)
        return mb_fail(MB_STATUS_ARGUMENT, NULL,
                       "%zu bytes of one rank are too many for one message to all", bytes);
    if (place.size > 1)
        return mb_mailbox_send(&leaving, 0, &head, data, bytes);
    free(own_part);
    own_part = mb_mail_new(0, &head, data, bytes);
    return own_part ? MB_STATUS_OK
                    : mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left for a message");
}

mb_status mb_cluster_collect(uint64_t wait_ns, char **all, size_t *bytes)
{
    *all = NULL;
    mb_mail *mail = place.size > 1 ? answer(ALL, wait_ns) : own_part;
    if (!mail)
        return MB_STATUS_OK;
    const bool alone = place.size == 1;
    const uint64_t own = mb_mail_text_bytes(mail);
    const size_t head = alone ? sizeof own : 0;
    *bytes = (size_t)own + head;
    *all = malloc(*bytes + 1);
    if (*all) {
        memcpy(*all, &own, head);
        memcpy(*all + head, mail->text, own);
    }
    free(mail);
    own_part = NULL;
    return *all ? MB_STATUS_OK
                : mb_fail(MB_STATUS_MEMORY, NULL, "no host memory left for a message");
}
