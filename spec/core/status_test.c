/*
** The error record, as C code uses it: status_test CASE runs one case and prints "ok".
*/
#include "core/status.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {
        {"handled", handled}, {"composed", composed}, {"cleaned", cleaned},
        {"taken", taken},     {"moved", moved},
    };
    for (size_t i = 0; argc == 2 && i < sizeof cases / sizeof cases[0]; i++)
        if (!strcmp(argv[1], cases[i].name)) {
            cases[i].run();
            puts("ok");
            return 0;
        }
    return 2;
}
