/*
** Ends of runs before their time (ending.h).
*/
#define _GNU_SOURCE
#include "cluster/ending.h"
#include "core/clock.h"
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOK_NS UINT64_C(20000000)       /* between two looks at lifelines */
#define START_NS UINT64_C(15000000000)   /* in which all ranks should have come */
#define PING_NS UINT64_C(1000000000)     /* between two pings */
#define MOST_LOOK_NS UINT64_C(500000000) /* what counts of a time in which this rank did not look */
#define GRACE_NS UINT64_C(500000000)     /* in which other ranks may fail in the same way */
#define CLEANING_NS UINT64_C(3000000000) /* in which the main thread may end what it does */
#define INSIST_NS UINT64_C(10000000000)  /* in which all may finish what is in flight */
#define ENDING_NS UINT64_C(13000000000)  /* in which all must have come to their end */
#define LAUNCHER_NS UINT64_C(1000000000) /* in which a launcher may act upon a death itself */
#define HURRY_NS UINT64_C(300000000)     /* where the launcher ends the ranks, too */
#define OTHERS_NS UINT64_C(2000000000)   /* in which those without a lifeline end by themselves */
#define ALARM_SECONDS 17                 /* after which a process ends that hangs */
#define SILENCE 60                       /* seconds */

typedef struct rank_facts {
    char node[128];
    bool met;
    bool lost;  /* it is gone */
    bool over;  /* its main thread has come to its end */
    bool asked; /* a ping is under way */
    bool told;  /* that it is silent */
    uint64_t silent_ns;
} rank_facts;

static mb_ending_links links;
static int seconds = SILENCE;
static rank_facts *facts; /* by rank; of rank 0 alone on the others */
static char own_address[MB_LIFELINE_ADDRESS], meeting[MB_LIFELINE_ADDRESS + 160];
static int met, herald;
static bool connecting; /* or not yet begun to */
static uint64_t started_at, looked_at, pinged_at;

static int failures;
static char *failure; /* the first one: node, 0, line */
static int failure_rank, failure_status;
static bool failures_differ;
static bool overtaken; /* its own failure is older than the first one, and has not been told of */
static uint64_t failed_at, began_at;
static bool said_over, insisted, died;
static int end_status;

static atomic_bool begun, all_over, main_over, failing, rank_0_lost, stopped_before, is_herald,
    signalled, finishing;
static const char signal_values[2];

static bool is_first(void)
{
    return links.place->rank == 0;
}

/* Of how many ranks this one has facts. */
static int known(void)
{
    return is_first() ? links.place->size : 1;
}

void *mb_ending_signal_value(bool now)
{
    return (void *)&signal_values[now];
}

bool mb_ending_begun(void)
{
    return begun || mb_lifeline_any_ended();
}

void mb_ending_stopped(void)
{
    signalled = true;
    if (!mb_ending_begun())
        stopped_before = true;
}

void mb_ending_main_over(void)
{
    main_over = true;
}

void mb_ending_failing(void)
{
    failing = true;
}

bool mb_ending_speaks(void)
{
    return !links.place || is_first() || (rank_0_lost && is_herald);
}

void mb_ending_await_others(void)
{
    const uint64_t began = mb_now_ns();
    while (links.place && is_first() && begun && !all_over &&
           !(signalled && mb_now_ns() - began > HURRY_NS))
        usleep(2000);
}

/* ---- who is there ---- */

mb_status mb_ending_read_environment(void)
{
    const char *text = getenv("MOONBEAM_SILENCE");
    char *end = NULL;
    const long given = text ? strtol(text, &end, 10) : SILENCE;
    if (text && (end == text || *end != '\0' || given < 1 || given > 86400))
        return mb_fail(MB_STATUS_ARGUMENT, NULL,
                       "MOONBEAM_SILENCE is '%s'; it must be the seconds, 1 to 86400, after which "
                       "a rank that gives no sign of life is told",
                       text);
    seconds = (int)given;
    return MB_STATUS_OK;
}

void mb_ending_start(const mb_ending_links *given)
{
    links = *given;
    started_at = looked_at = pinged_at = mb_now_ns();
    facts = calloc((size_t)known(), sizeof *facts);
    if (!facts)
        mb_ending_now(EXIT_FAILURE);
    connecting = links.place->size > 1;
    if (connecting)
        mb_lifeline_open(links.place->rank, links.place->size, seconds,
                         is_first() ? own_address : NULL);
}

/* Who speaks if rank 0 is gone. */
static int find_herald(void)
{
    for (int rank = 1; rank < links.place->size; rank++)
        if (strcmp(facts[rank].node, facts[0].node) != 0)
            return rank;
    return 1;
}

const char *mb_ending_meet(int rank, const char *node)
{
    met += facts[rank].met ? 0 : 1;
    facts[rank].met = true;
    snprintf(facts[rank].node, sizeof facts[rank].node, "%s", node);
    if (met < links.place->size)
        return NULL;
    herald = find_herald();
    snprintf(meeting, sizeof meeting, "%d %s\n%s", herald, facts[0].node, own_address);
    return meeting;
}

void mb_ending_join(const char *text)
{
    const char *node = strchr(text, ' '), *address = strchr(text, '\n');
    if (!node || !address)
        return;
    is_herald = strtol(text, NULL, 10) == links.place->rank;
    snprintf(facts[0].node, sizeof facts[0].node, "%.*s", (int)(address - node - 1), node + 1);
    facts[0].met = true;
    mb_lifeline_join(address + 1, strcmp(facts[0].node, links.place->node) == 0);
}

bool mb_ending_lost(int rank)
{
    return rank < known() && facts[rank].lost;
}

static void say(int rank, mb_sign sign)
{
    if (mb_lifeline_has(rank))
        mb_lifeline_say(rank, sign);
    else if (!facts[rank].lost)
        links.sign(rank, sign);
}

/* ---- the end ---- */

static void on_alarm(int number)
{
    (void)number;
    _exit(end_status);
}

/* In so many seconds this process ends, even if MPI or the main thread hang. */
static void set_alarm(unsigned after)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_alarm;
    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
    alarm(after);
}

void mb_ending_now(int status)
{
    end_status = status;
    set_alarm(3); /* abort() may hang where ranks are gone */
    links.engine->abort(status);
    _exit(status);
}

/* As the first signal from outside does, or the second one. */
static void stop_main(bool now)
{
    if (!main_over)
        sigqueue(getpid(), SIGTERM, (union sigval){.sival_ptr = mb_ending_signal_value(now)});
}

static void begin(int status)
{
    begun = true;
    began_at = mb_now_ns();
    end_status = status;
    set_alarm(ALARM_SECONDS);
    links.ends();
    if (is_first())
        for (int rank = 1; rank < links.place->size; rank++)
            say(rank, MB_SIGN_END);
    stop_main(false);
}

static void tell_failure(void)
{
    const char *line = failure + strlen(failure) + 1;
    if (failures == links.place->size && !failures_differ)
        fprintf(stderr, "%s\n", line);
    else
        fprintf(stderr, "rank %d on %s: %s\n", failure_rank, failure, line);
    fflush(stderr);
}

static void tell_death(int rank, bool cut)
{
    if (cut)
        fprintf(stderr, "rank %d on %s is gone: its machine has not answered for %d s\n", rank,
                facts[rank].node, seconds);
    else
        fprintf(stderr, "rank %d on %s has died without a word: killed, or out of memory\n", rank,
                facts[rank].node);
    fflush(stderr);
}

/* The lifeline of a rank has ended. After a stop from outside, and after a failure, that follows
** from it. */
static void lose(int rank, bool cut)
{
    const bool tells = !begun && failures == 0 && !stopped_before && !facts[rank].over;
    facts[rank].lost = facts[rank].over = true;
    if (rank == 0)
        rank_0_lost = true;
    if (tells) {
        died = true;
        if (is_first() || is_herald)
            tell_death(rank, cut);
    }
    if (!begun && (tells || rank == 0 || finishing))
        begin(EXIT_FAILURE);
    else if (begun)
        links.ends();
}

void mb_ending_sign(int rank, mb_sign sign)
{
    mb_ending_heard(rank);
    if (sign == MB_SIGN_PING)
        say(rank, MB_SIGN_PONG);
    else if (sign == MB_SIGN_PONG)
        facts[rank].asked = false;
    else if (sign == MB_SIGN_OVER)
        facts[rank].over = true;
    else if (sign == MB_SIGN_NONE)
        mb_lifeline_expect_less();
    else if (sign == MB_SIGN_END && !begun)
        begin(EXIT_FAILURE);
}

static void hear(int rank, mb_sign sign, mb_lifeline_end end)
{
    if (end == MB_LIFELINE_OPEN)
        mb_ending_sign(rank, sign);
    else if (end != MB_LIFELINE_LEFT)
        lose(rank, end == MB_LIFELINE_CUT);
}

void mb_ending_fail(int rank, int status, const char *text, size_t bytes)
{
    mb_lifeline_hear(hear); /* what the failure follows from comes first */
    const bool first = failures++ == 0;
    facts[rank].over = true;
    if (first) {
        failed_at = mb_now_ns();
        overtaken = failing && rank != 0;
    } else {
        const char *line = text + strlen(text) + 1;
        failures_differ = failures_differ || strcmp(failure + strlen(failure) + 1, line) != 0;
    }
    if (!first && !(overtaken && rank == 0))
        return;
    overtaken = overtaken && rank != 0;
    free(failure);
    failure = malloc(bytes);
    if (!failure)
        mb_ending_now(EXIT_FAILURE);
    memcpy(failure, text, bytes);
    failure_rank = rank;
    failure_status = status;
}

/* Is every other rank over, or gone? */
static bool others_over(void)
{
    bool over = true;
    for (int rank = 1; rank < links.place->size; rank++)
        over = over && facts[rank].over;
    return over;
}

/* Rank 0: every rank has the time to fail in the same way. */
static void judge_failures(void)
{
    const uint64_t grace = overtaken ? CLEANING_NS : GRACE_NS;
    if (failures < links.place->size && mb_now_ns() - failed_at < grace)
        return;
    tell_failure();
    begin(failure_status);
}

/* The run ends: does this process now? */
static void conclude(void)
{
    const uint64_t passed = mb_now_ns() - began_at;
    if (passed > INSIST_NS && !insisted) {
        insisted = true;
        stop_main(true);
    }
    if (is_first()) {
        if (others_over())
            all_over = true;
        const bool ready = all_over && main_over && (!died || passed > LAUNCHER_NS);
        if (passed > ENDING_NS)
            all_over = true; /* the main thread may say what is kept */
        if (ready || passed > ENDING_NS + GRACE_NS)
            mb_ending_now(end_status);
        return;
    }
    if (main_over && !said_over) {
        say(0, MB_SIGN_OVER);
        said_over = true;
    }
    if (facts[0].lost && (main_over || passed > ENDING_NS))
        _exit(end_status);
    if (passed > ENDING_NS + OTHERS_NS)
        mb_ending_now(end_status);
}

/* ---- silence ---- */

void mb_ending_heard(int rank)
{
    if (rank < known()) {
        facts[rank].silent_ns = 0;
        facts[rank].told = false;
    }
}

static void tell_silence(int rank)
{
    facts[rank].told = true;
    if (is_first() || is_herald)
        fprintf(stderr,
                "rank %d on %s has given no sign of life for %d s: it is stopped, or its machine "
                "is overloaded; all go on when it does%s\n",
                rank, facts[rank].node, seconds,
                mb_lifeline_has(rank)
                    ? ""
                    : " (without a connection of its own to rank 0 nothing tells whether it is "
                      "gone: end the run if it is)");
    fflush(stderr);
}

/* A time in which this process was stopped, or had no processor, is no silence of the others. */
static void count_silence(uint64_t passed)
{
    const uint64_t most = (uint64_t)seconds * UINT64_C(1000000000);
    for (int rank = is_first() ? 1 : 0; rank < known(); rank++) {
        rank_facts *own = &facts[rank];
        if (!own->met || own->lost)
            continue;
        own->silent_ns += passed < MOST_LOOK_NS ? passed : MOST_LOOK_NS;
        if (own->silent_ns > most && !own->told)
            tell_silence(rank);
    }
}

static void ping(uint64_t now)
{
    if (!is_first() || met < links.place->size || now - pinged_at < PING_NS)
        return;
    pinged_at = now;
    for (int rank = 1; rank < links.place->size; rank++) {
        if (facts[rank].asked || facts[rank].lost) /* one is under way, however long */
            continue;
        facts[rank].asked = true;
        say(rank, MB_SIGN_PING);
    }
}

/* Until each rank has its lifeline, or no hope of one. */
static void connect_all(void)
{
    if (!(is_first() ? met == links.place->size : facts[0].met) || !mb_lifeline_connect())
        return;
    connecting = false;
    if (!is_first() && !mb_lifeline_has(0))
        links.sign(0, MB_SIGN_NONE);
}

bool mb_ending_is_connected(void)
{
    return !connecting || mb_now_ns() - started_at > START_NS;
}

void mb_ending_work(void)
{
    const uint64_t now = mb_now_ns(), passed = now - looked_at;
    if (begun)
        conclude();
    if (connecting)
        connect_all();
    if (links.place->size == 1 || passed < LOOK_NS)
        return;
    looked_at = now;
    mb_lifeline_hear(hear);
    if (begun)
        return;
    count_silence(passed);
    ping(now);
    if (failures > 0)
        judge_failures();
}

void mb_ending_look_finishing(void)
{
    finishing = true;
    mb_lifeline_hear(hear);
    if (begun) {
        mb_lifeline_close(); /* no others tell of it */
        _exit(end_status);
    }
}
