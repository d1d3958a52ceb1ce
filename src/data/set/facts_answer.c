/* Fills a FactsRequest, runs it in a separate process with limits, and checks the answer, because a
 * malicious file may have taken control of that process. */
#include "facts.h"
#include "../data_private.h"

#include <string.h>

/* limits of the process: MEMORY_BYTES of memory, BUSY_S seconds of CPU time, CLOCK_S seconds of
 * elapsed time */
enum { MEMORY_BYTES = 1 << 30, BUSY_S = 30, CLOCK_S = 300 };

Status facts_path_fail(const char *path)
{
    return fail(ERR_NOINPUT, "the path %.60s... is longer than %d characters", path, DATA_PATH - 1);
}

static Status copy_name(char *out, size_t room, const char *name, const char *key)
{
    if (strlen(name) >= room)
        return fail(ERR_CONFIG, "%s is longer than %zu characters", key, room - 1);
    snprintf(out, room, "%s", name);
    return OK;
}

Status facts_request_init(FactsRequest *request, const char *path, const char *x, const char *y)
{
    *request = (FactsRequest){0};
    if (strlen(path) >= sizeof request->path) return facts_path_fail(path);
    snprintf(request->path, sizeof request->path, "%s", path);
    TRY(copy_name(request->x, sizeof request->x, x, "data.x"));
    return copy_name(request->y, sizeof request->y, y, "data.y");
}

/* Terminates a text of `room` bytes, and replaces its control characters by '?'. */
static void make_printable(char *text, size_t room)
{
    text[room - 1] = 0;
    for (char *c = text; *c; ++c)
        if ((unsigned char)*c < ' ' || *c == 127) *c = '?';
}

bool facts_array_is_valid(DataArray *a)
{
    make_printable(a->name, sizeof a->name);
    make_printable(a->storage, sizeof a->storage);
    if (!isolated_bool_is_valid(&a->big_endian) || a->chunk_rows < 0 ||
        (unsigned)a->type > ELEM_F64 || a->ndim < 1 || a->ndim > SHAPE_DIMS || a->offset < -1)
        return false;
    int64_t sample = (int64_t)element_bytes(a->type), all, end, unpacked;
    if (a->chunk_bytes < 0 || a->chunk_bytes > CHUNK_BYTES_MAX || a->chunks < 0 ||
        __builtin_mul_overflow(a->chunk_bytes, a->chunks, &unpacked))
        return false;
    for (int i = 0; i < SHAPE_DIMS; ++i) {
        if (a->dim[i] < 1 || (i >= a->ndim && a->dim[i] != 1)) return false;
        if (i > 0 && __builtin_mul_overflow(sample, a->dim[i], &sample)) return false;
    }
    return sample == a->sample_bytes && !__builtin_mul_overflow(sample, a->dim[0], &all) &&
           !__builtin_add_overflow(all, a->offset, &end);
}

static bool encoded_is_valid(SetFacts *facts)
{
    const DataArray *x = &facts->x, *index = &facts->index, *orient = &facts->orient;
    if (!facts_array_is_valid(&facts->index) || x->ndim != 1 || x->type != ELEM_U8 ||
        x->offset < 0 || index->ndim != 1 || index->type != ELEM_U64 || index->offset < 0 ||
        index->dim[0] < 2)
        return false;
    if (!facts->rotates_on_read) return true;
    return facts_array_is_valid(&facts->orient) && orient->ndim == 1 && orient->type == ELEM_U8 &&
           orient->offset >= 0 && orient->dim[0] == index->dim[0] - 1;
}

static bool boxes_are_valid(SetFacts *facts)
{
    for (int i = 0; i < BOX_ARRAYS; ++i)
        if (facts->box[i].ndim && !facts_array_is_valid(&facts->box[i])) return false;
    int64_t samples = facts->encoded ? facts->index.dim[0] - 1 : facts->x.dim[0];
    return !box_arrays_find_bad(facts->box, samples, facts->encoded);
}

Status facts_check(const FactsRequest *request, SetFacts *facts)
{
    bool valid = facts->parts >= 0 && facts->parts <= FACTS_PARTS &&
                 (facts->status != OK || facts->parts == FACTS_PARTS) &&
                 (unsigned)facts->kind < DATA_KINDS && facts->names >= 0 && facts->means >= 0 &&
                 facts->means <= DATA_CHANNELS && facts->stds >= 0 && facts->stds <= DATA_CHANNELS;
    const bool *flag[] = {&facts->by_weft, &facts->encoded, &facts->rotates_on_read,
                          &facts->orient_requested, &facts->bicubic};
    for (size_t i = 0; i < sizeof flag / sizeof *flag; ++i)
        valid = valid && isolated_bool_is_valid(flag[i]);
    bool has_x = facts->parts > FACTS_X, has_y = facts->parts > FACTS_Y && facts->y.ndim != 0;
    if (valid && has_x) valid = facts_array_is_valid(&facts->x);
    if (valid && has_x && facts->encoded) valid = encoded_is_valid(facts);
    if (valid && has_x && facts->ids.ndim) valid = facts_array_is_valid(&facts->ids);
    if (valid && has_x && facts->id_first.ndim) valid = facts_array_is_valid(&facts->id_first);
    if (valid && has_y) valid = facts_array_is_valid(&facts->y);
    if (valid && facts->parts > FACTS_Y && data_kind_info(facts->kind)->labels == LABELS_BOXES)
        valid = boxes_are_valid(facts);
    facts->why[sizeof facts->why - 1] = 0;
    facts->columns.lines[DATA_COLUMN_LINES - 1] = 0;
    make_printable(facts->tokenizer, sizeof facts->tokenizer);
    make_printable(facts->tokenizer_hash, sizeof facts->tokenizer_hash);
    if (valid) return OK;
    return fail(ERR_DATA, "%s: HDF5's answer about it is impossible: the file is malicious",
                request->path);
}

/* Runs in the separate process. */
static void read_and_answer(const void *input, size_t input_bytes, FILE *answer)
{
    SetFacts *facts = mem_new(sizeof *facts);
    (void)input_bytes;
    facts_read(input, facts);
    fwrite(facts, sizeof *facts, 1, answer);
}

Status facts_request_run(const FactsRequest *request, SetFacts *facts)
{
    static const IsolatedJob job = {
        .subject = "HDF5, in the process that reads the file's metadata,",
        .memory_bytes = MEMORY_BYTES,
        .busy_s = BUSY_S,
        .clock_s = CLOCK_S,
        .answer_bytes = sizeof *facts,
        .work = read_and_answer,
    };
    char *answer;
    size_t bytes;
    TRY(isolated_run(&job, request->path, request, sizeof *request, &answer, &bytes));
    bool complete = bytes == sizeof *facts;
    if (complete) memcpy(facts, answer, sizeof *facts);
    mem_free(&answer);
    if (!complete) return fail(ERR_DATA, "%s: HDF5 gave no answer; make it again", request->path);
    return facts_check(request, facts);
}
