/*
** Asking the terminal: a query is written to it, and its answer is read without echo. The settings
** of the terminal are as before afterwards. A process in the background asks nothing: the system
** would stop it. What the user types while the answer is awaited is lost, so ask once and keep the
** answer.
*/
#include "program/lua_terminal.h"
#include "call/lua_args.h"
#include "call/lua_table.h"
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define MOST_SECONDS 5

/* Does the answer end with that of the device attributes, ESC [ ? ... c? Every terminal answers
** that query, in order, so its answer says that there are no more. */
static bool is_complete(const char *answer, size_t length)
{
    if (length < 4 || answer[length - 1] != 'c')
        return false;
    size_t i = length - 1;
    while (i > 0 && strchr("0123456789;", answer[i - 1]))
        i--;
    return i >= 3 && memcmp(answer + i - 3, "\033[?", 3) == 0;
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Reads into the buffer until the answer is complete or the time is over; returns its length. */
static size_t read_answer(int terminal, char *answer, size_t room, double seconds)
{
    const double end = seconds_now() + seconds;
    size_t length = 0;
    while (length < room && !is_complete(answer, length)) {
        struct pollfd input = {terminal, POLLIN, 0};
        const double left = end - seconds_now();
        if (left <= 0 || poll(&input, 1, (int)(left * 1000) + 1) <= 0)
            break;
        const ssize_t n = read(terminal, answer + length, room - length);
        if (n <= 0)
            break;
        length += (size_t)n;
    }
    return length;
}

/* ask_terminal(query, seconds): writes the query, which ends with "\27[c", to the terminal of the
** process and returns the answer; nil if there is no terminal, if another process has it, or if
** there is no answer in that time. */
int mbl_ask_terminal(lua_State *L)
{
    char answer[1024];
    struct termios before, raw;
    const char *query = mbl_check_string(L, 1, "query");
    double seconds = mbl_check_number(L, 2, "seconds");
    seconds = seconds > 0 ? seconds < MOST_SECONDS ? seconds : MOST_SECONDS : 0;
    const int terminal = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal < 0)
        return 0;
    size_t length = 0;
    if (tcgetpgrp(terminal) == getpgrp() && tcgetattr(terminal, &before) == 0) {
        raw = before;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        raw.c_cc[VMIN] = 0;
        raw.c_cc[VTIME] = 0;
        if (tcsetattr(terminal, TCSANOW, &raw) == 0) {
            const size_t bytes = strlen(query);
            if (write(terminal, query, bytes) == (ssize_t)bytes)
                length = read_answer(terminal, answer, sizeof answer, seconds);
            tcsetattr(terminal, TCSANOW, &before);
        }
    }
    close(terminal);
    if (length == 0)
        return 0;
    lua_pushlstring(L, answer, length);
    return 1;
}

/* terminal_pixels(): {columns, rows, width, height} of the standard output, with width and height
** in pixels, 0 where the terminal does not say; nil if it is not a terminal. */
int mbl_terminal_pixels(lua_State *L)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return 0;
    lua_createtable(L, 0, 4);
    mbl_set_integer(L, "columns", size.ws_col);
    mbl_set_integer(L, "rows", size.ws_row);
    mbl_set_integer(L, "width", size.ws_xpixel);
    mbl_set_integer(L, "height", size.ws_ypixel);
    return 1;
}
