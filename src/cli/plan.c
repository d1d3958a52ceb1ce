/* weft plan: the layers, the memory and the actions of a run on one rank: the very objects that training executes. */
#include "private.h"

#include "train.h"

static void json_count(FILE *out, const char *key, double value)
{
    fprintf(out, ", \"%s\": ", key);
    json_number(out, value);
}

static void print_json(const Trainer *t, FILE *out)
{
    const Plan *p = t->plan;
    fputs("{\"model\": ", out);
    json_text(out, *t->config->model.name ? t->config->model.name : "layers");
    json_count(out, "layers", t->graph->node_count);
    json_count(out, "parameters", (double)graph_param_count(t->graph));
    json_count(out, "forward_macs", graph_forward_macs(t->graph));
    json_count(out, "classes", (double)t->graph->classes);
    json_count(out, "batch", (double)t->batch);
    json_count(out, "micro_batch", (double)t->micro_batch);
    json_count(out, "micro_batches", t->micros);
    json_count(out, "steps_per_epoch", (double)t->steps_per_epoch);
    json_count(out, "steps", (double)t->steps);
    json_count(out, "threads", t->backend->options.threads);
    json_count(out, "param_bytes", (double)p->param_bytes);
    json_count(out, "gradient_bytes", (double)(p->gradient_bytes * p->sum_levels));
    json_count(out, "optim_bytes", (double)optim_state_bytes(t->optim));
    json_count(out, "activation_bytes", (double)p->activation_bytes);
    json_count(out, "cache_bytes", (double)p->cache_bytes);
    json_count(out, "workspace_bytes", (double)p->workspace_bytes);
    json_count(out, "actions", p->action_count);
    json_count(out, "buckets", p->buckets.count);
    fputs("}\n", out);
}

static void print_text(const Trainer *t, FILE *out)
{
    char text[16];
    graph_print(t->graph, out);
    fprintf(out, "\n");
    plan_print(t->plan, out);
    fprintf(out, "optimizer's state %s\n", text_bytes((double)optim_state_bytes(t->optim), text));
    fprintf(out,
            "a step: %lld samples in %d micro-batches of %lld; %lld steps, %lld an epoch; "
            "%d threads on %s\n",
            (long long)t->batch, t->micros, (long long)t->micro_batch, (long long)t->steps,
            (long long)t->steps_per_epoch, t->backend->options.threads, t->backend->table->name);
}

Status verb_plan(int argc, char **argv)
{
    Job job;
    Trainer *trainer = NULL;
    bool json = false;
    const Flag flags[] = {{"--json", NULL, &json}};
    TRY(flags_take(&argc, argv, flags, 1));
    Status status = job_open(&job, argc, argv);
    if (status == OK) {
        job.config->grid.dp = 0; /* the plan of these ranks, whatever grid is to train */
        status = trainer_new(&trainer, job.config, &job.world);
    }
    if (status == OK && job.world.rank == 0) (json ? print_json : print_text)(trainer, stdout);
    trainer_free(&trainer);
    return job_close(&job, status);
}
