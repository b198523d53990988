/*
** What the files of the program share: the command line, where the program's files are, running Lua
** code, and the setup of the process.
*/
#ifndef MB_BINDINGS_PROGRAM_H
#define MB_BINDINGS_PROGRAM_H

#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>

/*
** main_options.c: the command line
*/

#define MBM_STATUS_MISUSE 2 /* the exit status of wrong use */

/* What the options ask for. */
enum {
    MBM_INTERACTIVE = 1,
    MBM_VERSION = 2,
    MBM_EXECUTE = 4,
    MBM_NO_ENVIRONMENT = 8,
    MBM_HELP = 16,
    MBM_PLAN = 32,
    MBM_LEDGER = 64,
    MBM_LEAKS = 128,
    MBM_RANKS = 256,
    MBM_ALONE = 512
};

typedef struct mbm_options {
    unsigned flags;
    int script;                  /* index in argv of the script; argc if there is no script */
    const char *device, *budget; /* NULL: not given */
} mbm_options;

/* Reads and checks the options. Returns false if one is wrong, which has been reported. */
bool mbm_read_options(char **argv, mbm_options *options);
/* If argv[*i] is -e or -l, returns its argument, moves *i to the last word of the option, and sets
** *letter to 'e' or 'l'. Otherwise returns NULL. */
const char *mbm_statement(char **argv, int *i, char *letter);
/* Reports wrong use of an option, and makes 2 the exit status. */
void mbm_misused(const char *option, const char *problem);
void mbm_print_version(void);

/*
** main_commands.c: where the program's files are, its commands, and the text of --help
*/

/* Finds the Lua half, the scripts and the CUDA plug-in, and adds the Lua half to package.path. If
** `environment` is true, the variable MOONBEAM_LUA may name the Lua half. */
void mbm_find_files(lua_State *L, bool environment);
/* If `name` is that of a command, returns the command's path, in static memory, whatever files the
** current folder has. A name with a slash, a dot or a dash, and any name if `file`, is that of a
** script, and returned. NULL: neither, or no script, which has been reported. */
const char *mbm_command(const char *name, bool file);
/* Has `require` find the modules that lie beside the script. */
void mbm_add_script_folder(lua_State *L, const char *script);
void mbm_print_help(void);
/* Sets `path` to a file beside the CUDA plug-in; it need not be there. */
void mbm_plugin(const char *name, char *path, size_t bytes);
/* Can several ranks run the command of this name together? A script can. */
bool mbm_command_has_ranks(const char *name);
/* Is there a command of this name? */
bool mbm_is_command(const char *name);

/*
** main_run.c: running Lua code, with its errors reported
*/

/* These functions return a Lua status and report failures. */
int mbm_run_init(lua_State *L); /* LUA_INIT */
int mbm_run_options(lua_State *L, char **argv, const mbm_options *options);
int mbm_run_script(lua_State *L, char **argv, int script);
int mbm_run_stdin(lua_State *L); /* what rank 0 reads there, on all ranks */
int mbm_run_recorded(lua_State *L, const char *how, const char *name); /* "plan" or "ledger" */
int mbm_run_prompt(lua_State *L);
/* Sets the exit status to failure if arrays are still live on a device after the script. */
int mbm_check_leaks(lua_State *L);
/* Prints the error on the top of the stack, if there is one. Returns `status`. */
int mbm_report(lua_State *L, int status);

/*
** main_ranks.c: the program as one of several ranks
*/

/* Becomes a rank if a launcher has started the process, or with MBM_RANKS, and not with MBM_ALONE.
** `script`: the words of the command line from the script on. --help and --version need no rank; nor
** does a process that is alone for a plan or a command of one rank, or where the launcher gives it
** no PMI. Returns false if that fails, which has been reported. */
bool mbm_start_ranks(unsigned flags, char **script);
/* Refuses a command that works on one rank, if there are several. Returns whether it may run. */
bool mbm_check_ranks(const char *command);
/* Refuses the prompt (MBM_INTERACTIVE) in the same way. */
bool mbm_check_prompt(unsigned flags);
bool mbm_several_ranks(void);
/* Prints a line about a failure; of several ranks one prints it, when the process ends. */
void mbm_say_failure(const char *line);

/*
** main_process.c: the program as a process
*/

extern const char *mbm_program; /* the name for messages: argv[0] */
extern int mbm_exit_status;     /* the status if nothing has failed */
extern int mbm_failure_status;  /* the status after a failure that has been reported */

/* Sets up standard streams, signals and the environment. Called once, first. */
void mbm_prepare_process(void);

#endif
