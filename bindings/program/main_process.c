/*
** The program as a process: how its threads wait, its standard streams, failed writes and crashes.
** Everything here is set up once, by the main thread, before any Lua code runs.
*/
#define _GNU_SOURCE
#include "program.h"
#include "program/lua_print.h"
#include "files/h5/h5.h"
#include "files/target.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *mbm_program = "moonbeam";
int mbm_exit_status = EXIT_SUCCESS;
int mbm_failure_status = EXIT_FAILURE;

/* ---- threads ---- */

/*
** OpenMP threads that wait for work sleep, unless the user sets another policy. Threads that spin
** take the processor from other programs, and from this one if there are more threads than free
** processors (ten times slower on a busy machine). libgomp reads the environment once, in a
** constructor. The program contains its own libgomp (premake5.lua), whose constructor has no
** priority, so the constructor below runs before it. A shared libgomp, which a stock Lua loads with
** the module, is initialized before any code of the module runs; there the user sets the policy
** (OMP_WAIT_POLICY=passive).
*/
static bool policy_is_ours;

__attribute__((constructor(101))) static void choose_wait_policy(void)
{
    if (!getenv("OMP_WAIT_POLICY") && !getenv("GOMP_SPINCOUNT"))
        policy_is_ours = setenv("OMP_WAIT_POLICY", "passive", 1) == 0;
}

/* Programs that this one starts inherit the user's environment, without our change. */
static void restore_environment(void)
{
    if (policy_is_ours)
        unsetenv("OMP_WAIT_POLICY");
}

/* ---- standard streams ---- */

/* A file that is opened later must not take the number of a closed standard stream, because
** everything printed would go into the file. The file that replaces a closed stream refuses
** writes. */
static void occupy_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/* Runs at exit, also by os.exit: a plan or a table that could not be written is a failure. */
static void check_output(int status, void *unused)
{
    (void)unused;
    errno = 0;
    const bool failed = ferror(stdout) != 0;
    const bool flushed = fflush(stdout) == 0;
    if (flushed && !failed && !mbl_output_lost())
        return;
    if (!mbl_output_lost()) /* otherwise `print` has reported it */
        fprintf(stderr, "%s: cannot write all of the standard output: %s\n", mbm_program,
                errno != 0 ? strerror(errno) : "an earlier write failed");
    if (status == EXIT_SUCCESS)
        _exit(EXIT_FAILURE);
}

static void stay_alive(int number)
{
    (void)number;
}

/* If the reader of a pipe has exited, or a file would exceed a limit (ulimit -f), the write fails.
** That failure ends the program cleanly; the signal does not kill it. Handlers are used because
** programs that this one starts do not inherit them. */
static void outlive_failed_writes(void)
{
    static const int SIGNALS[] = {SIGPIPE, SIGXFSZ};
    struct sigaction action = {.sa_handler = stay_alive, .sa_flags = SA_RESTART}, before;
    for (size_t i = 0; i < sizeof SIGNALS / sizeof SIGNALS[0]; i++)
        if (sigaction(SIGNALS[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(SIGNALS[i], &action, NULL);
}

/* ---- crashes ---- */

#ifdef __SANITIZE_ADDRESS__
static void watch_for_crashes(void) {} /* the sanitizer reports more */
#else
static void say(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        return; /* nobody reads the message */
}

/* Does only what is allowed in a signal handler. libhdf5 crashes on some damaged files, and the
** message says so. Any other crash gets the signal's default action. */
static void crashed(int number)
{
    const char *path = mb_h5_inside();
    mb_target_remove_parts();
    if (!path) {
        raise(number);
        return;
    }
    say(mbm_program);
    say(": '");
    say(path);
    say("' has made libhdf5 crash, so it is damaged, most likely: copy it again, or take another "
        "copy\n");
    _exit(EXIT_FAILURE);
}

/* The handler has its own stack, because the main thread's stack may have overflowed. */
static void watch_for_crashes(void)
{
    static const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGABRT};
    static char memory[1 << 16];
    const stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    struct sigaction action = {.sa_handler = crashed, .sa_flags = SA_ONSTACK | (int)SA_RESETHAND};
    sigaltstack(&stack, NULL);
    for (size_t i = 0; i < sizeof SIGNALS / sizeof SIGNALS[0]; i++)
        sigaction(SIGNALS[i], &action, NULL);
}
#endif

void mbm_prepare_process(void)
{
    restore_environment();
    occupy_standard_streams();
    on_exit(check_output, NULL);
    outlive_failed_writes();
    watch_for_crashes();
}
