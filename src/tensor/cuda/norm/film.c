/* The operation film on channels-last images. The sums for the gradient of the second input are
 * computed before dx, which may be in dy's memory. */
#include "../cuda.h"

static Status film_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    if (!cuda_inputs_fit(op, preferred)) return OK;
    s->y = cuda_desc(op, s->y.shape);
    const int64_t *y = s->y.shape.dim;
    const int64_t parts = cuda_sum_parts(s->y.dtype, y[2] * y[3], y[1]);
    op->workspace_bytes = (size_t)(2 * parts * y[0] * y[1]) * sizeof(double);
    op->needs_x[0] = op->needs_x[1] = op->dx_inplace = true;
    return OK;
}

static FilmRun film_run(const Op *op, const OpRun *run)
{
    const int64_t *y = op->spec.y.shape.dim;
    return (FilmRun){.type = op->spec.y.dtype,
                     .x = run->x[0],
                     .by = run->x[1],
                     .dy = run->dy,
                     .y = run->y,
                     .dx = run->dx[0],
                     .dby = run->dx[1],
                     .partial = run->workspace,
                     .samples = y[0],
                     .real = run->sample_count,
                     .pixels = y[2] * y[3],
                     .channels = y[1]};
}

static void film_forward(Op *op, const OpRun *run)
{
    cuda_check(launch_film(cuda_stream(op), film_run(op, run)), "kernel film");
}

static void film_backward_data(Op *op, const OpRun *run)
{
    const FilmRun film = film_run(op, run);
    if (film.dby) cuda_check(launch_film_sums(cuda_stream(op), film), "kernel film_sums");
    if (film.dx) cuda_check(launch_film_data(cuda_stream(op), film), "kernel film_data");
}

const OpTable cuda_film = {
    .name = "film",
    .plan = film_plan,
    .forward = film_forward,
    .backward_data = film_backward_data,
};
