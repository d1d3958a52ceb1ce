/* Reads the facts of files in separate processes, because HDF5 trusts what it reads, and checks the
 * answers. Several processes read at the same time, since each call of a file system may take
 * milliseconds; each process reads several files. */
#include "field_facts.h"
#include "../set/facts.h"
#include "fields_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* largest number of files that one process reads */
enum { GROUP_MOST = 32 };

/* The input of a process: the files that it reads. */
typedef struct Group {
    FieldFactsRequest request;
    int files;
    char path[GROUP_MOST][DATA_PATH];
} Group;

/* Returns the number of bytes of a FieldFacts up to the last variable of the request. */
static size_t facts_bytes(const FieldFactsRequest *request)
{
    return offsetof(FieldFacts, variable) +
           (size_t)request->count * sizeof *((FieldFacts *)NULL)->variable;
}

/* Runs in the separate process. Writes the facts and the times of each file of a Group. */
static void read_and_answer(const void *input, size_t input_bytes, FILE *answer)
{
    const Group *group = input;
    FieldFacts *facts = mem_new(sizeof *facts);
    double *times;
    (void)input_bytes;
    for (int i = 0; i < group->files; ++i) {
        field_facts_read(&group->request, group->path[i], facts, &times);
        fwrite(facts, facts_bytes(&group->request), 1, answer);
        if (facts->times > 0) fwrite(times, sizeof *times, (size_t)facts->times, answer);
        mem_free(&times);
    }
}

static bool packing_is_valid(const FieldPacking *p)
{
    return isfinite(p->scale) && isfinite(p->add) && p->scale != 0 && p->missing_count >= 0 &&
           p->missing_count <= FIELD_MISSING_CODES_MAX;
}

static bool variable_is_valid(FieldVariableFacts *v)
{
    bool seen[FIELD_DIMS] = {false};
    v->units[FIELD_UNITS - 1] = 0;
    if (!facts_array_is_valid(&v->array) || !packing_is_valid(&v->packing) || v->levels < 0 ||
        v->levels > FIELD_COORDINATES)
        return false;
    for (int i = 0; i < v->array.ndim; ++i) {
        if (v->dim[i] < 0 || v->dim[i] >= FIELD_DIMS || seen[v->dim[i]]) return false;
        seen[v->dim[i]] = true;
        if (v->dim[i] == FIELD_LEVEL && v->levels != 0 && v->levels != v->array.dim[i])
            return false;
    }
    return true;
}

static bool axis_is_valid(FieldAxis *axis)
{
    return axis->count >= 0 && axis->count <= FIELD_ROWS && isolated_bool_is_valid(&axis->degrees);
}

/* Returns whether the facts of a file are possible, and ends their texts with a zero byte. bytes:
 * length of the answer from these facts on. */
static bool answer_is_valid(const FieldFactsRequest *request, FieldFacts *facts, size_t bytes)
{
    bool valid = facts->times >= 0 && facts->times <= FIELD_TIMES && facts->flag_count >= 0 &&
                 facts->flag_count <= FIELD_CLASSES && axis_is_valid(&facts->rows) &&
                 axis_is_valid(&facts->columns) && axis_is_valid(&facts->target_rows) &&
                 bytes >= facts_bytes(request) + (size_t)facts->times * sizeof(double);
    facts->why[sizeof facts->why - 1] = 0;
    facts->time_units[FIELD_UNITS - 1] = facts->calendar[FIELD_UNITS - 1] = 0;
    facts->meanings[FIELD_MEANINGS - 1] = 0;
    for (int i = 0; valid && facts->status == OK && i < request->count; ++i)
        valid = variable_is_valid(&facts->variable[i]);
    return valid;
}

/* State of field_facts_each. */
typedef struct Taking {
    const FieldFactsRequest *request;
    FieldFactsTake *take;
    void *user;
    /* owned: facts of the file for which `take` is called */
    FieldFacts *facts;
} Taking;

/* Checks the answer of a group's process, and calls `take` for each file of the group. first:
 * number of the group's first file. */
static Status take_group(const Taking *t, const Group *group, int first, const char *answer,
                         size_t bytes)
{
    const size_t each = facts_bytes(t->request);
    FieldFacts *facts = t->facts;
    size_t at = 0;
    for (int i = 0; i < group->files; ++i) {
        bool valid = bytes - at >= each;
        if (valid) memcpy(facts, answer + at, each);
        if (valid) valid = answer_is_valid(t->request, facts, bytes - at);
        if (!valid)
            return fail(ERR_DATA, "%s: HDF5's answer about it is impossible: the file is malicious",
                        group->path[i]);
        if (facts->status != OK) return fail(facts->status, "%s", facts->why);
        double *times = mem_new((size_t)(facts->times + 1) * sizeof *times);
        memcpy(times, answer + at + each, (size_t)facts->times * sizeof *times);
        at += each + (size_t)facts->times * sizeof *times;
        const Status st = t->take(t->user, first + i, facts, times);
        mem_free(&times);
        TRY(st);
    }
    return OK;
}

static IsolatedJob job_of(int files)
{
    return (IsolatedJob){
        .subject = "HDF5, in the process that reads the file's metadata,",
        .memory_bytes = (size_t)1 << 30,
        .busy_s = 10 * files,
        .clock_s = 300,
        .answer_bytes = (size_t)files * (sizeof(FieldFacts) + FIELD_TIMES * sizeof(double)),
        .work = read_and_answer,
    };
}

static Group *group_new(const FieldFactsRequest *request, char *const *path, int files)
{
    Group *group = mem_new(sizeof *group);
    group->request = *request;
    group->files = files;
    for (int i = 0; i < files; ++i) snprintf(group->path[i], sizeof group->path[i], "%s", path[i]);
    return group;
}

/* Reads the files of a group one by one, each in its own process. Called after the process of the
 * group has failed, so that the message names the file at fault. */
static Status read_alone(const Taking *t, const Group *failed, int first)
{
    Status st = OK;
    for (int i = 0; st == OK && i < failed->files; ++i) {
        char *path[] = {mem_text(failed->path[i])}, *answer = NULL;
        Group *group = group_new(t->request, path, 1);
        const IsolatedJob job = job_of(1);
        size_t bytes = 0;
        st = isolated_run(&job, path[0], group, sizeof *group, &answer, &bytes);
        if (st == OK) st = take_group(t, group, first + i, answer, bytes);
        mem_free(&answer);
        mem_free(&group);
        mem_free(&path[0]);
    }
    return st;
}

/* Reads files `first` to end - 1 in up to ISOLATED_MOST groups of `each` files, all groups at the
 * same time. */
static Status read_groups(const Taking *t, char *const *path, int first, int end, int each)
{
    Group *group[ISOLATED_MOST] = {0};
    const char *name[ISOLATED_MOST] = {0};
    char *answer[ISOLATED_MOST];
    size_t bytes[ISOLATED_MOST] = {0}, answer_bytes[ISOLATED_MOST];
    const IsolatedJob job = job_of(each);
    int count = 0, good;
    for (int at = first; at < end; at += each, ++count) {
        group[count] = group_new(t->request, path + at, end - at < each ? end - at : each);
        name[count] = path[at];
        bytes[count] = sizeof **group;
    }
    const Status run = isolated_run_many(&job, count, (const void *const *)group, bytes, name,
                                         answer, answer_bytes, &good);
    Status st = OK;
    for (int i = 0; i < count; ++i) {
        if (st == OK && i < good)
            st = take_group(t, group[i], first + i * each, answer[i], answer_bytes[i]);
        else if (st == OK)
            st = each > 1 ? read_alone(t, group[i], first + i * each) : run;
        mem_free(&answer[i]);
        mem_free(&group[i]);
    }
    return st;
}

Status field_facts_each(const FieldFactsRequest *request, char *const *path, int count,
                        FieldFactsTake *take, void *user)
{
    Taking t = {.request = request, .take = take, .user = user, .facts = mem_new(sizeof *t.facts)};
    int each = (count + ISOLATED_MOST - 1) / ISOLATED_MOST;
    Status st = OK;
    if (each > GROUP_MOST) each = GROUP_MOST;
    for (int at = 0; st == OK && at < count; at += each * ISOLATED_MOST) {
        const int end = count - at < each * ISOLATED_MOST ? count : at + each * ISOLATED_MOST;
        st = read_groups(&t, path, at, end, each);
    }
    mem_free(&t.facts);
    return st;
}
