/* The operation channel_sum on channels-last images. channel_sum_plan makes tables of terms, one
 * for y and one for the gradient of each input; refresh copies the tables to the cache. In the
 * table of a gradient, the terms of a channel are the channels of y that read it, in ascending
 * order. */
#include "cuda.h"

/* The tables. A table in memory is int32 first[channels + 1], float shift[channels], ChannelTerm
 * term[]. The terms of channel c are first[c] .. first[c + 1] - 1. */
typedef struct Tables {
    /* all tables one after the other; owned */
    void *words;
    size_t bytes;
    /* offset of the table of y in `words`, in bytes */
    size_t y_at;
    /* offset of the table of each input's gradient in `words`, in bytes */
    size_t dx_at[SPEC_INPUTS];
} Tables;
_Static_assert(sizeof(ChannelTerm) == 2 * sizeof(uint32_t), "tables consist of words");

static ChannelTable table_at(const void *words, size_t at, int64_t channels)
{
    const int32_t *first = (const void *)((const char *)words + at);
    const float *shift = (const void *)(first + channels + 1);
    return (ChannelTable){first, shift, (const void *)(shift + channels)};
}

/* Returns whether term k of channel c of y gives a term of channel `channel` in the table of
 * dx[input]. If `input` is -1, the table is that of y, in which a channel has only its own
 * terms. */
static bool has_term(const OpSpec *s, int input, int64_t channel, int c, int k)
{
    const ChannelTerm *term = &s->channel_sums[c].term[k];
    if (input < 0) return c == channel;
    return term->input == input && term->channel == channel;
}

/* Appends the table of y (input -1) or of dx[input]. Returns its offset, in bytes. */
static size_t append_table(Tables *t, const OpSpec *s, int input, int64_t channels)
{
    const size_t at = t->bytes;
    ChannelTable table = table_at(t->words, at, channels);
    int32_t *first = (int32_t *)(uintptr_t)table.first, count = 0;
    float *shift = (float *)(uintptr_t)table.shift;
    ChannelTerm *term = (ChannelTerm *)(uintptr_t)table.term;
    for (int64_t channel = 0; channel < channels; ++channel) {
        first[channel] = count;
        shift[channel] = input < 0 ? s->channel_sums[channel].shift : 0;
        for (int c = 0; c < s->sums; ++c)
            for (int k = 0; k < s->channel_sums[c].terms; ++k) {
                if (!has_term(s, input, channel, c, k)) continue;
                term[count] = s->channel_sums[c].term[k];
                if (input >= 0) term[count].input = 0, term[count].channel = (int16_t)c;
                ++count;
            }
    }
    first[channels] = count;
    t->bytes += (size_t)((char *)(term + count) - (char *)first);
    return at;
}

static void make_tables(Op *op)
{
    const OpSpec *s = &op->spec;
    Tables *t = op->impl = mem_new(sizeof *t);
    int64_t channels = s->sums, terms = 0;
    for (int i = 0; i < s->x_count; ++i) channels += s->x[i].shape.dim[1];
    for (int c = 0; c < s->sums; ++c) terms += 2 * s->channel_sums[c].terms;
    t->words = mem_new((size_t)(2 * channels + 1 + s->x_count) * sizeof(uint32_t) +
                       (size_t)terms * sizeof(ChannelTerm));
    t->y_at = append_table(t, s, -1, s->sums);
    for (int i = 0; i < s->x_count; ++i) t->dx_at[i] = append_table(t, s, i, s->x[i].shape.dim[1]);
}

static void impl_free(Op *op)
{
    Tables *t = op->impl;
    if (t) mem_free(&t->words);
    mem_free(&op->impl);
}

static Status channel_sum_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    if (!cuda_inputs_fit(op, preferred)) return OK;
    if (s->sums > INT16_MAX)
        return fail(ERR_CONFIG, "cuda: channel_sum supports at most %d channels, not %d", INT16_MAX,
                    s->sums);
    s->y = cuda_desc(op, s->y.shape);
    make_tables(op);
    op->cache_bytes = ((const Tables *)op->impl)->bytes;
    return OK;
}

static void channel_sum_refresh(Op *op, const OpRun *run)
{
    const Tables *t = op->impl;
    cuda_check(launch_channel_tables(cuda_stream(op), run->cache, t->words, t->bytes),
               "kernel channel_tables");
}

static ChannelSumRun sum_run(const Op *op, const OpRun *run, size_t at, int64_t channels)
{
    const int64_t *y = op->spec.y.shape.dim;
    return (ChannelSumRun){.type = op->spec.y.dtype,
                           .table = table_at(run->cache, at, channels),
                           .pixels = y[0] * y[2] * y[3],
                           .channels = channels};
}

static void channel_sum_forward(Op *op, const OpRun *run)
{
    const OpSpec *s = &op->spec;
    ChannelSumRun sum = sum_run(op, run, ((const Tables *)op->impl)->y_at, s->sums);
    sum.to = run->y;
    for (int i = 0; i < s->x_count; ++i) {
        sum.from[i] = run->x[i];
        sum.from_channels[i] = s->x[i].shape.dim[1];
    }
    cuda_check(launch_channel_sum(cuda_stream(op), sum), "kernel channel_sum");
}

static void channel_sum_backward_data(Op *op, const OpRun *run)
{
    const OpSpec *s = &op->spec;
    for (int i = 0; i < s->x_count; ++i) {
        if (!run->dx[i]) continue;
        ChannelSumRun sum =
            sum_run(op, run, ((const Tables *)op->impl)->dx_at[i], s->x[i].shape.dim[1]);
        sum.to = run->dx[i];
        sum.from[0] = run->dy;
        sum.from_channels[0] = s->sums;
        cuda_check(launch_channel_sum(cuda_stream(op), sum), "kernel channel_sum");
    }
}

const OpTable cuda_channel_sum = {
    .name = "channel_sum",
    .plan = channel_sum_plan,
    .refresh = channel_sum_refresh,
    .forward = channel_sum_forward,
    .backward_data = channel_sum_backward_data,
    .free = impl_free,
};
