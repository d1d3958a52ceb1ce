/* The forecast of a trainer's step from the times in a machine's file. */
#include "trainer.h"

Status train_forecast(const Trainer *t, const char *path, Forecast *forecast)
{
    Machine machine;
    TRY(machine_read(&machine, path));
    int stages = t->shape.pp;
    Plan **plan = mem_new((size_t)stages * sizeof *plan);
    Status st = OK;
    for (int s = 0; st == OK && s < stages; ++s) st = train_plan_stage(t, s, &plan[s]);
    const ForecastOf of = {.schedule = trainer_schedule(t),
                           .plan = (const Plan *const *)plan,
                           .threads = t->backend->options.threads,
                           .from = path};
    if (st == OK && !t->backend->table->host_memory)
        st = fail(ERR_CONFIG, "%s: has times of CPUs, and this run is on GPUs", path);
    if (st == OK) st = machine_forecast(&machine, &of, forecast);
    for (int s = 0; s < stages; ++s) plan_free(&plan[s]);
    mem_free(&plan);
    machine_fini(&machine);
    return st;
}
