/* Measures, for weft bench machine, how much longer the tasks of a step take while sums between
 * nodes are in progress. All ranks alternately make a step without sums and a step during sums. */
#include "bench.h"

#include <math.h>

/* SUM_FLOATS: number of floats in a sum. SUMS_MAX: largest number of sums that are begun before a
 * step. */
enum { SUM_FLOATS = 1 << 20, SUMS_MAX = 10000 };

/* Makes a step. *seconds: time of the step's tasks, without waiting for other ranks. */
static Status time_tasks(Trainer *t, double *seconds)
{
    StepResult result;
    double before_s = phase_s(PHASE_FORWARD) + phase_s(PHASE_BACKWARD);
    TRY(train_step(t, &result));
    *seconds = phase_s(PHASE_FORWARD) + phase_s(PHASE_BACKWARD) - before_s;
    return OK;
}

/* Begins `sums` sums, makes a step, and waits for the sums. *seconds: time of the step's tasks. */
static Status time_tasks_during_sums(Trainer *t, Comm *comm, int sums, double *seconds)
{
    for (int i = 0; i < sums; ++i) comm_allreduce_begin(comm, 0, SUM_FLOATS);
    Status st = time_tasks(t, seconds);
    comm_wait(comm);
    return st;
}

/* Returns a number of sums that together take about twice as long as a step, so that sums are in
 * progress during all of the step. Makes two sums and times the second one, because connections are
 * opened in the first. step_s: time of a step on this rank. Collective; all ranks get the same
 * result. */
static int sums_of_step(const World *world, Comm *comm, double step_s)
{
    double begin_s = 0;
    for (int i = 0; i < 2; ++i) {
        world_barrier(world);
        begin_s = clock_s();
        comm_allreduce_begin(comm, 0, SUM_FLOATS);
        comm_wait(comm);
    }
    double sum_s = bench_max_ranks(world, clock_s() - begin_s);
    return (int)fmin(ceil(bench_max_ranks(world, 2 * step_s) / sum_s) + 1, SUMS_MAX);
}

/* Makes `steps` pairs of steps. alone_s: times of the tasks without sums, [steps]. during_s: times
 * of the tasks during sums, [steps]. Collective. */
static Status time_pairs(Trainer *t, const World *world, Comm *comm, int64_t steps, double *alone_s,
                         double *during_s)
{
    double begin_s = clock_s();
    TRY(status_agree(world, time_tasks(t, alone_s)));
    int sums = sums_of_step(world, comm, clock_s() - begin_s);
    for (int64_t i = 0; i < steps; ++i) {
        TRY(status_agree(world, time_tasks(t, &alone_s[i])));
        TRY(status_agree(world, time_tasks_during_sums(t, comm, sums, &during_s[i])));
    }
    return OK;
}

Status bench_measure_overlap(Trainer *t, const World *world, int64_t steps, Machine *machine)
{
    Comm *comm;
    TRY(comm_new(&comm, world, trainer_backend(t), TRANSPORT_AUTO, SUM_FLOATS));
    double *alone_s = mem_new((size_t)steps * sizeof *alone_s);
    double *during_s = mem_new((size_t)steps * sizeof *during_s);
    Status st = time_pairs(t, world, comm, steps, alone_s, during_s);
    if (st == OK) {
        double factor = median(during_s, (int)steps) / median(alone_s, (int)steps);
        const double mean = bench_sum_ranks(world, factor) / world->size;
        machine->overlap_compute = fmin(fmax(mean, 1), OVERLAP_MAX);
    }
    mem_free(&during_s);
    mem_free(&alone_s);
    comm_free(&comm);
    return st;
}
