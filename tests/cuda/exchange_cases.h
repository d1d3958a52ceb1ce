/* Tests of the operation exchange: the GPU's results, in place if possible, are compared with the
 * CPU's. */
#ifndef WEFT_TEST_CUDA_EXCHANGE_CASES_H
#define WEFT_TEST_CUDA_EXCHANGE_CASES_H

#include "ranks.h"

static Status exchange_open(Rig *rig, Backend *backend, ExchangeKind kind, Shape whole, int rank)
{
    rig->backend = backend;
    OpSpec *s = &rig->spec;
    Shape part = whole;
    *s = (OpSpec){.kind = OP_EXCHANGE, .exchange = kind, .x_count = 1, .need_dx = {true}};
    s->slice = rank_slice(1, whole.dim[1], rank);
    part.dim[1] = s->slice.count;
    if (kind == EXCHANGE_KEYS) {
        /* a third of a row is queries, a third is keys, and a third is values */
        s->slice = rank_slice(2, whole.dim[2] / 3, rank);
        part = whole;
        part.dim[2] -= 2 * (s->slice.whole - s->slice.count);
    }
    const bool from_part = kind == EXCHANGE_ALL_GATHER || kind == EXCHANGE_KEYS;
    s->x[0] = dense_output(backend, from_part ? part : whole);
    s->y = desc_plain(kind == EXCHANGE_REDUCE_SCATTER ? part : whole, DTYPE_F32);
    s->w_count = kind == EXCHANGE_LEAVE || kind == EXCHANGE_REDUCE_SCATTER;
    if (s->w_count) s->w[0] = shape_of(1, whole.dim[2], 1, 1, 1);
    TRY(rig_plan(rig));
    CU_ASSERT_TRUE(desc_is_plain(s->x[0]) && desc_is_plain(s->y));
    rig_memory(rig);
    return OK;
}

static void exchange_compare(Ranks *both[2], int r, Part part, const char *tensor, int64_t n)
{
    compare("exchange", both[1]->rig[r].backend, part, allowed.exchange, "exchange", tensor,
            both[1]->out[r], both[0]->out[r], n);
}

static void exchange_run(Ranks *both[2])
{
    const OpSpec *s = &both[0]->rig[0].spec;
    for (int d = 0; d < 2; ++d) ranks_forward(both[d]);
    for (int r = 0; r < SLICES; ++r) {
        for (int d = 0; d < 2; ++d) rig_get_y(&both[d]->rig[r], both[d]->out[r]);
        exchange_compare(both, r, PART_Y, "y", shape_count(both[0]->rig[r].spec.y.shape));
    }
    for (int d = 0; d < 2; ++d) ranks_backward(both[d]);
    for (int r = 0; r < SLICES; ++r) {
        for (int d = 0; d < 2; ++d) rig_get_dx(&both[d]->rig[r], 0, both[d]->out[r]);
        exchange_compare(both, r, PART_DX, "dx", shape_count(both[0]->rig[r].spec.x[0].shape));
        for (int d = 0; d < 2 && s->w_count; ++d) rig_get_dw(&both[d]->rig[r], 0, both[d]->out[r]);
        if (s->w_count) exchange_compare(both, r, PART_DW, "dw", shape_count(s->w[0]));
    }
}

static void check_exchange(ExchangeKind kind, Shape whole, Backend *device)
{
    Ranks on[2], *both[2] = {&on[0], &on[1]};
    float *bias = mem_new((size_t)whole.dim[2] * sizeof *bias);
    fill(bias, whole.dim[2], 1);
    for (int d = 0; d < 2; ++d) {
        ranks_init(&on[d]);
        for (int r = 0; r < SLICES; ++r) {
            on[d].rig[r].in_place = d == 1;
            CHECK_OK(exchange_open(&on[d].rig[r], d ? device : cpu, kind, whole, r));
            on[d].rig[r].run.exchange = &on[d].exchange[r];
            if (on[d].rig[r].spec.w_count) rig_set_w(&on[d].rig[r], 0, bias);
        }
    }
    for (int r = 0; r < SLICES; ++r) {
        fill(on[0].x[r], shape_count(whole), 1);
        fill(on[0].dy[r], shape_count(whole), 1);
        memcpy(on[1].x[r], on[0].x[r], SLICE_ROOM * sizeof(float));
        memcpy(on[1].dy[r], on[0].dy[r], SLICE_ROOM * sizeof(float));
    }
    exchange_run(both);
    for (int d = 0; d < 2; ++d) ranks_fini(&on[d]);
    mem_free(&bias);
}

static void check_exchanges(Backend *device)
{
    const Shape whole[] = {{3, {2, 17, 33, 1}}, {3, {10, 17, 264, 1}}, {3, {1, 5, 1030, 1}}};
    for (int i = 0; i < 3; ++i)
        for (int kind = EXCHANGE_ENTER; kind <= EXCHANGE_KEYS; ++kind)
            check_exchange((ExchangeKind)kind, whole[i], device);
}

#endif
