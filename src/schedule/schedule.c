/* Makes a schedule: maps chunks to stages, and makes the lists of all stages with the functions of
 * the kind's ScheduleForm. A shape that the kind does not support is an error, and so are lists
 * whose length does not fit an int. */
#include "private.h"
#include "schedules.def"

#include <limits.h>
#include <string.h>

const char *const task_names[TASK_KINDS] = {
    "forward",      "backward",        "backward_data", "backward_weight",
    "send_forward", "receive_forward", "send_backward", "receive_backward",
};

#define DECLARE(id, name, word, least, usual, most, help)                                          \
    extern const ScheduleForm schedule_form_##name;
#define ENTRY(id, name, word, least, usual, most, help) {&schedule_form_##name, word, least, most},
SCHEDULES(DECLARE)
static const struct {
    const ScheduleForm *form;
    /* value of grid.pipeline_schedule: "1f1b" */
    const char *word;
    /* smallest number of chunks per stage */
    int least;
    /* largest number of chunks per stage */
    int most;
} kinds[] = {SCHEDULES(ENTRY)};
_Static_assert(sizeof kinds / sizeof kinds[0] == SCHEDULE_KINDS, "a row each");
static const char forward_name[] = "forward", file_name[] = "file";

bool schedule_is_forward(const Schedule *schedule)
{
    return strcmp(schedule->name, forward_name) == 0;
}

void list_add(TaskList *list, TaskKind kind, int chunk, int micro)
{
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 64;
        list->task = mem_resize(list->task, (size_t)list->capacity * sizeof *list->task);
    }
    list->task[list->count++] = (Task){kind, chunk, micro};
}

void list_add_work(TaskList *list, const Schedule *s, TaskKind kind, int chunk, int micro)
{
    bool before = schedule_crosses(s, chunk - 1), after = schedule_crosses(s, chunk);
    bool forward = kind == TASK_FORWARD, weight = kind == TASK_BACKWARD_WEIGHT;
    if (forward && before) list_add(list, TASK_RECEIVE_FORWARD, chunk, micro);
    if (!forward && !weight && after) list_add(list, TASK_RECEIVE_BACKWARD, chunk, micro);
    list_add(list, kind, chunk, micro);
    if (forward && after) list_add(list, TASK_SEND_FORWARD, chunk, micro);
    if (!forward && !weight && before) list_add(list, TASK_SEND_BACKWARD, chunk, micro);
}

/* Refuses shapes with a number below 1, and shapes that would overflow an int. A list has at most 7
 * tasks for each chunk and micro-batch, and list_add reserves memory for up to twice that
 * number. */
static Status shape_check(const char *name, ScheduleShape shape)
{
    if (shape.stages < 1 || shape.chunks_per_stage < 1 || shape.micro_batches < 1)
        return fail(ERR_CONFIG,
                    "schedule %s: %d stages of %d chunks and %d micro-batches; each must be "
                    "at least 1",
                    name, shape.stages, shape.chunks_per_stage, shape.micro_batches);
    if (shape.stages > INT_MAX / 4 / shape.chunks_per_stage ||
        shape.micro_batches > INT_MAX / 14 / shape.chunks_per_stage)
        return fail(ERR_CONFIG,
                    "schedule %s: %d stages of %d chunks and %d micro-batches are too many; "
                    "use larger micro-batches or fewer chunks",
                    name, shape.stages, shape.chunks_per_stage, shape.micro_batches);
    return OK;
}

int stage_round(ScheduleShape shape, int chunk)
{
    return chunk % shape.stages;
}

static Schedule *schedule_empty(const char *name, ScheduleShape shape)
{
    size_t chunks = (size_t)shape.stages * (size_t)shape.chunks_per_stage;
    Schedule *s = mem_new(sizeof *s);
    s->shape = shape;
    s->name = name;
    s->stage_of = mem_new(chunks * sizeof *s->stage_of);
    s->index_on_stage = mem_new(chunks * sizeof *s->index_on_stage);
    s->chunk_at = mem_new(chunks * sizeof *s->chunk_at);
    s->count = mem_new((size_t)shape.stages * sizeof *s->count);
    s->task = mem_new((size_t)shape.stages * sizeof *s->task);
    return s;
}

/* Sets index_on_stage and chunk_at from stage_of. ERR_CONFIG: a stage has more than
 * chunks_per_stage chunks. */
static Status set_chunks(Schedule *s)
{
    ScheduleShape shape = s->shape;
    int *have = mem_new((size_t)shape.stages * sizeof *have), chunk = 0, stage = 0;
    for (; chunk < schedule_chunks(s); ++chunk) {
        stage = s->stage_of[chunk];
        if (have[stage] == shape.chunks_per_stage) break;
        s->index_on_stage[chunk] = have[stage];
        s->chunk_at[stage * shape.chunks_per_stage + have[stage]++] = chunk;
    }
    mem_free(&have);
    if (chunk == schedule_chunks(s)) return OK;
    return fail(ERR_CONFIG,
                "schedule %s: stage %d gets more than %d chunk%s, the number that each stage has",
                s->name, stage, shape.chunks_per_stage, shape.chunks_per_stage == 1 ? "" : "s");
}

static bool is_half(TaskKind kind)
{
    return kind == TASK_BACKWARD_DATA || kind == TASK_BACKWARD_WEIGHT;
}

/* Moves the list into the schedule. If the schedule is split, each TASK_BACKWARD, which only a list
 * from a file can have, is replaced by its data half and its weight half, one after the other. */
static void set_list(Schedule *s, int stage, TaskList *list)
{
    TaskList halves = {0};
    for (int i = 0; s->split && i < list->count; ++i) {
        Task t = list->task[i];
        bool whole = t.kind == TASK_BACKWARD;
        list_add(&halves, whole ? TASK_BACKWARD_DATA : t.kind, t.chunk, t.micro);
        if (whole) list_add(&halves, TASK_BACKWARD_WEIGHT, t.chunk, t.micro);
    }
    if (s->split) mem_free(&list->task);
    if (s->split) *list = halves;
    s->count[stage] = list->count;
    s->task[stage] = list->task;
}

static Status fill_from_file(Schedule *s, const ScheduleForm *form, TaskList *list,
                             const char *path)
{
    TRY(form->read(list, path, s));
    TRY(set_chunks(s));
    for (int stage = 0; stage < s->shape.stages; ++stage)
        for (int i = 0; i < list[stage].count; ++i)
            s->split = s->split || is_half(list[stage].task[i].kind);
    return OK;
}

/* Returns ERR_BUG if the schedule is split and the list has a TASK_BACKWARD, or if the schedule is
 * not split and the list has half a backward pass. */
static Status check_halves(const Schedule *s, const TaskList *list, int stage)
{
    for (int i = 0; i < list->count; ++i) {
        TaskKind kind = list->task[i].kind;
        if (s->split && kind == TASK_BACKWARD)
            return fail(
                ERR_BUG,
                "schedule %s: stage %d: .backward is BACKWARD_HALVES, so its lists must have "
                "both halves of a backward pass, not TASK_BACKWARD",
                s->name, stage);
        if (!s->split && is_half(kind))
            return fail(
                ERR_BUG,
                "schedule %s: stage %d: the list has half a backward pass: set .backward to "
                "BACKWARD_HALVES",
                s->name, stage);
    }
    return OK;
}

static Status fill(Schedule *s, const ScheduleForm *form, TaskList *list, const char *path)
{
    for (int c = 0; c < schedule_chunks(s); ++c) s->stage_of[c] = form->stage(s->shape, c);
    s->split = form->backward == BACKWARD_HALVES;
    if (form->read) return fill_from_file(s, form, list, path);
    TRY(set_chunks(s));
    for (int i = 0; i < s->shape.stages; ++i) {
        form->order(&list[i], s, i);
        TRY(check_halves(s, &list[i], i));
    }
    return OK;
}

Status schedule_form_check(const char *word, const ScheduleForm *form)
{
    const RowSlot slots[] = {
        ROW_SLOT(form, stage),
        ROW_SLOT_IF(form, order, !form->read),
        ROW_SLOT(form, backward),
    };
    TRY(ROW_SLOTS_CHECK("schedule", word, slots));
    const bool by_file = form->backward == BACKWARD_BY_FILE;
    return row_check("schedule", word,
                     by_file != (form->read != NULL) ? ".read and BACKWARD_BY_FILE go together"
                                                     : NULL);
}

Status schedule_rows_check(void)
{
    for (int i = 0; i < SCHEDULE_KINDS; ++i) TRY(schedule_form_check(kinds[i].word, kinds[i].form));
    return OK;
}

static Status chunks_check(int kind, const char *name, int chunks)
{
    int least = kinds[kind].least, most = kinds[kind].most;
    if (chunks >= least && chunks <= most) return OK;
    if (most == 1)
        return fail(ERR_CONFIG,
                    "schedule %s: has one chunk per stage, not %d; use interleaved, or file:PATH",
                    name, chunks);
    if (least == most)
        return fail(ERR_CONFIG, "schedule %s: has %d chunks per stage, not %d", name, most, chunks);
    return fail(ERR_CONFIG, "schedule %s: has %d to %d chunks per stage, not %d", name, least, most,
                chunks);
}

int schedule_kind(const char *name)
{
    for (int i = 0; i < SCHEDULE_KINDS; ++i)
        if (i != SCHEDULE_FILE && strcmp(kinds[i].word, name) == 0) return i;
    return -1;
}

Status schedule_new(Schedule **schedule, int kind, const char *path, ScheduleShape shape)
{
    *schedule = NULL;
    if (kind < 0 || kind >= SCHEDULE_KINDS)
        return fail(ERR_BUG, "there is no schedule number %d", kind);
    const char *name = kind == SCHEDULE_FILE ? file_name : kinds[kind].word;
    TRY(shape_check(name, shape));
    TRY(chunks_check(kind, name, shape.chunks_per_stage));
    Schedule *s = *schedule = schedule_empty(name, shape);
    TaskList *list = mem_new((size_t)shape.stages * sizeof *list);
    Status st = fill(s, kinds[kind].form, list, path);
    for (int i = 0; i < shape.stages; ++i) set_list(s, i, &list[i]);
    mem_free(&list);
    if (st != OK) schedule_free(schedule);
    return st;
}

Status schedule_forward(Schedule **schedule, ScheduleShape shape, const int *stage_of)
{
    *schedule = NULL;
    TRY(shape_check(forward_name, shape));
    Schedule *s = *schedule = schedule_empty(forward_name, shape);
    for (int c = 0; c < schedule_chunks(s); ++c)
        s->stage_of[c] = stage_of ? stage_of[c] : stage_round(shape, c);
    Status st = set_chunks(s);
    TaskList *list = mem_new((size_t)shape.stages * sizeof *list);
    if (st == OK) order_forward(list, s);
    for (int i = 0; i < shape.stages; ++i) set_list(s, i, &list[i]);
    mem_free(&list);
    if (st != OK) schedule_free(schedule);
    return st;
}

void schedule_free(Schedule **schedule)
{
    Schedule *s = *schedule;
    if (!s) return;
    for (int i = 0; i < s->shape.stages; ++i) mem_free(&s->task[i]);
    mem_free(&s->task);
    mem_free(&s->count);
    mem_free(&s->stage_of);
    mem_free(&s->index_on_stage);
    mem_free(&s->chunk_at);
    mem_free(schedule);
}
