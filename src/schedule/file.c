/* Reads schedule files. A file is CSV: the header line `stage,task,chunk,micro`, then a row for
 * each task. The rows of a stage are in the order of its tasks. Blank lines and lines that begin
 * with # are ignored. An optional line `stages,0,1,1,0` before the header gives the stage of chunk
 * 0, of chunk 1 and so on. Another header, a row without exactly four fields, an unknown task or a
 * number outside the shape is an error with file and line. Whether the lists can run is checked in
 * check.c and simulate.c. */
#include "private.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS = 4, NUMBER_DIGITS = 9, FILE_BYTES = 64 << 20 };
static const char *const columns[FIELDS] = {"stage", "task", "chunk", "micro"};

typedef struct Reader {
    /* borrowed */
    const char *path;
    /* number of the current line, counted from 1 */
    int line;
    ScheduleShape shape;
    /* Schedule.stage_of; borrowed */
    int *stage_of;
    /* list of each stage, [stages]; borrowed */
    TaskList *list;
    /* true: the header line has been read */
    bool has_header;
    /* true: the line that begins with `stages` has been read */
    bool has_stages;
    /* true: a row with a send or a receive has been read */
    bool has_messages;
} Reader;

/* Splits the line at its commas, and removes white space at both ends of each field. Returns the
 * number of fields; if it is FIELDS + 1, there may be more. */
static int split_fields(char *line, char *field[FIELDS + 1])
{
    int count = 0;
    char *next = line;
    do {
        char *text = next;
        next = strchr(text, ',');
        if (next) *next++ = '\0';
        while (isspace((unsigned char)*text)) ++text;
        for (size_t n = strlen(text); n > 0 && isspace((unsigned char)text[n - 1]);)
            text[--n] = '\0';
        field[count++] = text;
    } while (next && count <= FIELDS);
    return count;
}

static Status read_number(const Reader *r, const char *name, const char *text, int limit,
                          int *value)
{
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > NUMBER_DIGITS || text[digits] != '\0')
        return fail(ERR_CONFIG, "%s:%d: %s is '%s', which is not a whole number", r->path, r->line,
                    name, text);
    *value = atoi(text);
    if (*value >= limit)
        return fail(ERR_CONFIG,
                    "%s:%d: %s %d is outside 0..%d; the schedule has %d stages of %d "
                    "chunks and %d micro-batches",
                    r->path, r->line, name, *value, limit - 1, r->shape.stages,
                    r->shape.chunks_per_stage, r->shape.micro_batches);
    return OK;
}

static Status read_kind(const Reader *r, const char *text, TaskKind *kind)
{
    for (int i = 0; i < TASK_KINDS; ++i)
        if (strcmp(text, task_names[i]) == 0) {
            *kind = (TaskKind)i;
            return OK;
        }
    const char *near = text_nearest(text, task_names, TASK_KINDS);
    return fail(ERR_CONFIG, "%s:%d: unknown task '%s'; %s%s", r->path, r->line, text,
                near ? "did you mean " : "tasks are forward, backward, backward_data, ...",
                near ? near : "");
}

static Status read_header(Reader *r, char *const *field, int count)
{
    bool good = count == FIELDS;
    for (int i = 0; good && i < FIELDS; ++i) good = strcmp(field[i], columns[i]) == 0;
    if (!good)
        return fail(ERR_CONFIG, "%s:%d: the first line must be stage,task,chunk,micro", r->path,
                    r->line);
    r->has_header = true;
    return OK;
}

static Status read_row(Reader *r, char *const *field, int count)
{
    if (count != FIELDS)
        return fail(ERR_CONFIG, "%s:%d: a row has four fields: stage,task,chunk,micro", r->path,
                    r->line);
    Task t;
    int stage;
    TRY(read_number(r, columns[0], field[0], r->shape.stages, &stage));
    TRY(read_kind(r, field[1], &t.kind));
    TRY(read_number(r, columns[2], field[2], r->shape.stages * r->shape.chunks_per_stage,
                    &t.chunk));
    TRY(read_number(r, columns[3], field[3], r->shape.micro_batches, &t.micro));
    if (r->stage_of[t.chunk] != stage)
        return fail(ERR_CONFIG, "%s:%d: chunk %d is on stage %d, not on stage %d", r->path, r->line,
                    t.chunk, r->stage_of[t.chunk], stage);
    list_add(&r->list[stage], t.kind, t.chunk, t.micro);
    r->has_messages = r->has_messages || task_is_message(t.kind);
    return OK;
}

static Status check_stages(const Reader *r, int count)
{
    int chunks = r->shape.stages * r->shape.chunks_per_stage;
    if (count != chunks)
        return fail(ERR_CONFIG,
                    "%s:%d: gives the stages of %d chunks, but there are %d: %d stages of %d",
                    r->path, r->line, count, chunks, r->shape.stages, r->shape.chunks_per_stage);
    for (int stage = 0; stage < r->shape.stages; ++stage) {
        int have = 0;
        for (int c = 0; c < chunks; ++c) have += r->stage_of[c] == stage;
        if (have != r->shape.chunks_per_stage)
            return fail(ERR_CONFIG, "%s:%d: stage %d has %d chunks in this line instead of %d",
                        r->path, r->line, stage, have, r->shape.chunks_per_stage);
    }
    return OK;
}

/* Reads the line `stages,0,1,1,0`, which gives the stage of each chunk. */
static Status read_stages(Reader *r, char *line)
{
    int count = 0, chunks = r->shape.stages * r->shape.chunks_per_stage, stage;
    if (r->has_stages)
        return fail(ERR_CONFIG,
                    "%s:%d: a second line of stages; only one is allowed before the header",
                    r->path, r->line);
    strsep(&line, ",");
    for (char *text; (text = strsep(&line, ",")); ++count) {
        text += strspn(text, " \t");
        text[strcspn(text, " \t\r\n")] = '\0';
        TRY(read_number(r, columns[0], text, r->shape.stages, &stage));
        if (count < chunks) r->stage_of[count] = stage;
    }
    r->has_stages = true;
    return check_stages(r, count);
}

static bool is_line_of_stages(const char *line)
{
    static const char word[] = "stages";
    line += strspn(line, " \t");
    if (strncmp(line, word, strlen(word)) != 0) return false;
    line += strlen(word);
    return line[strspn(line, " \t")] == ',';
}

/* Reads all lines of `text` and overwrites `text`. */
static Status read_lines(Reader *r, char *text)
{
    Status st = OK;
    for (char *line; st == OK && text && *text;) {
        line = strsep(&text, "\n");
        ++r->line;
        char *field[FIELDS + 1];
        if (!r->has_header && is_line_of_stages(line)) {
            st = read_stages(r, line);
            continue;
        }
        int count = split_fields(line, field);
        if (field[0][0] == '#' || (count == 1 && field[0][0] == '\0')) continue;
        st = r->has_header ? read_row(r, field, count) : read_header(r, field, count);
    }
    if (st == OK && !r->has_header)
        st = fail(ERR_CONFIG, "%s:%d: the first line must be stage,task,chunk,micro", r->path, 1);
    return st;
}

/* Replaces a list without messages by one with them: each task gets its receive before it and its
 * send after it (list_add_work). */
static void insert_messages(TaskList *list, const Schedule *schedule)
{
    TaskList full = {0};
    for (int i = 0; i < list->count; ++i) {
        Task t = list->task[i];
        list_add_work(&full, schedule, t.kind, t.chunk, t.micro);
    }
    mem_free(&list->task);
    *list = full;
}

Status file_read(TaskList *list, const char *path, Schedule *schedule)
{
    if (!path || !*path)
        return fail(ERR_CONFIG, "schedule file: no path; give grid.pipeline_schedule=file:PATH");
    char *text;
    size_t bytes;
    TRY(file_text(path, FILE_BYTES, &text, &bytes));
    Reader r = {
        .path = path, .shape = schedule->shape, .stage_of = schedule->stage_of, .list = list};
    Status st = strlen(text) == bytes
                    ? read_lines(&r, text)
                    : fail(ERR_CONFIG, "%s: contains a zero byte, so it is not a text file", path);
    mem_free(&text);
    for (int i = 0; st == OK && !r.has_messages && i < r.shape.stages; ++i)
        insert_messages(&list[i], schedule);
    return st;
}

const ScheduleForm schedule_form_file = {
    .stage = stage_round, .read = file_read, .backward = BACKWARD_BY_FILE};
