/* Forecasts a trainer's step from the times in a machine's file, and the times of reading the
 * training set and of saving a checkpoint from the file's rates. */
#include "state/tensors.h"

#include <math.h>

char *train_settings_text(const Config *c)
{
    static const char *const precision[] = {PRECISION_WORDS(LIST_NAME)};
    char *text = mem_format("%s, cpu %s, update", precision[c->train.precision],
                            cpu_name((InstructionSet)c->train.cpu));
    for (int i = 0; i < optim_rule_count(c); ++i) {
        char *longer = mem_format("%s %s", text, optim_rule(c, i).table->word.word);
        mem_free(&text);
        text = longer;
    }
    char *whole = mem_format("%s%s%s", text, c->optim.clip > 0 ? " with clipping" : "",
                             c->train.ema > 0 ? " with EMA" : "");
    mem_free(&text);
    return whole;
}

/* Returns ERR_CONFIG if steps of this kind of run cannot be forecast: on GPUs, with servers, in
 * other modes than sync, or with MPI. path: path of the machine's file, for messages. */
static Status check(const Trainer *t, const char *path)
{
    const Config *c = t->config;
    if (!t->backend->table->host_memory)
        return fail(ERR_CONFIG, "%s: has times of CPUs, and this run is on GPUs", path);
    if (c->grid.servers > 0 || c->grid.mode != UPDATE_SYNC)
        return config_fail_key(c, c->grid.servers > 0 ? "grid.servers" : "grid.mode",
                               "there are no forecasts with servers, or of other modes than sync");
    if (c->grid.transport == TRANSPORT_MPI)
        return config_fail_key(c, "grid.transport",
                               "there are forecasts for shared memory only, not for mpi");
    return OK;
}

Status train_plans(const Trainer *t, Plan ***plan)
{
    Status st = OK;
    *plan = mem_new((size_t)t->shape.pp * sizeof **plan);
    for (int s = 0; st == OK && s < t->shape.pp; ++s) st = train_plan_stage(t, s, &(*plan)[s]);
    if (st != OK) train_plans_free(t, plan);
    return st;
}

void train_plans_free(const Trainer *t, Plan ***plan)
{
    for (int s = 0; *plan && s < t->shape.pp; ++s) plan_free(&(*plan)[s]);
    mem_free(plan);
}

/* Describes the run for machine_forecast. setup: the result of train_settings_text. */
static ForecastInput forecast_of(const Trainer *t, const Plan *const *plan,
                                 const ForecastMachine *by, const char *setup)
{
    return (ForecastInput){.schedule = trainer_schedule(t),
                           .plan = plan,
                           .threads = t->backend->options.threads,
                           .setup = setup,
                           .sums = (SumAlgorithm)t->config->grid.sums,
                           .median_only = by->median_only,
                           .path = by->path};
}

Status train_forecast(const Trainer *t, const Plan *const *plan, const ForecastMachine *by,
                      Forecast *forecast)
{
    TRY(check(t, by->path));
    char *setup = train_settings_text(t->config);
    const ForecastInput input = forecast_of(t, plan, by, setup);
    Status st = machine_forecast(by->machine, &input, forecast);
    mem_free(&setup);
    return st;
}

/* Adds the bytes of a checkpoint to *all. Raises *node_most to the bytes of the node whose ranks
 * write the most of it; a node has node_ranks ranks. */
static void checkpoint_bytes(const Trainer *t, int node_ranks, double *all, double *node_most)
{
    Tensors list;
    int ranks = t->shape.dp * t->shape.pp * t->shape.tp;
    double *node = mem_new((size_t)(ranks / node_ranks + 1) * sizeof *node);
    tensors_init(&list, t, t->plan, false);
    int *owner = mem_new((size_t)(list.count + 1) * sizeof *owner);
    checkpoint_owners(&(CheckpointIo){.tensor = list.tensor, .count = list.count}, ranks, owner);
    for (int i = 0; i < list.count; ++i) {
        double bytes = (double)shape_count(list.tensor[i].shape) * sizeof(float);
        *all += bytes;
        node[owner[i] / node_ranks] += bytes;
    }
    for (int i = 0; i <= ranks / node_ranks; ++i) *node_most = fmax(*node_most, node[i]);
    mem_free(&owner);
    tensors_fini(&list);
    mem_free(&node);
}

FileForecast train_file_forecast(const Trainer *t, const Machine *m)
{
    FileForecast f = {0};
    const DataSet *set = &t->train_set;
    double readers = t->shape.dp * t->shape.tp, node_most = 0;
    if (m->read_bytes_per_s == 0) return f;
    f.read_bytes = data_set_file_bytes(set) / (double)set->samples *
                   (double)trainer_sizes(t).batch * fmin(m->ranks, readers) / readers;
    f.read_s = f.read_bytes / m->read_bytes_per_s;
    if (t->graph->table_count > 0) return f;
    checkpoint_bytes(t, m->ranks, &f.save_bytes, &node_most);
    f.save_s = node_most / m->save_bytes_per_s;
    return f;
}

/* Sets the seconds of those parts of an operation that an action runs. */
static Status action_part_times(const ForecastInput *input, const Machine *machine,
                                const ChunkPlan *chunk, const Action *a, PartSeconds *seconds)
{
    const ActionParts parts = action_parts(chunk, a);
    for (int p = 0; p < OPERATION_PART_COUNT; ++p) {
        if (!parts.part[p]) continue;
        int node = chunk->run[a->index].node;
        const Op *op = input->plan[0]->graph->node[node].op;
        TRY(machine_part_s(machine, input, op, (OperationPart)p, &seconds[node].s[p]));
    }
    return OK;
}

static Status chunk_part_times(const ForecastInput *input, const Machine *machine,
                               const ChunkPlan *chunk, PartSeconds *seconds)
{
    for (int p = 0; p < PASSES; ++p)
        for (int i = 0; i < chunk->pass[p].count; ++i)
            TRY(action_part_times(input, machine, chunk, &chunk->pass[p].action[i], seconds));
    return OK;
}

Status train_part_times(const Trainer *t, const ForecastMachine *by, PartSeconds **seconds)
{
    const Plan *plan = t->plan;
    const ForecastInput input = forecast_of(t, &plan, by, "");
    Status st = OK;
    *seconds = mem_new((size_t)t->graph->node_count * sizeof **seconds);
    for (int c = 0; st == OK && c < plan->chunk_count; ++c)
        st = chunk_part_times(&input, by->machine, &plan->chunk[c], *seconds);
    if (st != OK) mem_free(seconds);
    return st;
}
