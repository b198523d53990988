/*
** The error record and the bell of core/wake.h, as C code uses them: status_test CASE runs one case
** and prints "ok".
*/
#define _GNU_SOURCE
#include "core/status.h"
#include "core/wake.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("line %d: %s (record: %s)\n", __LINE__, #condition, mb_error_last()->text);     \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static mb_status attempt(void)
{
    mb_fail_bytes(MB_STATUS_BUDGET, 7, 5, "7 bytes do not fit");
    mb_error_name_op("attempt");
    mb_error_remedy("ask for %d", 5);
    mb_error_budget()->live = 3;
    return MB_STATUS_BUDGET;
}

/* A failure that is handled leaves nothing in the next one. */
static void handled(void)
{
    EXPECT(attempt() == MB_STATUS_BUDGET);
    EXPECT(mb_error_last()->need_bytes == 7 && mb_error_last()->limit_bytes == 5);
    EXPECT(!strcmp(mb_error_last()->budget.remedy, "ask for 5"));
    EXPECT(mb_fail(MB_STATUS_SHAPE, "rows", "rows is %d", -1) == MB_STATUS_SHAPE);
    const mb_error *error = mb_error_last();
    EXPECT(error->code == MB_STATUS_SHAPE && !strcmp(error->text, "rows is -1"));
    EXPECT(!strcmp(error->arg, "rows") && !error->op[0]);
    EXPECT(!error->need_bytes && !error->limit_bytes);
    EXPECT(!error->budget.live && !error->budget.remedy[0]);
}

/* A failure can be composed of the text that it replaces. */
static void composed(void)
{
    mb_fail(MB_STATUS_MEMORY, "size", "the system refused");
    mb_fail_bytes(MB_STATUS_BUDGET, 7, 5, "7 bytes: %s", mb_error_last()->text);
    EXPECT(!strcmp(mb_error_last()->text, "7 bytes: the system refused"));
    EXPECT(!mb_error_last()->arg[0]);
}

static void clean_up(void)
{
    MB_KEEP_ERROR;
    attempt();
    mb_fail(MB_STATUS_IO, "file", "cannot close");
    EXPECT(mb_error_last()->code == MB_STATUS_IO);
}

/* Clean-up that fails does not hide the cause; where nothing has failed it leaves no record. */
static void cleaned(void)
{
    clean_up();
    EXPECT(mb_error_last()->code == MB_STATUS_OK);
    mb_fail(MB_STATUS_DTYPE, "a", "a is text");
    mb_error_name_op("inner");
    clean_up();
    mb_error_name_op("outer"); /* the first name stays */
    EXPECT(mb_error_last()->code == MB_STATUS_DTYPE);
    EXPECT(!strcmp(mb_error_last()->text, "a is text") && !strcmp(mb_error_last()->op, "inner"));
}

/* What is reported is reported once. */
static void taken(void)
{
    attempt();
    EXPECT(mb_error_take().code == MB_STATUS_BUDGET);
    const mb_error second = mb_error_take();
    EXPECT(second.code == MB_STATUS_INTERNAL && !second.need_bytes && !second.op[0]);
}

static void *work(void *result)
{
    EXPECT(mb_error_last()->code == MB_STATUS_OK); /* a record belongs to its thread */
    attempt();
    *(mb_error *)result = *mb_error_last();
    mb_fail(MB_STATUS_IO, NULL, "something else, later");
    return NULL;
}

/* A worker's failure is reported by another thread. */
static void moved(void)
{
    mb_error error;
    pthread_t thread;
    mb_fail(MB_STATUS_IO, NULL, "an old failure");
    EXPECT(!pthread_create(&thread, NULL, work, &error) && !pthread_join(thread, NULL));
    EXPECT(mb_error_last()->code == MB_STATUS_IO);
    mb_error_put(&error);
    EXPECT(mb_error_last()->need_bytes == 7 && !strcmp(mb_error_last()->op, "attempt"));
}

/* ---- the bell ---- */

#define TURNS 20000

static atomic_int turn; /* of two threads that go on in turn, each woken by the other alone */

static void *take_turns(void *user)
{
    const int own = *(const int *)user;
    for (int i = 0; i < TURNS; i++) {
        for (;;) {
            const uint32_t ticket = mb_wake_ticket();
            if (atomic_load_explicit(&turn, memory_order_relaxed) % 2 == own)
                break;
            mb_wake_sleep(ticket);
        }
        atomic_fetch_add_explicit(&turn, 1, memory_order_relaxed);
        mb_wake_ring();
    }
    return NULL;
}

/* No ring is lost: two threads that wait for each other come to an end. */
static void woken(void)
{
    pthread_t threads[2];
    int own[2] = {0, 1};
    for (int i = 0; i < 2; i++)
        EXPECT(pthread_create(&threads[i], NULL, take_turns, &own[i]) == 0);
    for (int i = 0; i < 2; i++)
        EXPECT(pthread_join(threads[i], NULL) == 0);
    EXPECT(turn == 2 * TURNS);
}

/* A ring between ticket and sleep ends the sleep. So does raising the cancel flag. */
static void rung(void)
{
    uint32_t ticket = mb_wake_ticket();
    mb_wake_ring();
    EXPECT(mb_wake_sleep(ticket));
    ticket = mb_wake_ticket();
    mb_cancel_set(true);
    EXPECT(mb_wake_sleep(ticket));
    EXPECT(mb_cancelled());
    mb_cancel_set(false);
}

static void sleep_ms(long ms)
{
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static atomic_bool awake;

static void *sleeper(void *user)
{
    struct rusage usage;
    long *switches = user;
    const uint32_t ticket = mb_wake_ticket();
    while (!atomic_load(&awake))
        EXPECT(mb_wake_sleep(ticket));
    getrusage(RUSAGE_THREAD, &usage);
    *switches = usage.ru_nvcsw;
    return NULL;
}

/* Who sleeps is not woken in between. */
static void quiet(void)
{
    pthread_t thread;
    long switches = -1;
    EXPECT(pthread_create(&thread, NULL, sleeper, &switches) == 0);
    sleep_ms(500);
    atomic_store(&awake, true);
    mb_wake_ring();
    EXPECT(pthread_join(thread, NULL) == 0);
    EXPECT(switches >= 0 && switches < 10);
}

static void ignore(int number)
{
    (void)number;
}

static void cancel(int number)
{
    (void)number;
    mb_cancel_set(true);
}

/* A signal ends the sleep, and says so; one whose handler raises the cancel flag does so too, even
** if it came before the sleep. */
static void signalled(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = ignore;
    EXPECT(sigaction(SIGALRM, &action, NULL) == 0);
    const uint32_t ticket = mb_wake_ticket();
    alarm(1);
    EXPECT(!mb_wake_sleep(ticket));
    action.sa_handler = cancel;
    EXPECT(sigaction(SIGALRM, &action, NULL) == 0);
    EXPECT(raise(SIGALRM) == 0);
    EXPECT(mb_wake_sleep(ticket));
    EXPECT(mb_cancel_check() == MB_STATUS_CANCELLED);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {
        {"handled", handled}, {"composed", composed}, {"cleaned", cleaned},
        {"taken", taken},     {"moved", moved},       {"woken", woken},
        {"rung", rung},       {"quiet", quiet},       {"signalled", signalled},
    };
    for (size_t i = 0; argc == 2 && i < sizeof cases / sizeof cases[0]; i++)
        if (!strcmp(argv[1], cases[i].name)) {
            cases[i].run();
            puts("ok");
            return 0;
        }
    return 2;
}
