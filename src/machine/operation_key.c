/* Makes the key of an operation. Two operations with the same key are assumed to take equal
 * times. */
#include "machine.h"

#include <stdlib.h>

static void put_shape(FILE *out, const char *name, Shape shape)
{
    char text[64];
    fprintf(out, " %s=%s", name, shape_text(shape, text));
}

static void put_desc(FILE *out, const char *name, Desc d)
{
    put_shape(out, name, d.shape);
    if (d.dtype != DTYPE_F32) fprintf(out, ":%s", dtype_name(d.dtype));
    if (d.block > 1) fprintf(out, ":b%d", d.block);
    if (d.flat) fprintf(out, ":flat");
}

/* Writes a number if it is not 0. */
static void put_number(FILE *out, const char *name, int64_t value)
{
    if (value) fprintf(out, " %s=%lld", name, (long long)value);
}

static void put_pair(FILE *out, const char *name, const int pair[2])
{
    if (pair[0] || pair[1]) fprintf(out, " %s=%dx%d", name, pair[0], pair[1]);
}

static void put_attributes(FILE *out, const OpSpec *s)
{
    put_pair(out, "kernel", s->kernel);
    put_pair(out, "stride", s->stride);
    put_pair(out, "pad", s->pad);
    put_number(out, "groups", s->groups);
    put_number(out, "pool", s->pool);
    put_number(out, "point", s->point);
    put_number(out, "scale", s->scale);
    put_number(out, "heads", s->heads);
    put_number(out, "kv_heads", s->kv_heads);
    put_number(out, "rotary", s->rotary);
    put_number(out, "window", s->window);
    put_number(out, "full", s->bidirectional);
    put_number(out, "drop", s->drop > 0);
    put_number(out, "slices", s->slices.count);
    put_number(out, "slices_inputs", s->slices_inputs);
    put_number(out, "tokens", s->token_slices.count);
    put_number(out, "ranks", s->slice.ranks);
    put_number(out, "synced", s->synced);
    put_number(out, "frozen", s->frozen);
    put_number(out, "fixed_stats", s->fixed_stats);
    put_number(out, "plain_weight", s->plain_weight);
    put_number(out, "row_width", s->row_width);
    put_number(out, "fields", s->bag_fields);
    put_number(out, "bag_mode", s->bag_mode);
    put_number(out, "classes", s->classes);
}

char *operation_key(const OpSpec *s)
{
    char *text;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) die("out of memory for the key of an operation");
    fprintf(out, "%s", op_info(s->kind)->name);
    if (s->residual) fprintf(out, "+add");
    if (s->act != ACT_NONE) fprintf(out, "+%s", act_name(s->act));
    if (s->x_act != ACT_NONE) fprintf(out, " x_act=%s", act_name(s->x_act));
    put_number(out, "act_passed", s->act_passed);
    for (int i = 0; i < s->x_count; ++i) {
        put_desc(out, "x", s->x[i]);
        if (!s->need_dx[i]) fprintf(out, ":fixed");
    }
    for (int i = 0; i < s->w_count; ++i) put_shape(out, "w", s->w[i]);
    put_desc(out, "y", s->y);
    put_attributes(out, s);
    fclose(out);
    char *key = mem_text(text);
    free(text);
    return key;
}
