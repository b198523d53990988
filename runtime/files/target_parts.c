/*
** Names of parts, slices folders, and what dead processes have left of both.
**
** A part's name holds the PID of its owner, the host and a random id. The host is a hash of the
** host name, the boot id and the PID namespace: two processes with the same one see the same
** PIDs, so a PID that does not exist there proves that the owner is dead.
*/
#define _GNU_SOURCE
#include "files/target_internal.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- names ---- */

const char *mb_folder_of(const char *path, char *buffer)
{
    snprintf(buffer, PATH_MAX, "%s", path);
    return dirname(buffer);
}

const char *mb_base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

void mb_random_id(char id[9])
{
    uint32_t bits = 0;
    struct timespec now;
    if (getrandom(&bits, sizeof bits, GRND_NONBLOCK) != sizeof bits) {
        clock_gettime(CLOCK_REALTIME, &now); /* the name is exclusive in any case (O_EXCL) */
        bits = (uint32_t)now.tv_nsec * 2654435761u ^ (uint32_t)getpid();
    }
    snprintf(id, 9, "%08x", bits);
}

static uint32_t add_text(uint32_t sum, const char *text)
{
    for (; *text != '\0'; text++)
        sum = (sum ^ (unsigned char)*text) * 16777619u; /* FNV-1a */
    return sum;
}

static char host_text[9];
static bool host_known; /* or PIDs prove nothing */

static void find_host(void)
{
    char text[256] = "", boot[64] = "";
    struct stat space;
    gethostname(text, sizeof text - 1);
    uint32_t sum = add_text(2166136261u, text);
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    const ssize_t count = fd >= 0 ? read(fd, boot, sizeof boot - 1) : -1;
    if (fd >= 0)
        close(fd);
    host_known = count > 0 && stat("/proc/self/ns/pid", &space) == 0;
    if (host_known) {
        snprintf(text, sizeof text, "%llu %llu", (unsigned long long)space.st_dev,
                 (unsigned long long)space.st_ino);
        sum = add_text(add_text(sum, boot), text);
    }
    snprintf(host_text, sizeof host_text, "%08x", sum);
}

const char *mb_host_text(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_host);
    return host_text;
}

void mb_part_name(const char *path, const char *id, char *buffer, size_t bytes)
{
    snprintf(buffer, bytes, "%s.part-%ld-%s-%s", path, (long)getpid(), mb_host_text(), id);
}

/* The length of a path without the extension of its last component. */
static int stem_length(const char *path)
{
    const char *base = mb_base_of(path), *dot = strrchr(base, '.');
    return (int)(dot ? dot - path : (ptrdiff_t)strlen(path));
}

void mb_slices_name(const char *path, const char *id, char *buffer, size_t bytes)
{
    snprintf(buffer, bytes, "%.*s-slices-%s", stem_length(path), path, id);
}

/* Digits of that kind at `text`, `least` or more of them: the first character after them, or
** NULL. */
static const char *digits(const char *text, bool hexadecimal, int least)
{
    int count = 0;
    while (hexadecimal ? isxdigit((unsigned char)text[count]) : isdigit((unsigned char)text[count]))
        count++;
    return count >= least ? text + count : NULL;
}

/* Reads ".part-<pid>-<host>-<id>" and what may follow it; the host and the id are copied. */
static bool parse_part(const char *text, const char *after, long *pid, char of_host[9], char id[9])
{
    static const char MARK[] = ".part-";
    if (strncmp(text, MARK, sizeof MARK - 1) != 0)
        return false;
    const char *number = text + sizeof MARK - 1, *at = digits(number, false, 1);
    if (!at || *at != '-' || digits(at + 1, true, 8) != at + 9 || at[9] != '-' ||
        digits(at + 10, true, 8) != at + 18 || strcmp(at + 18, after) != 0)
        return false;
    *pid = strtol(number, NULL, 10);
    snprintf(of_host, 9, "%.8s", at + 1);
    snprintf(id, 9, "%.8s", at + 10);
    return true;
}

/* ---- slices folders ---- */

/* Is "slices-0001-0004.h5" what the name begins with? Parts of it count. */
static bool is_slices(const char *name)
{
    static const char MARK[] = "slices-";
    if (strncmp(name, MARK, sizeof MARK - 1) != 0)
        return false;
    const char *at = digits(name + sizeof MARK - 1, false, 1);
    at = at && *at == '-' ? digits(at + 1, false, 1) : NULL;
    return at && strncmp(at, ".h5", 3) == 0 && (at[3] == '\0' || strncmp(at + 3, ".part-", 6) == 0);
}

/* Are there only slices in the folder? */
static bool only_slices(const char *folder)
{
    bool only = true;
    DIR *list = opendir(folder);
    if (!list)
        return false;
    for (struct dirent *entry = readdir(list); entry; entry = readdir(list))
        only = only && (is_slices(entry->d_name) || strcmp(entry->d_name, ".") == 0 ||
                        strcmp(entry->d_name, "..") == 0);
    closedir(list);
    return only;
}

/* A folder itself, no link to one. */
static bool is_folder(const char *name)
{
    struct stat facts;
    return lstat(name, &facts) == 0 && S_ISDIR(facts.st_mode);
}

void mb_remove_slices(const char *folder)
{
    char name[PATH_MAX];
    DIR *list = is_folder(folder) ? opendir(folder) : NULL;
    if (!list)
        return;
    for (struct dirent *entry = readdir(list); entry; entry = readdir(list)) {
        if (is_slices(entry->d_name) &&
            (size_t)snprintf(name, sizeof name, "%s/%s", folder, entry->d_name) < sizeof name)
            mb_step_unlink(name);
    }
    closedir(list);
    mb_step_rmdir(folder);
}

/* The folders in a folder. */
typedef struct folder_list {
    char **paths;
    size_t count, room;
} folder_list;

/* Notes a path, if there is host memory for it. */
static void note_folder(folder_list *folders, const char *path)
{
    if (folders->count == folders->room) {
        const size_t room = folders->room * 2 + 16;
        char **more = realloc(folders->paths, room * sizeof *more);
        if (!more)
            return;
        folders->paths = more;
        folders->room = room;
    }
    char *copy = strdup(path);
    if (copy)
        folders->paths[folders->count++] = copy;
}

/* Removes the files in a folder, and notes the folders in it. Follows no links. */
static void remove_files(const char *folder, folder_list *folders)
{
    char name[PATH_MAX];
    DIR *list = is_folder(folder) ? opendir(folder) : NULL;
    if (!list)
        return;
    for (struct dirent *entry = readdir(list); entry; entry = readdir(list)) {
        const bool own = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        if (own ||
            (size_t)snprintf(name, sizeof name, "%s/%s", folder, entry->d_name) >= sizeof name)
            continue;
        if (is_folder(name))
            note_folder(folders, name);
        else
            mb_step_unlink(name);
    }
    closedir(list);
}

/* Removes a folder with its files; those in folders in it, too, while `depth` > 0. One folder is
** open at a time: a process that may open no more files has room for one. */
static void remove_tree(const char *folder, int depth)
{
    folder_list folders = {0};
    remove_files(folder, &folders);
    for (size_t i = 0; i < folders.count; i++) {
        if (depth > 0)
            remove_tree(folders.paths[i], depth - 1);
        free(folders.paths[i]);
    }
    free(folders.paths);
    if (is_folder(folder))
        mb_step_rmdir(folder);
}

void mb_remove_run(const char *folder)
{
    remove_tree(folder, 8);
}

void mb_target_remove_folder(const char *folder)
{
    char id[9], aside[PATH_MAX];
    if (!is_folder(folder))
        return;
    mb_random_id(id);
    mb_part_name(folder, id, aside, sizeof aside);
    /* From here on it is what a dead process of ours leaves: a kill does no harm. */
    if (strlen(folder) < sizeof aside - PART_EXTRA && only_slices(folder) &&
        mb_step_rename(folder, aside, false) == 0)
        folder = aside;
    mb_remove_slices(folder);
}

/* ---- what dead processes have left ---- */

typedef struct leftovers {
    const char *path, *current;
} leftovers;

/* Does the entry's name begin with that of `path`, or of one of its slices folders? Then its
** rest. */
static const char *rest_of(const leftovers *l, const char *name, bool *is_slices_folder)
{
    const char *base = mb_base_of(l->path);
    const size_t length = strlen(base), stem = (size_t)stem_length(l->path) - (base - l->path);
    *is_slices_folder = false;
    if (strncmp(name, base, length) == 0 && strncmp(name + length, ".part-", 6) == 0)
        return name + length;
    if (strncmp(name, base, stem) != 0 || strncmp(name + stem, "-slices", 7) != 0)
        return NULL;
    const char *rest = name + stem + 7;
    if (*rest == '-')
        rest = digits(rest + 1, true, 8);
    *is_slices_folder = true;
    return rest;
}

/* A process that nobody has waited for keeps its PID, but nothing else. */
static bool is_zombie(long pid)
{
    char name[64], text[512];
    snprintf(name, sizeof name, "/proc/%ld/stat", pid);
    const int fd = open(name, O_RDONLY | O_CLOEXEC);
    const ssize_t count = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[count > 0 ? count : 0] = '\0';
    const char *after = strrchr(text, ')'); /* the name comes first, in parentheses */
    return after && (strncmp(after, ") Z", 3) == 0 || strncmp(after, ") X", 3) == 0);
}

bool mb_process_is_dead(long pid, const char *of_host)
{
    if (strcmp(of_host, mb_host_text()) != 0 || !host_known || pid < 1)
        return false;
    return (kill((pid_t)pid, 0) != 0 && errno == ESRCH) || is_zombie(pid);
}

static bool owner_is_dead(long pid, const char *of_host, const char *id)
{
    if (pid == (long)getpid()) /* one before us had our number */
        return strcmp(of_host, mb_host_text()) == 0 && host_known && !mb_own_id_exists(id);
    return mb_process_is_dead(pid, of_host);
}

/* An ordinary file of ours with one link and without a lock: open and locked, so that two
** scavengers do not meet; or -1. */
static int take(const char *name)
{
    struct stat facts, named;
    const int fd = open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_uid == geteuid() &&
        facts.st_nlink == 1 && flock(fd, LOCK_EX | LOCK_NB) == 0 && lstat(name, &named) == 0 &&
        named.st_dev == facts.st_dev && named.st_ino == facts.st_ino)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Is it the folder of an unfinished run that its process is removing? Whoever that is, and whether
** a later process has its PID, anyone may remove it. */
static bool is_removed_run(const char *name)
{
    struct stat facts;
    return strstr(mb_base_of(name), ".unfinished.part-") && lstat(name, &facts) == 0 &&
           S_ISDIR(facts.st_mode) && facts.st_uid == geteuid();
}

/* The part of a dead process, with its slices folder. */
static void remove_dead_part(const leftovers *l, const char *part, const char *id)
{
    char folder[PATH_MAX];
    if (is_removed_run(part))
        mb_remove_run(part);
    const int fd = take(part);
    if (fd < 0)
        return;
    mb_slices_name(l->path, id, folder, sizeof folder);
    const bool has_folder = is_folder(folder);
    if (has_folder && l->current && strcmp(mb_base_of(folder), l->current) != 0)
        mb_remove_slices(folder);
    if (!has_folder || l->current)
        mb_step_unlink(part);
    close(fd);
}

/* The path of an entry in the folder of `path`; false where it is too long. */
static bool beside(const char *path, const char *entry, char *name)
{
    const int head = (int)(mb_base_of(path) - path); /* "" or the folder with its slash */
    return snprintf(name, PATH_MAX, "%.*s%s", head, path, entry) < PATH_MAX;
}

/* The next entry of a dead process, or of none: its path and id, and whether it is a slices
** folder. */
static bool next_dead(DIR *list, const leftovers *l, const char *after, char *name, char id[9],
                      bool *is_slices_folder)
{
    char of_host[9];
    long pid;
    for (struct dirent *entry = readdir(list); entry; entry = readdir(list)) {
        const char *rest = rest_of(l, entry->d_name, is_slices_folder);
        if (rest && parse_part(rest, after, &pid, of_host, id) &&
            beside(l->path, entry->d_name, name) &&
            (owner_is_dead(pid, of_host, id) || is_removed_run(name)))
            return true;
    }
    return false;
}

void mb_target_scavenge(const char *path, const char *current)
{
    const leftovers l = {.path = path, .current = current};
    char buffer[PATH_MAX], name[PATH_MAX], id[9];
    bool is_slices_folder;
    if (strlen(path) >= PATH_MAX - PART_EXTRA)
        return;
    DIR *list = opendir(mb_folder_of(path, buffer));
    if (!list)
        return;
    while (next_dead(list, &l, "", name, id, &is_slices_folder))
        if (!is_slices_folder)
            remove_dead_part(&l, name, id);
        else if (current)
            mb_remove_slices(name);
    closedir(list);
}

bool mb_target_dead_swap(const char *path, char *name)
{
    const leftovers l = {.path = path};
    char buffer[PATH_MAX], id[9];
    bool found = false, is_slices_folder;
    DIR *list = strlen(path) < PATH_MAX - PART_EXTRA ? opendir(mb_folder_of(path, buffer)) : NULL;
    if (!list)
        return false;
    while (!found && next_dead(list, &l, ".swap", name, id, &is_slices_folder)) {
        const int fd = is_slices_folder ? -1 : take(name);
        found = fd >= 0;
        if (found)
            close(fd);
    }
    closedir(list);
    return found;
}
