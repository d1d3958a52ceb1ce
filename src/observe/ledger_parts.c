/* Reads the values of the line that a start writes to ledger.jsonl at its end: parts, ranks,
 * critical path, memory, schedule. */
#include "ledger_read.h"

#include <string.h>

/* largest number of stages, of chunks of a stage, and of micro-batches */
static const double SHAPE_MAX = 1 << 20;

/* ---- parts ---- */

/* Returns the part with this name, which is added to *part if there is none. */
static LedgerPart *part_for(LedgerPart **part, int *count, const char *name)
{
    for (int i = 0; i < *count; ++i)
        if (strcmp((*part)[i].name, name) == 0) return &(*part)[i];
    *part = mem_resize(*part, (size_t)(*count + 1) * sizeof **part);
    (*part)[*count] = (LedgerPart){.name = mem_text(name)};
    return &(*part)[(*count)++];
}

static void parts_free(LedgerPart **part, int *count)
{
    for (int i = 0; i < *count; ++i) mem_free(&(*part)[i].name);
    mem_free(part);
    *count = 0;
}

static void ranks_free(LedgerHistory *h)
{
    for (int i = 0; i < h->rank_count; ++i) parts_free(&h->rank[i].part, &h->rank[i].count);
    mem_free(&h->rank);
    h->rank_count = 0;
}

/* Reads an object of names and numbers. Each number becomes the forecast_s of the part with this
 * name if `forecast` is true, else its measured_s. */
static Status read_parts(JsonScan *scan, LedgerPart **part, int *count, bool forecast)
{
    bool more;
    Status st = json_scan_open(scan, '{', &more);
    while (st == OK && more) {
        char *key = NULL;
        double value = 0;
        st = json_scan_key(scan, &key);
        if (st == OK) st = json_scan_real(scan, &value);
        if (st == OK) {
            LedgerPart *to = part_for(part, count, key);
            *(forecast ? &to->forecast_s : &to->measured_s) = value;
            to->has_forecast = to->has_forecast || forecast;
        }
        mem_free(&key);
        if (st == OK) st = json_scan_more(scan, '}', &more);
    }
    return st;
}

static Status read_ranks(LedgerHistory *h, JsonScan *scan)
{
    bool more;
    ranks_free(h);
    TRY(json_scan_open(scan, '[', &more));
    while (more) {
        h->rank = mem_resize(h->rank, (size_t)(h->rank_count + 1) * sizeof *h->rank);
        LedgerRank *rank = &h->rank[h->rank_count++];
        *rank = (LedgerRank){0};
        TRY(read_parts(scan, &rank->part, &rank->count, false));
        TRY(json_scan_more(scan, ']', &more));
    }
    return OK;
}

/* ---- memory and schedule ---- */

static Status read_costs(JsonScan *scan, LedgerSchedule *schedule)
{
    bool more;
    schedule->costs = 0;
    TRY(json_scan_open(scan, '[', &more));
    while (more) {
        double value;
        TRY(json_scan_real(scan, &value));
        size_t count = (size_t)schedule->costs + 1;
        schedule->cost = mem_resize(schedule->cost, count * sizeof *schedule->cost);
        schedule->cost[schedule->costs++] = value;
        TRY(json_scan_more(scan, ']', &more));
    }
    return OK;
}

/* Reads an object: the numbers whose keys are in `number` and, if `schedule` is not NULL, the
 * schedule's name and costs from the keys "name" and "cost". Skips the values of other keys. */
static Status read_numbers(JsonScan *scan, const LedgerNumber *number, int count,
                           LedgerSchedule *schedule)
{
    bool more;
    Status st = json_scan_open(scan, '{', &more);
    while (st == OK && more) {
        char *key = NULL;
        const LedgerNumber *found = NULL;
        st = json_scan_key(scan, &key);
        for (int i = 0; st == OK && i < count; ++i)
            if (strcmp(key, number[i].key) == 0) found = &number[i];
        if (found)
            st = json_scan_real(scan, found->value);
        else if (st == OK && schedule && strcmp(key, "name") == 0 && !schedule->name)
            st = json_scan_text(scan, &schedule->name);
        else if (st == OK && schedule && strcmp(key, "cost") == 0)
            st = read_costs(scan, schedule);
        else if (st == OK)
            st = json_scan_skip(scan);
        mem_free(&key);
        if (st == OK) st = json_scan_more(scan, '}', &more);
    }
    return st;
}

static Status read_memory(JsonScan *scan, LedgerMemory *memory)
{
    double rank = 0;
    const LedgerNumber number[] = {{"rank", &rank},
                                   {"planned", &memory->planned},
                                   {"measured", &memory->measured},
                                   {"peak", &memory->peak}};
    TRY(read_numbers(scan, number, 4, NULL));
    if (!(rank >= 0 && rank <= INT32_MAX)) return json_scan_fail(scan, "%g is no rank", rank);
    memory->rank = (int)rank;
    return OK;
}

static Status read_schedule(JsonScan *scan, LedgerSchedule *schedule)
{
    double stages = 0, chunks = 0, micro_batches = 0;
    const LedgerNumber number[] = {
        {"stages", &stages}, {"chunks", &chunks}, {"micros", &micro_batches}};
    TRY(read_numbers(scan, number, 3, schedule));
    if (!(stages >= 1 && stages <= SHAPE_MAX && chunks >= 1 && chunks <= SHAPE_MAX &&
          micro_batches >= 1 && micro_batches <= SHAPE_MAX &&
          3 * stages * chunks == schedule->costs))
        return json_scan_fail(scan, "a schedule needs stages, chunks and micros from 1 to 1048576, "
                                    "and three costs for each chunk of each stage");
    schedule->shape = (ScheduleShape){(int)stages, (int)chunks, (int)micro_batches};
    return OK;
}

Status ledger_read_end(LedgerHistory *h, JsonScan *scan, const char *key)
{
    if (strcmp(key, "measured") == 0) {
        /* In such a line this key comes before the keys below, so the values of earlier lines are
         * dropped here. */
        ledger_forget_end(h);
        return read_parts(scan, &h->part, &h->parts, false);
    }
    if (strcmp(key, "path") == 0) return read_parts(scan, &h->path, &h->path_parts, false);
    if (strcmp(key, "rank") == 0) return read_ranks(h, scan);
    if (strcmp(key, "memory") == 0) return read_memory(scan, &h->memory);
    if (strcmp(key, "schedule") == 0) return read_schedule(scan, &h->schedule);
    if (strcmp(key, "forecast") != 0) return json_scan_skip(scan);
    h->has_forecast = true;
    return read_parts(scan, &h->part, &h->parts, true);
}

void ledger_forget_end(LedgerHistory *h)
{
    parts_free(&h->part, &h->parts);
    parts_free(&h->path, &h->path_parts);
    ranks_free(h);
    mem_free(&h->schedule.name);
    mem_free(&h->schedule.cost);
    h->schedule = (LedgerSchedule){0};
    h->memory = (LedgerMemory){0};
    h->has_forecast = false;
}
