/* Prints the tables of weft bench scale. In both tables the speed-up of a row is its number of
 * samples per second, divided by that of one replica; the efficiency is the speed-up divided by the
 * number of replicas. Let T(r) be the time of a step on r replicas. In the table of strong scaling
 * the speed-up is T(1) / T(r). In the table of weak scaling the efficiency is T(1) / T(r). */
#include "bench_scale.h"

#include <math.h>
#include <string.h>

enum { CELL = 32, RANKS_LISTED = 8 };

static double rows_per_s(const Scale *s, const ScaleRow *row)
{
    return (double)(row->batch * s->counted_units_per_sample) / row->step_s;
}

static double speed_up(const Scale *s, const ScaleRow *row)
{
    return rows_per_s(s, row) / rows_per_s(s, &s->strong[0]);
}

/* Returns the error of the forecast, relative to the measured time; positive if the forecast is too
 * long. */
static double forecast_error(const ScaleRow *row)
{
    return row->forecast_s / row->step_s - 1;
}

/* ---- text ---- */

/* Writes a number and its unit to text and returns text; returns "-" for NaN. */
static const char *cell(char text[CELL], int decimals, double value, const char *unit)
{
    if (isnan(value)) return "-";
    snprintf(text, CELL, "%.*f%s", decimals, value, unit);
    return text;
}

static void print_row(const Scale *s, const ScaleRow *row)
{
    char grid[CELL], time[CELL], rate[CELL], speed[CELL], part[CELL], by[CELL], error[CELL];
    double times = speed_up(s, row);
    snprintf(grid, sizeof grid, "%dx%dx%d", row->replicas, s->shape.pp, s->shape.tp);
    printf("%6d %10s %8lld %11s %12s %9s %11s", row->ranks, grid, (long long)row->batch,
           cell(time, 3, 1e3 * row->step_s, ""), cell(rate, 1, rows_per_s(s, row), ""),
           cell(speed, 2, times, ""), cell(part, 1, 100 * times / row->replicas, " %"));
    if (*s->machine_path)
        printf(" %11s %9s", cell(by, 3, 1e3 * row->forecast_s, ""),
               cell(error, 1, 100 * forecast_error(row), " %"));
    printf("\n");
}

static void print_table(const Scale *s, const char *title, const ScaleRow *row)
{
    printf("\n%s\n%6s %10s %8s %11s %10s/s %9s %11s", title, "p", "grid", "batch", "ms a step",
           s->row_name, "speed-up", "efficiency");
    if (*s->machine_path) printf(" %11s %9s", "forecast", "error");
    printf("\n");
    for (int i = 0; i < s->count; ++i) print_row(s, &row[i]);
}

/* Returns note k of all 4 * s->count notes: each row of the two tables has a note, and a note on
 * its forecast. Returns NULL if the row has no such note. *ranks: number of ranks of the row. */
static const char *note_at(const Scale *s, int k, int *ranks)
{
    const ScaleRow *row = &(k / 2 % 2 ? s->weak : s->strong)[k / 4];
    *ranks = row->ranks;
    return k % 2 ? row->forecast_note : row->note;
}

/* Prints each different note once, with the numbers of ranks of the rows that have it. */
static void print_notes(const Scale *s)
{
    const char *before = "\n";
    int ranks, last;
    for (int k = 0; k < 4 * s->count; ++k) {
        const char *note = note_at(s, k, &ranks), *other;
        bool known = false;
        for (int i = 0; note && i < k && !known; ++i)
            known = (other = note_at(s, i, &ranks)) && strcmp(other, note) == 0;
        if (!note || known) continue;
        TextList list;
        text_list_begin(&list, RANKS_LISTED);
        last = 0;
        for (int i = k; i < 4 * s->count; ++i) {
            char number[CELL];
            other = note_at(s, i, &ranks);
            if (!other || strcmp(other, note) != 0 || ranks == last) continue;
            snprintf(number, sizeof number, "%d", last = ranks);
            text_list_add(&list, number);
        }
        char *all = text_list_end(&list);
        printf("%sp = %s: %s\n", before, all, note);
        before = "";
        mem_free(&all);
    }
}

void scale_print_text(const Scale *s)
{
    const int threads = (int)s->config->train.threads, replica = s->shape.pp * s->shape.tp;
    printf("%s, %s on %s, %d thread%s a rank, micro-batches of %lld; median of %d step%s\n",
           s->model, s->precision, s->device, threads, threads == 1 ? "" : "s",
           (long long)s->micro_batch, s->steps, s->steps == 1 ? "" : "s");
    if (replica > 1)
        printf("speed-up and efficiency are those of replicas, each of %d ranks\n", replica);
    print_table(s, "strong scaling: the same batch on p ranks", s->strong);
    print_table(s, "weak scaling: a batch in proportion to p", s->weak);
    print_notes(s);
}

/* ---- JSON ---- */

static void put_table(Json *json, const Scale *s, const char *key, const ScaleRow *row)
{
    char rate[CELL];
    snprintf(rate, sizeof rate, "%s_per_s", s->row_name);
    json_array_by_line(json, key);
    for (int i = 0; i < s->count; ++i, ++row) {
        json_object(json, NULL);
        json_int(json, "ranks", row->ranks);
        json_format(json, "grid", "%dx%dx%d", row->replicas, s->shape.pp, s->shape.tp);
        json_int(json, "batch", row->batch);
        json_fixed(json, "step_s", 9, row->step_s);
        json_fixed(json, rate, 3, rows_per_s(s, row));
        json_fixed(json, "speed_up", 4, speed_up(s, row));
        json_fixed(json, "efficiency", 4, speed_up(s, row) / row->replicas);
        json_fixed(json, "forecast_s", 9, row->forecast_s);
        json_fixed(json, "forecast_error", 4, forecast_error(row));
        json_text(json, "note", row->note);
        json_text(json, "forecast_note", row->forecast_note);
        json_end(json);
    }
    json_end(json);
}

void scale_print_json(const Scale *s)
{
    Json json = json_to(stdout, false);
    json_object(&json, NULL);
    json_text(&json, "bench", "scale");
    json_text(&json, "model", s->model);
    json_text(&json, "device", s->device);
    json_text(&json, "precision", s->precision);
    json_int(&json, "threads", s->config->train.threads);
    json_int(&json, "micro_batch", s->micro_batch);
    json_int(&json, "steps", s->steps);
    put_table(&json, s, "strong", s->strong);
    put_table(&json, s, "weak", s->weak);
    json_end(&json);
}
