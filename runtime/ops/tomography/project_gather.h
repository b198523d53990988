/*
** The inner loop of the host's project, as a template: project_host.c includes it once per
** instruction set, with
**   NAME       the function to define
**   TARGET     its attribute, and INNER that of what it is made of
**   ADD        (window, places, weights, sums): adds the three candidates of 16 bins
** Every instance does the same arithmetic in the same order, for any number of slices.
*/

/* Adds the lines of a strip to `cols` bins of one angle. */
INNER
__attribute__((always_inline)) static inline void GATHER(NAME)(int slices, bool distance,
                                                               const strip *s,
                                                               const mb_project_path *p,
                                                               float *const *rows, int64_t cols)
{
    const mb_parallel_shadow shadow = mb_parallel_shadow_of(p->cross, p->cross);
    const int32_t last = p->drifts[s->lines - 1], least = last < 0 ? last : 0,
                  most = last > 0 ? last : 0;
    for (int64_t bin = 0; bin < cols; bin += BINS) {
        const int64_t count = cols - bin < BINS ? cols - bin : BINS;
        const double at = p->start + (double)bin * p->inverse + (double)s->first * p->slope;
        const int64_t base = (int64_t)floor(at) + 1;
        const int32_t part = (int32_t)((at - floor(at)) * ONE);
        _Alignas(64) float sums[MB_PROJECT_WIDE][BINS] = {{0}};
        if (base + ((part + p->most + most) >> BITS) + 2 < s->low ||
            base + ((part + p->least + least) >> BITS) > s->high)
            continue;
        for (int z = 0; z < slices; z++)
            copy_bins(sums[z], rows[z] + bin, count);
        for (int line = 0; line < s->lines; line++) {
            _Alignas(64) int32_t places[BINS];
            _Alignas(64) float weights[3][BINS];
            const int32_t whole = (part + p->least + p->drifts[line]) >> BITS;
            const float *window = s->data + line * s->pitch + clamp(base + whole, s->across);
            locate(p, part + p->drifts[line] - whole * (1 << BITS), places, weights);
            if (distance)
                by_distance(shadow, weights);
            for (int z = 0; z < slices; z++, window += s->slice)
                ADD(window, places, weights, sums[z]);
        }
        for (int z = 0; z < slices; z++)
            copy_bins(rows[z] + bin, sums[z], count);
    }
}

TARGET
static void NAME(bool wide, bool distance, const strip *s, const mb_project_path *p,
                 float *const *rows, int64_t cols)
{
    if (wide && distance)
        GATHER(NAME)(MB_PROJECT_WIDE, true, s, p, rows, cols);
    else if (wide)
        GATHER(NAME)(MB_PROJECT_WIDE, false, s, p, rows, cols);
    else if (distance)
        GATHER(NAME)(1, true, s, p, rows, cols);
    else
        GATHER(NAME)(1, false, s, p, rows, cols);
}

#undef NAME
#undef TARGET
#undef INNER
#undef ADD
