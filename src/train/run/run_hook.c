/* The hook of a run: notifies it of events, and carries out its requests. Only rank 0 receives
 * requests. A flag in the metrics of a step tells all ranks that there is a request. Rank 0 then
 * broadcasts it between two steps, so that all ranks carry it out after the same step. */
#include "../step/position.h"
#include "run.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

void run_hook_begin(Run *r)
{
    const Config *c = r->config;
    if (r->world->rank == 0 && *c->run.hook) r->hook = hook_new(c->run.hook, c->run.hook_s);
}

/* ---- events ---- */

/* Writes the results of the last evaluation; NaN, written as null, if there was none. */
static void put_evaluation(const Run *r, Json *json)
{
    const char *auc = train_auc_kind(r->config);
    EvalLine none = {.loss = NAN,
                     .top1 = NAN,
                     .top5 = NAN,
                     .auc_kind = auc,
                     .auc = NAN,
                     .normalized_entropy = NAN,
                     .calibration = NAN,
                     .has_boxes = loss_info(r->config)->reads == LOSS_READS_BOXES};
    for (int i = 0; i < COCO_NUMBERS; ++i) none.coco[i] = NAN;
    for (int i = 0; i < LOSS_PARTS; ++i) none.part[i] = NAN;
    const EvalLine *e = r->summary.eval.samples > 0 ? &r->summary.eval : &none;
    const BestMetric *metric = trainer_metric(r->trainer);
    double best = r->trainer->best_metric;
    json_real(json, "eval_loss", e->loss);
    json_real(json, "top1", e->top1);
    json_real(json, "top5", e->top5);
    eval_put_metrics(e, json);
    json_text(json, "best_metric", metric->word.word);
    json_real(json, "best", metric->better == BETTER_LARGE ? best : -best);
}

/* Writes the last step's statistics; NaN, written as null, if there was no step. */
static void put_step(const Run *r, Json *json)
{
    const Trainer *t = r->trainer;
    const StepStats *s = &t->step_stats;
    const bool made = !isnan(r->lr);
    const int top = made ? loss_top_k(loss_info(r->config)) : 0;
    json_int(json, "step", t->step);
    json_int(json, "steps", t->steps);
    json_int(json, "epoch", position_last_epoch(t, t->step));
    json_real(json, "loss", made ? s->loss : (double)NAN);
    json_real(json, "train_top1", top >= 1 ? s->top1 : (double)NAN);
    json_real(json, "train_top5", top >= 5 ? s->top5 : (double)NAN);
    json_real(json, "lr", r->lr);
    json_real(json, "optim_lr", lr_base(r->config, &t->lr));
}

/* Returns the event's JSON object as one line. Owner: the caller, with free. */
static char *event_line(const Run *r, HookEvent event)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) die("out of memory for a line of the hook");
    Json json = json_to(out, true);
    json_object(&json, NULL);
    json_text(&json, "run", r->config->run.name);
    json_text(&json, "dir", r->dir.path);
    json_text(&json, "moment", hook_event_word((int)event));
    put_step(r, &json);
    put_evaluation(r, &json);
    json_text(&json, "checkpoint", r->newest_path);
    json_text(&json, "best_checkpoint", access(r->dir.best, R_OK) == 0 ? r->dir.best : NULL);
    if (event == HOOK_END)
        json_text(&json, "ended", r->stopped ? "stopped" : r->ended ? "early" : "done");
    json_end(&json);
    fclose(out);
    return text;
}

bool run_hook_wants(const Run *r, HookEvent event)
{
    const Config *c = r->config;
    return *c->run.hook && (!c->run.hook_on || c->run.hook_on & 1 << event);
}

void run_hook_notify(Run *r, HookEvent event)
{
    if (!r->hook || !run_hook_wants(r, event)) return;
    char *line = event_line(r, event);
    observer_end_line(r->observer);
    hook_notify(r->hook, event, r->trainer->step, line);
    free(line);
}

/* ---- requests ---- */

bool run_hook_has_request(Run *r)
{
    if (!r->hook) return false;
    hook_poll(r->hook);
    return hook_has_request(r->hook);
}

/* Broadcasts rank 0's request, and merges it into r->request. */
static void broadcast_request(Run *r)
{
    HookRequest request = {0};
    if (r->hook) (void)hook_take_request(r->hook, &request);
    world_bcast(r->world, &request, sizeof request, 0);
    hook_request_merge(&r->request, &request);
}

static bool changes_lr(const Run *r, const HookRequest *request)
{
    return request->lr > 0 && request->lr != lr_base(r->config, &r->trainer->lr);
}

static bool has_effect(const Run *r, const HookRequest *request)
{
    return request->stop || request->save || changes_lr(r, request);
}

bool run_hook_receive(Run *r, const StepResult *result)
{
    if (result->hook_requested) broadcast_request(r);
    return has_effect(r, &r->request) && !run_repeats(r);
}

void run_hook_carry_out(Run *r)
{
    Trainer *t = r->trainer;
    if (run_repeats(r)) return;
    const HookRequest request = r->request;
    bool new_lr = changes_lr(r, &request);
    r->request = (HookRequest){0};
    if (!has_effect(r, &request)) return;
    observer_end_line(r->observer);
    DecisionLine line = {.step = t->step,
                         .epoch = position_after(t, t->step).epoch,
                         .event = "hook",
                         .stop = request.stop,
                         .save = request.save,
                         .lr = new_lr ? request.lr : 0};
    observer_decision(r->observer, &line);
    if (new_lr) {
        log_info("step %lld: run.hook requests optim.lr %.9g, from the next step on",
                 (long long)t->step, request.lr);
        t->lr.lr = request.lr;
    }
    if (request.stop) {
        t->hook_stop = true;
        run_end_early(r, "run.hook requested it after step %lld", (long long)t->step);
    }
    /* A checkpoint is saved even if only the learning rate changes: if steps after this one are
     * repeated, they must begin with the new rate. */
    r->save_requested = true;
}

void run_hook_wait(Run *r)
{
    if (r->hook) hook_wait(r->hook);
    broadcast_request(r);
    run_hook_carry_out(r);
}

void run_hook_end(Run *r)
{
    HookRequest request;
    if (!r->hook) return;
    observer_end_line(r->observer);
    hook_wait(r->hook);
    run_hook_notify(r, HOOK_END);
    hook_wait(r->hook);
    if (hook_take_request(r->hook, &request))
        log_info("a request of run.hook came after the last step, too late to be carried out");
}
