/*
** The operator descriptor, and the one driver that runs operators: check, infer, plan, place, run.
**
** An operator is one file, op_<name>.c, whose single exported symbol is `const mb_op mb_op_<name>`.
** From the descriptor come the Lua call, the argument checks, the estimate, the help text and the
** conformance spec. Operators cannot reach the allocator: results are placed by the driver from
** `infer`, scratch comes from the slots that `plan` declares. Where an operator has a CUDA kernel,
** op_<name>.h beside it holds what both share: the parameter structure, and the numbers of slots
** and FFTs. op_args.h has the macros of the argument table.
*/
#ifndef MB_OPS_OP_H
#define MB_OPS_OP_H

#include "array/array.h"
#include "ops/planner.h"

#define MB_OP_MAX_ARGS 24
#define MB_OP_MAX_PARAMS 512 /* bytes of a parameter structure */
#define MB_OP_MAX_ARRAYS 9   /* arguments of kind IN, OUT and INOUT together */

typedef enum mb_arg_kind {
    MB_ARG_IN,    /* array, read */
    MB_ARG_OUT,   /* array, written; made by the driver when not given as `out` */
    MB_ARG_INOUT, /* array, changed in place; also the call's result */
    MB_ARG_INT,   /* parameter structure member: int64_t */
    MB_ARG_FLOAT, /* double */
    MB_ARG_BOOL,  /* bool */
    MB_ARG_ENUM,  /* int: index into `choices` */
    /* mb_vector: host numbers, from a Lua table, a 1-D array or a single number */
    MB_ARG_VECTOR
} mb_arg_kind;

typedef struct mb_vector {
    const double *values; /* NULL and count 0 when not given */
    int64_t count;
} mb_vector;

typedef struct mb_op_arg {
    const char *name;
    mb_arg_kind kind;
    /* required arguments are positional, in the order of the table; the rest are options */
    bool required;
    unsigned dtypes;        /* arrays: MB_BIT set accepted */
    int rank_min, rank_max; /* arrays; a vector whose rank_max is 2 may be a list of lists */
    double min, max;        /* numbers and vector elements: inclusive range when min < max */
    /* default of a number, bool or enum (index); NAN for a float that may be absent ("auto") */
    double initial;
    const char *const *choices; /* enums: NULL-terminated */
    size_t offset;              /* of the member in the parameter structure */
    const char *unit;           /* "px", "rad", ... or NULL */
    const char *doc;            /* one line */
} mb_op_arg;

typedef enum mb_op_strides {
    MB_STRIDES_CONTIGUOUS, /* every array must be dense row-major */
    MB_STRIDES_ROWS,       /* last axis dense, other axes any positive stride */
    MB_STRIDES_ANY
} mb_op_strides;

/* How a result that lacks the axis comes from those of the pieces. */
typedef enum mb_op_combine {
    MB_COMBINE_NONE,
    MB_COMBINE_SUM, /* of whole numbers: exact, whatever the pieces */
    MB_COMBINE_MIN,
    MB_COMBINE_MAX /* a NaN wins in both */
} mb_op_combine;

/* Rows along an axis: 0-based, `end` excluded. */
typedef struct mb_rows {
    int64_t first, end;
} mb_rows;

/* A piece of a call, and what is special about it. */
typedef struct mb_op_piece {
    mb_rows rows;  /* of the result that the piece is to give */
    mb_rows input; /* of the arrays that are cut: what the rows need, within the array */
    int64_t skip;  /* rows of the piece's own result before the first of `rows` */
} mb_op_piece;

typedef struct mb_op_cut mb_op_cut; /* ops/cut.h */

/* How the operator may be cut along an axis of its first array. A result depends on its packet
** alone: on the parameters, the extents of the other axes, the model of the device and the rows of
** the packet, never on how many rows the call has. The conformance spec compares pieces of whole
** packets with the whole, to the bit. */
typedef struct mb_op_split {
    int axis;        /* 0-based axis of the first array; -1 ends the list */
    int result_axis; /* the axis of the first result whose rows are asked for */
    unsigned alike;  /* bit i: array argument i, which is not the first, is cut along `axis` too */
    mb_op_combine combine; /* of the results that are not cut */
    /* Where it holds for some arguments only: "where ..." ("the axis is not transformed"). */
    const char *when;
    /* The rows of input that rows of the result need; may reach beyond the array, where there is
    ** nothing: the operator's own rule holds at its edges. NULL: the same rows. */
    mb_rows (*needs)(const void *params, const mb_spec *arrays, int axis, mb_rows rows);
    /* How many rows of the result a kernel treats together, counted from the first. NULL: 1. */
    int64_t (*packet)(const void *params, const mb_spec *arrays, int axis, const mb_device *device);
    /* Makes the cut exact for these arguments; false: it cannot be made. NULL: it always can. */
    bool (*adapt)(const void *params, const mb_spec *arrays, mb_op_cut *cut);
    /* Changes the parameters of a piece that count rows of the axis, a copy of the call's. Lists
    ** that are not a part of the call's own go to `room`, MB_OP_ROOM numbers. NULL: none do. */
    void (*piece)(const mb_spec *arrays, int axis, mb_op_piece *piece, void *params, double *room);
} mb_op_split;

#define MB_OP_ROOM (3 * MB_MAX_RANK)

typedef struct mb_op mb_op;

/* Everything a kernel gets. Arrays are in the order of the descriptor's array arguments (NULL where
** absent). */
struct mb_op_call {
    const mb_op *op;
    const void *params;
    mb_device *device;
    mb_array *arrays[MB_OP_MAX_ARRAYS];
    void *slots[MB_PLAN_MAX_SLOTS]; /* NULL for a slot of 0 bytes */
    uint64_t slot_bytes[MB_PLAN_MAX_SLOTS];
    const mb_fft_plan *ffts[MB_PLAN_MAX_FFTS];
    void *stream; /* native compute stream */
};

struct mb_op {
    const char *name;
    const char *summary;   /* one line */
    const char *doc;       /* shapes, units, behavior at edges; paragraphs separated by "\n" */
    const char *reference; /* paper or formula, or NULL */
    const mb_op_arg *args;
    size_t arg_count;
    size_t params_bytes; /* size of the parameter structure */
    mb_op_strides strides;
    /* Which array argument (index among arrays) the first result may be identical to; -1: none. A
    ** result may otherwise not overlap an input. Bit mask: bit i set = may be the same array as
    ** array argument i. */
    unsigned alias;
    const mb_op_split *split; /* the axes that may be cut; NULL: see `uncut` */
    const char *uncut;        /* why it cannot be cut, half a sentence; NULL where it can */
    /* host against CUDA, relative to the largest magnitude of the result; 0: identical */
    double tolerance;
    /* Lua table texts: {inputs = {{"f32", 3, 5, 16}}, params = {...}} */
    const char *const *samples;
    size_t sample_count;

    /* Checks beyond the argument table and the specs of results. Inputs are filled in; outputs get
    ** dtype, shape and present = true (an output may be left absent). Pure. */
    mb_status (*infer)(const void *params, mb_spec *arrays);
    /* Declares scratch. NULL: none. Pure with respect to memory. */
    void (*plan)(const void *params, const mb_spec *arrays, mb_planner *planner);
    /* Polls mb_cancelled() every few milliseconds and skips the rest of its work when the flag is
    ** raised: the driver then fails, and nobody sees the result. */
    mb_op_kernel run_host;
};

typedef struct mb_op_estimate {
    uint64_t result_bytes;  /* rounded bytes of the results the driver would make */
    uint64_t scratch_bytes; /* the extent of the slots */
    uint64_t peak_bytes; /* growth of the pool's live bytes at the worst moment: the sum of both */
    int slot_count;
    mb_slot slots[MB_PLAN_MAX_SLOTS];
} mb_op_estimate;

/* An operator as the registry holds it: what every call needs of the descriptor, looked up once. */
typedef struct mb_operator {
    const mb_op *op;
    const char *category; /* its folder's name: "array", "fft", "tomography", ... */
    int number;           /* in the registry, and of its kernel on a device; -1: not registered */
    int required;         /* how many arguments must be given */
    int array_count;
    const mb_op_arg *arrays[MB_OP_MAX_ARRAYS]; /* its array arguments, in their order */
} mb_operator;

/* The registry, sorted by name. */
int mb_operator_count(void);
const mb_operator *mb_operator_at(int number);
const mb_operator *mb_operator_find(const char *name);
/* For an operator that is not in the registry, and so runs on the host alone. */
mb_operator mb_operator_of(const mb_op *op);
/* The operator's kernel on the device, or NULL. */
mb_op_kernel mb_operator_kernel(const mb_operator *entry, const mb_device *device);

static inline bool mb_op_is_array(const mb_op_arg *arg)
{
    return arg->kind == MB_ARG_IN || arg->kind == MB_ARG_OUT || arg->kind == MB_ARG_INOUT;
}
/* Behind the last argument. */
static inline const mb_op_arg *mb_op_args_end(const mb_op *op)
{
    return op->args + op->arg_count;
}
/* The argument of that name, or NULL. */
const mb_op_arg *mb_op_find_arg(const mb_op *op, const char *name);
/* The index of an array argument among the operator's array arguments. */
int mb_op_array_index(const mb_op *op, const mb_op_arg *arg);
/* The choices of an argument, for messages: "u8, u16, f32". */
const char *mb_op_choices(const mb_op_arg *arg, char list[400]);
/* Sets every member to its default. */
void mb_op_defaults(const mb_op *op, void *params);
/* Checks parameter ranges and array specs against the table, then infers results: after this every
** result spec that the operator will produce is present. */
mb_status mb_op_check(const mb_operator *entry, const void *params, mb_spec *arrays);
/* `given` marks results that the caller supplies (they cost nothing); may be NULL. `arrays` holds
** the input specs on entry and all specs on return. */
mb_status mb_op_estimate_memory(const mb_operator *entry, const void *params, mb_spec *arrays,
                                const bool *given, mb_device *device, mb_op_estimate *out);
/* Runs it. `arrays` holds inputs and given results; results that are NULL are made and stored
** there, owned by the caller. On failure nothing made here is left. */
mb_status mb_op_run(const mb_operator *entry, const void *params, mb_array **arrays,
                    mb_device *device, const char *owner);

#endif
