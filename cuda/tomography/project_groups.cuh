/*
** Which rays project's tensor-core kernel takes together (project_mma.cuh).
**
** Angles of nearly the same slope see the same places. Eight rays of a product are four neighboring
** bins at two angles; two products at a time share places: a group is four angles (quads), two
** (pairs), or one, where no other is near enough. The rays of a group that go together must keep
** within a window of 8 places along a whole strip of lines; some pairs do so along a part of one. A
** block takes groups of one kind whose windows fit into its stage.
*/
#ifndef MB_CUDA_PROJECT_GROUPS_CUH
#define MB_CUDA_PROJECT_GROUPS_CUH

#include "ops/tomography/op_project.h"
#include <stdlib.h>

#define PROJECT_STRIP MB_PROJECT_STRIP
#define PROJECT_TILE 32     /* bins of an angle that a block owns at most */
#define PROJECT_WINDOW 56   /* places of a line that a stage holds at most */
#define PROJECT_TOGETHER 16 /* angles of a block at most */

typedef mb_project_line_ray project_ray;
typedef mb_project_block project_block;

/* The sorts of groups: their angles, and the lines that they are added up along. */
static const struct project_sort {
    int size, lines;
} project_sorts[] = {{4, PROJECT_STRIP},
                     {2, PROJECT_STRIP},
                     {2, PROJECT_STRIP / 2},
                     {2, PROJECT_STRIP / 4},
                     {1, PROJECT_STRIP}};
#define PROJECT_SORTS (int)(sizeof project_sorts / sizeof *project_sorts)

/* The blocks of one sort of groups whose lines are rows, or columns. */
struct project_list {
    int first, count;
};

struct project_table {
    project_list lists[2][PROJECT_SORTS]; /* rows, columns */
    int blocks;
};

static inline bool project_by_rows(const mb_parallel_angle *a)
{
    return fabs(a->cosine) >= fabs(a->sine);
}

static inline project_ray project_ray_of(const mb_parallel_angle *a, int64_t index)
{
    const bool rows = project_by_rows(a);
    project_ray ray;
    ray.offset = a->offset;
    ray.cross = rows ? a->cosine : -a->sine;
    ray.along = rows ? -a->sine : a->cosine;
    ray.inverse = 1 / ray.cross;
    ray.slope = -ray.along / ray.cross;
    ray.index = index;
    return ray;
}

/* By kind, direction of the bins, slope and index. */
static int project_order(const void *a, const void *b)
{
    const project_ray *p = (const project_ray *)a, *q = (const project_ray *)b;
    if ((p->cross > 0) != (q->cross > 0))
        return p->cross > 0 ? -1 : 1;
    if (p->slope != q->slope)
        return p->slope < q->slope ? -1 : 1;
    return p->index < q->index ? -1 : 1;
}

static inline double project_reach(const project_ray *rays, int count)
{
    double most = 0;
    for (int i = 0; i < count; i++)
        most = fmax(most, fabs(rays[i].inverse));
    return most;
}

/* May these rays, in order, be a group? Four bins reach 2.5 bins from their middle; the bins of an
** angle begin at whole ones, so that its middle is up to half a bin from the group's (of two angles
** the second follows the first: a quarter). */
static bool project_fits(const project_ray *rays, int count, int lines)
{
    const project_ray *last = rays + count - 1;
    const double apart = count == 4   ? 0.5
                         : count == 2 ? 0.25
                                      : 0,
                 spread = fabs(fabs(last->inverse) - fabs(rays->inverse)),
                 turn = last->slope - rays->slope;
    if ((rays->cross > 0) != (last->cross > 0))
        return false;
    return (2.5 + apart) * project_reach(rays, count) + PROJECT_TILE / 4 * spread +
               lines / 4 * turn <=
           3.98;
}

/* Places of a line that a block of these rays needs. */
static double project_width(const project_ray *rays, int count)
{
    const double turn = rays[count - 1].slope - rays->slope;
    return (PROJECT_TILE - 4 + 1) * project_reach(rays, count) + 8 + PROJECT_STRIP / 2 * turn + 3;
}

/* The sort of the group that begins here, of `left` rays. */
static int project_group(const project_ray *rays, int left)
{
    int sort = 0;
    while (project_sorts[sort].size > 1 &&
           (left < project_sorts[sort].size ||
            !project_fits(rays, project_sorts[sort].size, project_sorts[sort].lines)))
        sort++;
    return sort;
}

static project_block project_block_of(const project_ray *rays, int first, int count, int size)
{
    project_block b;
    double most = 0;
    for (int i = 0; i < count; i++)
        most = fmax(most, fabs(rays[first + i].cross));
    b.first = first;
    b.angles = count;
    /* A tile's first bins, rounded, are no further apart than it owns. */
    b.step = (float)((PROJECT_TILE - (size == 2 ? 1.01 : 0.01)) / most);
    b.slope = (float)(0.5 * (rays[first].slope + rays[first + count - 1].slope));
    b.window = (int)ceil(project_width(rays + first, count));
    b.window += b.window % 2;
    return b;
}

/* Puts `count` sorted rays of one kind into blocks: their order becomes that of the blocks. `from`
** are the sorted rays, `rays` their new table. Returns how many there are in all. */
static int project_fill(const project_ray *from, int count, project_ray *rays,
                        project_block *blocks, project_list *lists, int made, int placed)
{
    for (int s = 0; s < PROJECT_SORTS; s++) {
        const int size = project_sorts[s].size,
                  most = size == 1 ? PROJECT_TOGETHER / 2 : PROJECT_TOGETHER;
        int begun = placed; /* where the block that grows begins */
        lists[s].first = made;
        for (int i = 0, group; i < count; i += group) {
            const int sort = project_group(from + i, count - i);
            group = project_sorts[sort].size;
            if (sort != s)
                continue;
            for (int k = 0; k < group; k++)
                rays[placed + k] = from[i + k];
            const int with = placed + group - begun;
            if (placed > begun &&
                (with > most || (rays[begun].cross > 0) != (rays[placed].cross > 0) ||
                 project_width(rays + begun, with) > PROJECT_WINDOW)) {
                blocks[made++] = project_block_of(rays, begun, placed - begun, size);
                begun = placed;
            }
            placed += group;
        }
        if (placed > begun)
            blocks[made++] = project_block_of(rays, begun, placed - begun, size);
        lists[s].count = made - lists[s].first;
    }
    return made;
}

/* The table of all angles: `rays` and `blocks` have room for as many; `sorted` is room as well. */
static project_table project_table_of(const mb_project_params *params,
                                      const mb_parallel_geometry *g, project_ray *sorted,
                                      project_ray *rays, project_block *blocks)
{
    project_table table = {};
    int rows = 0, columns = (int)g->angles;
    for (int64_t k = 0; k < g->angles; k++) {
        const mb_parallel_angle a = mb_project_angle(params, g, k);
        sorted[project_by_rows(&a) ? rows++ : --columns] = project_ray_of(&a, k);
    }
    qsort(sorted, (size_t)rows, sizeof *sorted, project_order);
    qsort(sorted + rows, (size_t)(g->angles - rows), sizeof *sorted, project_order);
    table.blocks = project_fill(sorted, rows, rays, blocks, table.lists[0], 0, 0);
    table.blocks = project_fill(sorted + rows, (int)g->angles - rows, rays, blocks, table.lists[1],
                                table.blocks, rows);
    return table;
}

#endif
