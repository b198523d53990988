/*
** Connections that tell of the death of a rank (lifeline.h).
**
** A rank that comes says hello: the secret and its number. Rank 0 answers with WELCOME, and from
** then on signs go both ways, one byte each. Two epolls look at the connections: `ends` wakes up for
** their ends alone, and has them in the order in which they have come; `news` for bytes.
*/
#define _GNU_SOURCE
#include "cluster/lifeline.h"
#include "core/clock.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define SECRET 16
#define GUESTS 64 /* connections that have not said hello yet */
#define PATHS 16  /* addresses that a rank tries */
#define WELCOME 'w'
#define EVENTS 64                        /* that are taken at a time */
#define GUEST_NS UINT64_C(10000000000)   /* in which a guest must say hello */
#define CONNECT_NS UINT64_C(5000000000)  /* in which a connection must be made */
#define WELCOME_NS UINT64_C(60000000000) /* and answered: rank 0 may be stopped */
#define MOST_LOOK_NS UINT64_C(200000000) /* what counts of the time between two looks */

typedef struct hello {
    unsigned char secret[SECRET];
    int32_t rank;
} hello;

/* A connection to rank 0 that has not said hello. */
typedef struct guest {
    int fd; /* 0: none */
    size_t got;
    uint64_t since;
    hello said;
} guest;

/* An address of rank 0 that this rank tries. */
typedef struct path {
    int fd; /* 0: none */
    bool said;
} path;

static int own_rank, ranks_count, patience; /* patience: seconds */
static hello own_hello;
static int listener, news, missing;
static volatile int ends;
static int *lines;  /* by rank: descriptors; 0: none */
static bool *leave; /* by rank: it has said BYE */
static guest guests[GUESTS];
static path paths[PATHS];
static uint64_t tried_ns, looked_at;

static void close_one(int *fd)
{
    if (*fd > 0)
        close(*fd);
    *fd = 0;
}

/* A descriptor that is not 0, by which none is meant; 0: failed. */
static int above_0(int fd)
{
    if (fd == 0) {
        fd = fcntl(0, F_DUPFD_CLOEXEC, 1);
        close(0);
    }
    return fd > 0 ? fd : 0;
}

static void set_options(int fd)
{
    const int on = 1, idle = patience > 6 ? patience / 6 : 1, count = 6;
    const unsigned most = (unsigned)patience * 1000;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &most, sizeof most);
}

/* The connection with a rank is made. */
static void keep(int rank, int fd)
{
    struct epoll_event end = {.events = EPOLLRDHUP, .data.fd = rank};
    struct epoll_event data = {.events = EPOLLIN, .data.fd = rank};
    set_options(fd);
    if (epoll_ctl(ends, EPOLL_CTL_ADD, fd, &end) != 0 ||
        epoll_ctl(news, EPOLL_CTL_ADD, fd, &data) != 0) {
        close(fd);
        return;
    }
    lines[rank] = fd;
    missing--;
}

/* ---- rank 0 ---- */

static bool bind_to(int family, const void *address, socklen_t bytes)
{
    const int off = 0;
    listener = above_0(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (listener == 0)
        return false;
    if (family == AF_INET6)
        setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(listener, address, bytes) == 0 && listen(listener, SOMAXCONN) == 0)
        return true;
    close_one(&listener);
    return false;
}

static int port_of(void)
{
    struct sockaddr_storage own;
    socklen_t bytes = sizeof own;
    if (getsockname(listener, (struct sockaddr *)&own, &bytes) != 0)
        return 0;
    return ntohs(own.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&own)->sin6_port
                                           : ((struct sockaddr_in *)&own)->sin_port);
}

/* The text of an address that others can reach; false: none. */
static bool text_of(const struct ifaddrs *each, char text[INET6_ADDRSTRLEN])
{
    if (!each->ifa_addr || !(each->ifa_flags & IFF_UP) || each->ifa_flags & IFF_LOOPBACK)
        return false;
    if (each->ifa_addr->sa_family == AF_INET)
        return inet_ntop(AF_INET, &((const struct sockaddr_in *)each->ifa_addr)->sin_addr, text,
                         INET6_ADDRSTRLEN);
    const struct sockaddr_in6 *own = (const struct sockaddr_in6 *)each->ifa_addr;
    return own->sin6_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&own->sin6_addr) &&
           inet_ntop(AF_INET6, &own->sin6_addr, text, INET6_ADDRSTRLEN);
}

/* "PORT SECRET ADDRESS ADDRESS ..." */
static void write_address(char *address)
{
    struct ifaddrs *all = NULL;
    char text[INET6_ADDRSTRLEN];
    int at = snprintf(address, MB_LIFELINE_ADDRESS, "%d ", port_of());
    for (int i = 0; i < SECRET; i++)
        at += snprintf(address + at, MB_LIFELINE_ADDRESS - (size_t)at, "%02x", own_hello.secret[i]);
    if (getifaddrs(&all) != 0)
        return;
    for (const struct ifaddrs *each = all; each; each = each->ifa_next)
        if (text_of(each, text) && (size_t)at + sizeof text + 1 < MB_LIFELINE_ADDRESS)
            at += snprintf(address + at, MB_LIFELINE_ADDRESS - (size_t)at, " %s", text);
    freeifaddrs(all);
}

void mb_lifeline_open(int rank, int size, int seconds, char *address)
{
    const struct sockaddr_in6 any6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    const struct sockaddr_in any4 = {.sin_family = AF_INET};
    own_rank = rank;
    ranks_count = rank == 0 ? size : 1; /* with whom it may have one */
    patience = seconds;
    missing = rank == 0 ? size - 1 : 1;
    looked_at = mb_now_ns();
    lines = calloc((size_t)ranks_count, sizeof *lines);
    leave = calloc((size_t)ranks_count, sizeof *leave);
    ends = above_0(epoll_create1(EPOLL_CLOEXEC));
    news = above_0(epoll_create1(EPOLL_CLOEXEC));
    own_hello.rank = rank;
    if (address)
        address[0] = '\0';
    if (!lines || !leave || ends == 0 || news == 0 || !address)
        return;
    if (getrandom(own_hello.secret, SECRET, 0) == SECRET &&
        (bind_to(AF_INET6, &any6, sizeof any6) || bind_to(AF_INET, &any4, sizeof any4)))
        write_address(address);
}

/* Those for whom there is no room wait in the kernel. */
static void take_guests(void)
{
    for (int i = 0; i < GUESTS; i++) {
        if (guests[i].fd > 0)
            continue;
        const int fd = above_0(accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (fd == 0)
            return;
        guests[i] = (guest){.fd = fd, .since = mb_now_ns()};
    }
}

/* What a guest says. Strangers are sent away. */
static void listen_to(guest *own)
{
    const char welcome = WELCOME;
    const ssize_t got =
        recv(own->fd, (char *)&own->said + own->got, sizeof own->said - own->got, MSG_DONTWAIT);
    const bool waits = got < 0 && (errno == EAGAIN || errno == EINTR);
    own->got += got > 0 ? (size_t)got : 0;
    if (own->got < sizeof own->said) {
        if ((got <= 0 && !waits) || mb_now_ns() - own->since > GUEST_NS)
            close_one(&own->fd);
        return;
    }
    const int rank = own->said.rank;
    const bool known = memcmp(own->said.secret, own_hello.secret, SECRET) == 0 && rank > 0 &&
                       rank < ranks_count && lines[rank] == 0;
    if (known && send(own->fd, &welcome, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1)
        keep(rank, own->fd);
    else
        close(own->fd);
    own->fd = 0;
}

static void shut(void)
{
    close_one(&listener);
    for (int i = 0; i < GUESTS; i++)
        close_one(&guests[i].fd);
}

/* ---- the others ---- */

static void try_address(path *own, const char *text, int port)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    const bool is_four = inet_pton(AF_INET, text, &four.sin_addr) == 1;
    if (!is_four && inet_pton(AF_INET6, text, &six.sin6_addr) != 1)
        return;
    own->said = false;
    own->fd = above_0(
        socket(is_four ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (own->fd == 0)
        return;
    const int result = is_four ? connect(own->fd, (const struct sockaddr *)&four, sizeof four)
                               : connect(own->fd, (const struct sockaddr *)&six, sizeof six);
    if (result != 0 && errno != EINPROGRESS)
        close_one(&own->fd);
}

void mb_lifeline_join(const char *address, bool same_node)
{
    char text[MB_LIFELINE_ADDRESS], *rest = text;
    snprintf(text, sizeof text, "%s", address);
    const char *port_text = strsep(&rest, " "), *secret = strsep(&rest, " ");
    const int port = (int)strtol(port_text, NULL, 10);
    int at = 0;
    tried_ns = 0;
    looked_at = mb_now_ns();
    if (!lines || !leave || ends == 0 || news == 0 || !secret || strlen(secret) != 2 * SECRET)
        return;
    for (int i = 0; i < SECRET; i++) {
        const char digits[3] = {secret[2 * i], secret[2 * i + 1], '\0'};
        own_hello.secret[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
    if (same_node || !rest) {
        try_address(&paths[at++], "127.0.0.1", port);
        try_address(&paths[at++], "::1", port);
    }
    for (const char *each; (each = strsep(&rest, " ")) && at < PATHS; at++)
        try_address(&paths[at], each, port);
}

/* Gets on with one of the ways to rank 0. */
static void try_path(path *own)
{
    struct pollfd ready = {.fd = own->fd, .events = own->said ? POLLIN : POLLOUT};
    char answer = 0;
    if (poll(&ready, 1, 0) <= 0)
        return;
    int problem = 0;
    socklen_t bytes = sizeof problem;
    if (!own->said) {
        own->said = getsockopt(own->fd, SOL_SOCKET, SO_ERROR, &problem, &bytes) == 0 &&
                    problem == 0 &&
                    send(own->fd, &own_hello, sizeof own_hello, MSG_NOSIGNAL | MSG_DONTWAIT) ==
                        (ssize_t)sizeof own_hello;
        if (!own->said)
            close_one(&own->fd);
    } else if (recv(own->fd, &answer, 1, MSG_DONTWAIT) == 1 && answer == WELCOME) {
        keep(0, own->fd);
        own->fd = 0;
    } else {
        close_one(&own->fd);
    }
}

static bool is_joined(void)
{
    bool any = false, said = false;
    const uint64_t now = mb_now_ns(), passed = now - looked_at;
    tried_ns += passed < MOST_LOOK_NS ? passed : MOST_LOOK_NS; /* it may have been stopped */
    looked_at = now;
    for (int i = 0; i < PATHS && missing > 0; i++) {
        if (paths[i].fd > 0)
            try_path(&paths[i]);
        any = any || paths[i].fd > 0;
        said = said || (paths[i].fd > 0 && paths[i].said);
    }
    if (missing > 0 && any && tried_ns < (said ? WELCOME_NS : CONNECT_NS))
        return false;
    for (int i = 0; i < PATHS; i++)
        close_one(&paths[i].fd);
    return true;
}

/* ---- all ---- */

bool mb_lifeline_connect(void)
{
    if (own_rank > 0)
        return is_joined();
    if (listener > 0)
        take_guests();
    for (int i = 0; i < GUESTS; i++)
        if (guests[i].fd > 0)
            listen_to(&guests[i]);
    if (missing > 0)
        return false;
    shut();
    return true;
}

void mb_lifeline_expect_less(void)
{
    missing--;
}

/* Tells the signs that have come from a rank. Returns how its connection is. */
static mb_lifeline_end read_signs(int rank, mb_lifeline_news tell)
{
    for (;;) {
        char signs[64];
        const ssize_t got = recv(lines[rank], signs, sizeof signs, MSG_DONTWAIT);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            return MB_LIFELINE_OPEN;
        if (got <= 0 && leave[rank])
            return MB_LIFELINE_LEFT;
        if (got <= 0)
            return got == 0 || errno == ECONNRESET || errno == EPIPE ? MB_LIFELINE_DIED
                                                                     : MB_LIFELINE_CUT;
        for (ssize_t i = 0; i < got; i++) {
            leave[rank] = leave[rank] || signs[i] == MB_SIGN_BYE;
            tell(rank, (mb_sign)signs[i], MB_LIFELINE_OPEN);
        }
    }
}

/* Ends are told one by one, and an end is there for mb_lifeline_any_ended until it has been told. */
void mb_lifeline_hear(mb_lifeline_news tell)
{
    struct epoll_event events[EVENTS];
    if (!lines || !leave || ends == 0 || news == 0)
        return;
    int count = epoll_wait(ends, events, EVENTS, 0);
    for (int i = 0; i < count; i++) {
        const int rank = events[i].data.fd;
        const mb_lifeline_end end = lines[rank] > 0 ? read_signs(rank, tell) : MB_LIFELINE_OPEN;
        if (end == MB_LIFELINE_OPEN)
            continue;
        tell(rank, 0, end);
        close_one(&lines[rank]);
    }
    count = epoll_wait(news, events, EVENTS, 0);
    for (int i = 0; i < count; i++)
        if (lines[events[i].data.fd] > 0) /* an end that comes now is for the next time */
            read_signs(events[i].data.fd, tell);
}

bool mb_lifeline_any_ended(void)
{
    struct pollfd ready = {.fd = ends, .events = POLLIN};
    return ends > 0 && poll(&ready, 1, 0) > 0;
}

bool mb_lifeline_has(int rank)
{
    return lines && rank < ranks_count && lines[rank] > 0;
}

void mb_lifeline_say(int rank, mb_sign sign)
{
    const char byte = (char)sign;
    if (mb_lifeline_has(rank) && send(lines[rank], &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
        return; /* its end tells more */
}

/* A connection that is closed with bytes that nobody has read is reset, which may overtake a BYE. */
static void leave_one(int rank)
{
    char rest[64];
    mb_lifeline_say(rank, MB_SIGN_BYE);
    if (lines[rank] > 0) {
        shutdown(lines[rank], SHUT_WR);
        while (recv(lines[rank], rest, sizeof rest, MSG_DONTWAIT) > 0)
            ;
    }
    close_one(&lines[rank]);
}

void mb_lifeline_close(void)
{
    int one = ends;
    shut();
    for (int rank = 0; lines && leave && rank < ranks_count; rank++)
        leave_one(rank);
    for (int i = 0; i < PATHS; i++)
        close_one(&paths[i].fd);
    ends = 0;
    close_one(&one);
    close_one(&news);
    free(lines);
    free(leave);
    lines = NULL;
    leave = NULL;
}
