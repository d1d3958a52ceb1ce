/* Checks each stage's list separately: every task occurs exactly once, on the stage of its chunk,
 * and after the tasks of this stage that it needs. Backward passes of a chunk are in the order of
 * the micro-batches. Errors that show only in several lists together are found by simulate.c. */
#include "private.h"

#include <string.h>

/* Bits for the tasks that have been done for one chunk and micro-batch. */
enum {
    DID_FORWARD = 1,
    DID_DATA = 2,
    DID_WEIGHT = 4,
    GOT_INPUT = 8,
    GOT_GRADIENT = 16,
    SENT_OUTPUT = 32,
    SENT_GRADIENT = 64,
    /* number of bits */
    DID_BITS = 7
};
/* the effect of each kind of task */
static const struct {
    /* bits that must be set before the task, if they are among the duties of its chunk
     * (chunk_duties) */
    int needs;
    /* bits that the task sets */
    int sets;
} rules[TASK_KINDS] = {
    [TASK_FORWARD] = {GOT_INPUT, DID_FORWARD},
    [TASK_BACKWARD] = {DID_FORWARD | GOT_GRADIENT, DID_DATA | DID_WEIGHT},
    [TASK_BACKWARD_DATA] = {DID_FORWARD | GOT_GRADIENT, DID_DATA},
    [TASK_BACKWARD_WEIGHT] = {DID_DATA, DID_WEIGHT},
    [TASK_SEND_FORWARD] = {DID_FORWARD, SENT_OUTPUT},
    [TASK_RECEIVE_FORWARD] = {0, GOT_INPUT},
    [TASK_SEND_BACKWARD] = {DID_DATA, SENT_GRADIENT},
    [TASK_RECEIVE_BACKWARD] = {0, GOT_GRADIENT},
};
/* the kind of task that sets each bit, by the bit's number */
static const TaskKind task_of_bit[DID_BITS] = {
    TASK_FORWARD,          TASK_BACKWARD_DATA, TASK_BACKWARD_WEIGHT, TASK_RECEIVE_FORWARD,
    TASK_RECEIVE_BACKWARD, TASK_SEND_FORWARD,  TASK_SEND_BACKWARD,
};

typedef struct Check {
    const Schedule *schedule;
    int stage;
    /* tasks that have been done (DID_FORWARD, ...) for each chunk of the stage and each
     * micro-batch, [chunks][micro_batches]; owned */
    uint8_t *did;
    /* number of backwards or data halves so far of each chunk of the stage, [chunks]; owned. The
     * next one must be that of the micro-batch with this number. */
    int *backwards;
    /* number of backwards or weight halves so far of each chunk of the stage, [chunks]; owned. The
     * next one must be that of the micro-batch with this number. */
    int *weights;
    /* number of live micro-batches of each chunk of the stage, [chunks]; owned */
    int *live;
    /* largest number of live micro-batches so far of each chunk of the model; borrowed */
    int *most_live;
} Check;

char *task_text(const Schedule *schedule, int stage, int index, char *out)
{
    Task t = schedule->task[stage][index];
    bool known = (int)t.kind >= 0 && t.kind < TASK_KINDS;
    snprintf(out, TASK_TEXT, "task %d of %d (%s, chunk %d, micro %d)", index + 1,
             schedule->count[stage], known ? task_names[t.kind] : "unknown", t.chunk, t.micro);
    return out;
}

Status task_fail(const Schedule *schedule, int stage, int index, const char *what)
{
    char text[TASK_TEXT];
    return fail(ERR_CONFIG, "schedule %s: stage %d, %s: %s", schedule->name, stage,
                task_text(schedule, stage, index, text), what);
}

/* Returns the bits that a chunk must have for each micro-batch at the end of the list. The bits of
 * a message are among them only if the neighbouring chunk is on another stage. */
static int chunk_duties(const Schedule *s, int chunk)
{
    bool before = schedule_crosses(s, chunk - 1), after = schedule_crosses(s, chunk);
    int duties = DID_FORWARD | (before ? GOT_INPUT : 0) | (after ? SENT_OUTPUT : 0);
    if (schedule_is_forward(s)) return duties;
    return duties | DID_DATA | DID_WEIGHT | (before ? SENT_GRADIENT : 0) |
           (after ? GOT_GRADIENT : 0);
}

/* Returns a pointer to the bits of a chunk for a micro-batch. chunk: its number in the model. */
static uint8_t *did_at(const Check *c, int chunk, int micro)
{
    size_t local = (size_t)schedule_index_on_stage(c->schedule, chunk);
    return c->did + local * (size_t)c->schedule->shape.micro_batches + micro;
}

/* Returns a text that says why the task cannot be in this stage's list; NULL: it can. */
static const char *task_fault(const Check *c, Task t)
{
    const ScheduleShape shape = c->schedule->shape;
    if ((int)t.kind < 0 || t.kind >= TASK_KINDS) return "there is no such task";
    if (t.chunk < 0 || t.chunk >= schedule_chunks(c->schedule) || t.micro < 0 ||
        t.micro >= shape.micro_batches)
        return "the model has no such chunk, or the step no such micro-batch";
    if (schedule_stage(c->schedule, t.chunk) != c->stage) return "this chunk is on another stage";
    if (rules[t.kind].sets & ~chunk_duties(c->schedule, t.chunk))
        return task_is_message(t.kind)
                   ? "there is no such message: the neighbouring chunk is on this stage, or "
                     "does not exist"
                   : "a schedule for evaluation has no backward passes";
    return NULL;
}

/* Returns false if the task needs a result of the neighbouring chunk on the same stage, and that
 * chunk has not computed it yet. Results of chunks on other stages are checked as messages. */
static bool neighbour_ready(const Check *c, Task t)
{
    const Schedule *s = c->schedule;
    if (t.kind == TASK_FORWARD)
        return !schedule_shares_stage(s, t.chunk - 1) ||
               *did_at(c, t.chunk - 1, t.micro) & DID_FORWARD;
    bool data = rules[t.kind].sets & DID_DATA;
    return !data || !schedule_shares_stage(s, t.chunk) ||
           *did_at(c, t.chunk + 1, t.micro) & DID_DATA;
}

/* Returns a text that says why the task cannot come next in the list; NULL: it can. */
static const char *order_fault(const Check *c, Task t)
{
    int sets = rules[t.kind].sets, did = *did_at(c, t.chunk, t.micro);
    int needs = rules[t.kind].needs & chunk_duties(c->schedule, t.chunk);
    int local = schedule_index_on_stage(c->schedule, t.chunk);
    if (did & sets) return "repeats an earlier task, or half of it";
    if (needs & ~did & DID_FORWARD) return "comes before the forward pass that it needs";
    if (needs & ~did & DID_DATA) return "comes before the backward pass (backward_data) it needs";
    if (needs & ~did || !neighbour_ready(c, t))
        return "comes before its inputs exist on this stage";
    if ((sets & DID_DATA && c->backwards[local] != t.micro) ||
        (sets & DID_WEIGHT && c->weights[local] != t.micro))
        return "backward passes of a chunk must be in the order of the micro-batches";
    return NULL;
}

/* Records that the task has been done. */
static void apply(Check *c, Task t)
{
    int sets = rules[t.kind].sets, local = schedule_index_on_stage(c->schedule, t.chunk);
    *did_at(c, t.chunk, t.micro) |= (uint8_t)sets;
    c->backwards[local] += (sets & DID_DATA) != 0;
    c->weights[local] += (sets & DID_WEIGHT) != 0;
    c->live[local] += (sets & DID_FORWARD) != 0;
    if (c->live[local] > c->most_live[t.chunk]) c->most_live[t.chunk] = c->live[local];
    c->live[local] -= sets & DID_WEIGHT || (sets & DID_FORWARD && schedule_is_forward(c->schedule));
}

/* Fails with a message that names the first of the missing tasks. missing: their bits. */
static Status fail_missing(const Check *c, int chunk, int micro, int missing)
{
    int bit = 0;
    while (!(missing >> bit & 1)) ++bit;
    bool whole = (missing & DID_DATA) && (missing & DID_WEIGHT) && !c->schedule->split;
    TaskKind kind =
        task_of_bit[bit] == TASK_BACKWARD_DATA && whole ? TASK_BACKWARD : task_of_bit[bit];
    return fail(ERR_CONFIG, "schedule %s: stage %d: its %d tasks lack %s of chunk %d, micro %d",
                c->schedule->name, c->stage, c->schedule->count[c->stage], task_names[kind], chunk,
                micro);
}

static Status check_end(const Check *c)
{
    const ScheduleShape shape = c->schedule->shape;
    for (int local = 0; local < shape.chunks_per_stage; ++local) {
        int chunk = schedule_chunk(c->schedule, c->stage, local);
        int duties = chunk_duties(c->schedule, chunk);
        for (int micro = 0; micro < shape.micro_batches; ++micro) {
            int missing = duties & ~*did_at(c, chunk, micro);
            if (missing) return fail_missing(c, chunk, micro, missing);
        }
    }
    return OK;
}

static Status check_stage(Check *c)
{
    const Schedule *s = c->schedule;
    size_t chunks = (size_t)s->shape.chunks_per_stage;
    memset(c->did, 0, chunks * (size_t)s->shape.micro_batches);
    memset(c->backwards, 0, chunks * sizeof *c->backwards);
    memset(c->weights, 0, chunks * sizeof *c->weights);
    memset(c->live, 0, chunks * sizeof *c->live);
    for (int i = 0; i < s->count[c->stage]; ++i) {
        Task t = s->task[c->stage][i];
        const char *fault = task_fault(c, t);
        if (!fault) fault = order_fault(c, t);
        if (fault) return task_fail(s, c->stage, i, fault);
        apply(c, t);
    }
    return check_end(c);
}

Status schedule_check(const Schedule *schedule, int *live)
{
    size_t chunks = (size_t)schedule->shape.chunks_per_stage;
    Check c = {.schedule = schedule,
               .did = mem_new(chunks * (size_t)schedule->shape.micro_batches),
               .backwards = mem_new(chunks * sizeof(int)),
               .weights = mem_new(chunks * sizeof(int)),
               .live = mem_new(chunks * sizeof(int)),
               .most_live = live};
    Status st = OK;
    for (; st == OK && c.stage < schedule->shape.stages; ++c.stage) st = check_stage(&c);
    mem_free(&c.did);
    mem_free(&c.backwards);
    mem_free(&c.weights);
    mem_free(&c.live);
    return st;
}
