/*
** The command line of the program: that of `lua`, with more options. Options are read twice:
** mbm_read_options checks all of them before anything runs, and main_run.c then runs the statements
** and libraries in their order.
*/
#define _GNU_SOURCE
#include "program.h"
#include "lua_core.h"
#include <stdio.h>
#include <string.h>

/* Options of one word. */
static const struct {
    const char *name;
    unsigned flags;
} SWITCHES[] = {
    {"--help", MBM_HELP},
    {"-h", MBM_HELP},
    {"--version", MBM_VERSION},
    {"-v", MBM_VERSION},
    {"-i", MBM_INTERACTIVE | MBM_VERSION},
    {"-E", MBM_NO_ENVIRONMENT},
    {"-W", 0},
    {"--plan", MBM_PLAN},
    {"--ledger", MBM_LEDGER},
    {"--leaks", MBM_LEAKS},
    {"--mpi", MBM_RANKS},
    {"--no-mpi", MBM_ALONE},
};

void mbm_misused(const char *option, const char *problem)
{
    fprintf(stderr, "%s: '%s' %s; '%s --help' shows the options\n", mbm_program, option, problem,
            mbm_program);
    fflush(stderr);
    mbm_failure_status = MBM_STATUS_MISUSE;
}

void mbm_print_version(void)
{
    printf("Moonbeam %s, %s\n", MB_VERSION, LUA_COPYRIGHT);
    fflush(stdout);
}

static bool read_switch(const char *option, unsigned *flags)
{
    for (size_t i = 0; i < sizeof SWITCHES / sizeof SWITCHES[0]; i++)
        if (strcmp(option, SWITCHES[i].name) == 0) {
            *flags |= SWITCHES[i].flags;
            return true;
        }
    return false;
}

/* If argv[*i] is NAME=VALUE or NAME VALUE, sets *value (NULL if the value is missing) and returns
** true. For NAME VALUE, *i moves on to the value. */
static bool read_value(char **argv, int *i, const char *name, const char **value)
{
    const size_t length = strlen(name);
    if (strncmp(argv[*i], name, length) != 0)
        return false;
    if (argv[*i][length] == '=')
        *value = argv[*i] + length + 1;
    else if (argv[*i][length] == '\0')
        *value = argv[*i + 1] ? argv[++*i] : NULL;
    else
        return false;
    return true;
}

const char *mbm_statement(char **argv, int *i, char *letter)
{
    const char *option = argv[*i];
    if (option[0] != '-' || (option[1] != 'e' && option[1] != 'l'))
        return NULL;
    *letter = option[1];
    if (option[2] != '\0')
        return option + 2;
    return argv[*i + 1] ? argv[++*i] : NULL;
}

/* Reads the option at argv[*i]. Returns what is wrong with it, or NULL. */
static const char *read_option(char **argv, int *i, mbm_options *options)
{
    static const char needs_argument[] = "needs an argument";
    const char option = argv[*i][1];
    char letter;
    if (read_value(argv, i, "--device", &options->device))
        return options->device ? NULL : needs_argument;
    if (read_value(argv, i, "--budget", &options->budget))
        return options->budget ? NULL : needs_argument;
    if (option == 'e' || option == 'l') {
        const bool apart = argv[*i][2] == '\0';
        const char *argument = mbm_statement(argv, i, &letter);
        if (option == 'e')
            options->flags |= MBM_EXECUTE;
        return argument && !(apart && argument[0] == '-') ? NULL : needs_argument;
    }
    return read_switch(argv[*i], &options->flags) ? NULL : "is not an option";
}

bool mbm_read_options(char **argv, mbm_options *options)
{
    int i = 1;
    for (; argv[i]; i++) {
        if (argv[i][0] != '-' || argv[i][1] == '\0')
            break;
        if (strcmp(argv[i], "--") == 0) {
            i++;
            break;
        }
        const char *option = argv[i];
        const char *problem = read_option(argv, &i, options);
        if (problem) {
            mbm_misused(option, problem);
            return false;
        }
    }
    options->script = i;
    const unsigned recorded = options->flags & (MBM_PLAN | MBM_LEDGER | MBM_LEAKS);
    if (recorded && !(options->flags & (MBM_EXECUTE | MBM_HELP)) && !argv[i]) {
        mbm_misused(recorded & MBM_PLAN     ? "--plan"
                    : recorded & MBM_LEDGER ? "--ledger"
                                            : "--leaks",
                    "needs a script");
        return false;
    }
    return true;
}
