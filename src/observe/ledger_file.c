/* Writes ledger.jsonl: lines of JSON that are appended one at a time. A crash may leave the last
 * line torn; then a newline is written before the next line. */
#include "observer.h"

#include "observe/history.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* largest number of ranks that a line lists */
enum { RANKS_MAX = 64 };

static Status cannot_write(const char *path)
{
    return fail(ERR_IO, "%s: cannot be written: %s", path, file_error(errno));
}

Status ledger_file_check(const char *folder)
{
    char *path = mem_format("%s/ledger.jsonl", folder);
    Status st = file_can_create(path) ? OK : cannot_write(path);
    mem_free(&path);
    return st;
}

/* Returns true if the file is not empty and does not end with a newline. */
static bool is_torn(int file)
{
    char last = '\n';
    off_t bytes = lseek(file, 0, SEEK_END);
    return bytes > 0 && pread(file, &last, 1, bytes - 1) == 1 && last != '\n';
}

static Status append(const char *folder, const char *line)
{
    char *path = mem_format("%s/ledger.jsonl", folder);
    int file = file_create(path, O_RDWR | O_APPEND);
    char *text = mem_format("%s%s", file >= 0 && is_torn(file) ? "\n" : "", line);
    size_t bytes = strlen(text);
    Status st = OK;
    ssize_t put = file < 0 ? -1 : write(file, text, bytes);
    if (file >= 0 && put >= 0 && put < (ssize_t)bytes) errno = ENOSPC;
    if (put != (ssize_t)bytes) st = cannot_write(path);
    if (file >= 0 && close(file) != 0 && st == OK) st = cannot_write(path);
    mem_free(&text);
    mem_free(&path);
    return st;
}

static Json line_begin(char **text, size_t *bytes)
{
    FILE *out = open_memstream(text, bytes);
    if (!out) die("out of memory for a line of the ledger");
    Json json = json_to(out, false);
    json_object(&json, NULL);
    return json;
}

static Status line_end(Json *json, const char *folder, char **text)
{
    json_end(json);
    fclose(json->out);
    Status st = append(folder, *text);
    free(*text);
    return st;
}

Status ledger_write_start(const char *folder, const LedgerBegin *begin)
{
    char *text = NULL;
    size_t bytes;
    Json json = line_begin(&text, &bytes);
    json_fixed(&json, "start", 3, wall_s() - begin->startup_s);
    json_fixed(&json, "startup_s", 3, begin->startup_s);
    json_int(&json, "step", begin->step);
    json_int(&json, "earlier_step", begin->earlier.step);
    json_fixed(&json, "earlier_end", 3, begin->earlier.changed);
    json_text(&json, "versions", begin->versions);
    return line_end(&json, folder, &text);
}

static void put_parts(Json *json, const double *line_s, double steps)
{
    for (int i = 0; i < LEDGER_LINE_COUNT; ++i) json_real(json, ledger_names[i], line_s[i] / steps);
}

/* Writes the forecast of each part. Evaluations and saves have no forecast. */
static void put_forecast(Json *json, const Ledger *ledger)
{
    json_object(json, "forecast");
    for (int i = 0; i < LEDGER_LINE_COUNT; ++i)
        if (i != LEDGER_EVAL && i != LEDGER_CHECKPOINT)
            json_real(json, ledger_names[i], ledger->forecast_s[i]);
    json_end(json);
}

/* Writes the schedule with three costs of each chunk: forward, backward by inputs, backward by
 * weights. */
static void put_schedule(Json *json, const Ledger *ledger)
{
    const Schedule *s = ledger->schedule;
    if (!s) return;
    json_object(json, "schedule");
    json_text(json, "name", s->name);
    json_int(json, "stages", s->shape.stages);
    json_int(json, "chunks", s->shape.chunks_per_stage);
    json_int(json, "micros", s->shape.micro_batches);
    json_array(json, "cost");
    for (int k = 0; k < schedule_chunks(s); ++k) {
        json_real(json, NULL, ledger->cost[k].forward);
        json_real(json, NULL, ledger->cost[k].backward_data);
        json_real(json, NULL, ledger->cost[k].backward_weight);
    }
    json_end(json);
    json_end(json);
}

/* Writes the critical path: all stages, and the other parts that are not 0. */
static void put_path(Json *json, const Ledger *ledger)
{
    LedgerPathPart part[LEDGER_LINE_COUNT + 1];
    const Schedule *s = ledger->schedule;
    double steps = (double)ledger->steps;
    if (!s) return;
    json_object(json, "path");
    for (int i = 0; i < s->shape.stages; ++i) {
        char name[32];
        snprintf(name, sizeof name, s->shape.stages > 1 ? "stage %d" : "compute", i);
        json_real(json, name, ledger->path_s[i] / steps);
    }
    int parts = ledger_path_parts(ledger, part);
    for (int i = 0; i < parts; ++i) json_real(json, part[i].name, part[i].seconds / steps);
    json_end(json);
}

/* Writes the parts of at most RANKS_MAX ranks. If there are more ranks, these are every n-th rank
 * and the busiest rank. */
static void put_ranks(Json *json, const Ledger *ledger)
{
    int every = (ledger->ranks + RANKS_MAX - 2) / (RANKS_MAX - 1);
    json_array(json, "rank");
    for (int r = 0; ledger->rank && r < ledger->ranks; ++r) {
        if (r % (ledger->ranks > RANKS_MAX ? every : 1) != 0 && r != ledger->busiest) continue;
        json_object(json, NULL);
        json_int(json, "rank", r);
        json_int(json, "stage", ledger->rank[r].stage);
        put_parts(json, ledger->rank[r].line_s, (double)ledger->steps);
        json_end(json);
    }
    json_end(json);
}

static void put_memory(Json *json, const LedgerMemory *memory)
{
    if (memory->measured <= 0) return;
    json_object(json, "memory");
    json_int(json, "rank", memory->rank);
    json_fixed(json, "planned", 0, memory->planned);
    json_fixed(json, "measured", 0, memory->measured);
    json_fixed(json, "peak", 0, memory->peak);
    json_end(json);
}

Status ledger_write_end(const char *folder, int64_t step, const Ledger *ledger,
                        const LedgerMemory *memory)
{
    char *text = NULL;
    size_t bytes;
    Json json = line_begin(&text, &bytes);
    json_int(&json, "step", step);
    json_int(&json, "steps", ledger->steps);
    json_int(&json, "ranks", ledger->ranks);
    json_fixed(&json, "end", 3, wall_s());
    json_object(&json, "measured");
    put_parts(&json, ledger->line_s, (double)ledger->steps);
    json_end(&json);
    if (ledger->has_forecast) put_forecast(&json, ledger);
    put_memory(&json, memory);
    put_path(&json, ledger);
    put_schedule(&json, ledger);
    put_ranks(&json, ledger);
    return line_end(&json, folder, &text);
}
