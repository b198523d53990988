/*
** Runs a program with limits and reports how it ended.
**
**   measure SECONDS OUT ERR PROGRAM [ARGUMENT ...]
**
** The program reads nothing; its output and errors go to the files OUT and ERR. Prints one line:
** "exit STATUS", "signal NUMBER" or "hang" (ended after SECONDS), then the seconds it ran and the
** largest resident size in KiB of it or of one of its own children.
*/
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t late;
static pid_t child;

static void on_alarm(int number)
{
    (void)number;
    late = 1;
    kill(-child, SIGKILL);
}

static void redirect(const char *path, int flags, int descriptor)
{
    const int file = open(path, flags, 0644);
    if (file < 0 || dup2(file, descriptor) < 0)
        _exit(126);
    close(file);
}

int main(int count, char **arguments)
{
    if (count < 5) {
        fprintf(stderr, "measure SECONDS OUT ERR PROGRAM [ARGUMENT ...]\n");
        return 2;
    }
    struct timespec began, ended;
    clock_gettime(CLOCK_MONOTONIC, &began);
    child = fork();
    if (child == 0) {
        setpgid(0, 0);
        redirect("/dev/null", O_RDONLY, STDIN_FILENO);
        redirect(arguments[2], O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO);
        redirect(arguments[3], O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO);
        execv(arguments[4], arguments + 4);
        _exit(127);
    }
    if (child < 0)
        return 1;
    setpgid(child, child); /* whichever of the two is first */
    signal(SIGALRM, on_alarm);
    alarm((unsigned)atoi(arguments[1]));
    int status = 0;
    struct rusage usage;
    while (wait4(child, &status, 0, &usage) < 0)
        ;
    alarm(0);
    clock_gettime(CLOCK_MONOTONIC, &ended);
    const double seconds =
        (double)(ended.tv_sec - began.tv_sec) + 1e-9 * (double)(ended.tv_nsec - began.tv_nsec);
    if (late)
        printf("hang");
    else if (WIFSIGNALED(status))
        printf("signal %d", WTERMSIG(status));
    else
        printf("exit %d", WEXITSTATUS(status));
    printf(" %.3f %ld\n", seconds, usage.ru_maxrss);
    return 0;
}
