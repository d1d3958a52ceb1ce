/* The flat functions of the CUDA backend against the CPU's, and streams. */
#ifndef WEFT_TEST_CUDA_FLAT_CASES_H
#define WEFT_TEST_CUDA_FLAT_CASES_H

#include "cases.h"

enum { ARRAYS = 4, ELEMENTS = 3 * FLAT_CHUNK + 77 };

typedef struct Arrays {
    /* owned */
    float *host[ARRAYS], *device[ARRAYS];
} Arrays;

static void arrays_new(Arrays *a)
{
    Rig rig = {.backend = gpu};
    for (int i = 0; i < ARRAYS; ++i) {
        a->host[i] = mem_new(ELEMENTS * sizeof(float));
        fill(a->host[i], ELEMENTS, 1);
        if (i == 3)
            for (int k = 0; k < ELEMENTS; ++k)
                a->host[i][k] = fabsf(a->host[i][k]); /* a second moment */
        a->device[i] = rig_alloc(&rig, ELEMENTS * sizeof(float));
        rig_copy(&rig, a->device[i], a->host[i], ELEMENTS * sizeof(float));
    }
}

static void arrays_check(Arrays *a, const char *name, Bound bound)
{
    Rig rig = {.backend = gpu};
    float *got = mem_new(ELEMENTS * sizeof *got);
    for (int i = 0; i < ARRAYS; ++i) {
        char array[32];
        rig_copy(&rig, got, a->device[i], ELEMENTS * sizeof(float));
        snprintf(array, sizeof array, "array %d", i);
        compare(name, gpu, PART_Y, bound, name, array, got, a->host[i], ELEMENTS);
        rig_release(&rig, a->device[i], ELEMENTS * sizeof(float));
        mem_free(&a->host[i]);
    }
    mem_free(&got);
}

static void test_flat_sums(void)
{
    const FlatTable *f[2] = {cpu->table->flat, gpu->table->flat};
    Stream *s[2] = {cpu->table->stream(cpu), gpu->table->stream(gpu)};
    Arrays a;
    arrays_new(&a);
    for (int d = 0; d < 2; ++d) {
        float **v = d ? a.device : a.host;
        f[d]->add(s[d], v[0], v[1], v[2], ELEMENTS);
        f[d]->add(s[d], v[1], v[1], v[2], ELEMENTS - 5);
    }
    arrays_check(&a, "flat add", allowed.exact);
    arrays_new(&a);
    /* ranges that begin anywhere */
    for (int d = 0; d < 2; ++d) {
        float **v = d ? a.device : a.host;
        f[d]->add(s[d], v[0] + 1, v[1] + 2, v[2] + 3, ELEMENTS - 5);
        f[d]->scale_add(s[d], v[1] + 3, 2, v[2] + 1, 0, 77);
        f[d]->fill(s[d], v[3] + 1, 0.5f, 1001);
    }
    arrays_check(&a, "unaligned add", allowed.exact);
    arrays_new(&a);
    for (int d = 0; d < 2; ++d) {
        float **v = d ? a.device : a.host;
        f[d]->scale_add(s[d], v[0], 0.3f, v[1], 0.7f, ELEMENTS);
        f[d]->scale_add(s[d], v[2], -2.0f, v[3], 0, ELEMENTS);
    }
    arrays_check(&a, "scale_add", allowed.elementwise);
}

static void test_flat_squares(void)
{
    enum { CHUNKS = (ELEMENTS + FLAT_CHUNK - 1) / FLAT_CHUNK };
    Rig rig = {.backend = gpu};
    Arrays a;
    double expected[CHUNKS], got[CHUNKS], *device = rig_alloc(&rig, sizeof got);
    arrays_new(&a);
    cpu->table->flat->squares(cpu->table->stream(cpu), expected, a.host[0], ELEMENTS);
    gpu->table->flat->squares(gpu->table->stream(gpu), device, a.device[0], ELEMENTS);
    rig_copy(&rig, got, device, sizeof got);
    for (int i = 0; i < CHUNKS; ++i)
        CU_ASSERT_DOUBLE_EQUAL(got[i], expected[i], allowed.elementwise.fp32 * expected[i]);
    rig_release(&rig, device, sizeof got);
    arrays_check(&a, "squares", allowed.exact);
}

static void test_flat_updates(void)
{
    const FlatTable *f[2] = {cpu->table->flat, gpu->table->flat};
    Stream *s[2] = {cpu->table->stream(cpu), gpu->table->stream(gpu)};
    for (int rule = 0; rule < 8; ++rule) {
        SgdArgs sgd = {.lr = 0.1f,
                       .momentum = rule == 6 ? 0 : 0.9f,
                       .weight_decay = 0.01f,
                       .grad_scale = 0.5f,
                       .nesterov = rule & 1,
                       .first = rule & 2};
        AdamArgs adam = {.lr = 0.01f,
                         .beta1 = 0.9f,
                         .beta2 = 0.99f,
                         .eps = 1e-3f,
                         .weight_decay = 0.1f,
                         .grad_scale = 2,
                         .correct1 = 0.19f,
                         .correct2 = 0.0199f,
                         .decoupled = rule == 5};
        Arrays a;
        arrays_new(&a);
        for (int d = 0; d < 2; ++d) {
            float **v = d ? a.device : a.host;
            if (rule < 4)
                f[d]->sgd(s[d], &sgd, v[0], v[1], v[2], ELEMENTS);
            else if (rule < 6)
                f[d]->adam(s[d], &adam, v[0], v[1], v[2], v[3], ELEMENTS);
            else if (rule == 6)
                f[d]->sgd(s[d], &sgd, v[0], v[1], NULL, ELEMENTS);
            else
                f[d]->adam_direction(s[d], &adam, v[0], v[0], v[1], v[2], v[3], ELEMENTS);
        }
        arrays_check(&a,
                     rule < 4 || rule == 6 ? "sgd"
                     : rule < 6            ? "adam"
                                           : "adam_direction",
                     allowed.elementwise);
    }
}

/* A second stream waits for the first one's event. */
static void test_streams(void)
{
    const BackendTable *t = gpu->table;
    Stream *other = t->stream_new(gpu), *compute = t->stream(gpu);
    Event *event = t->event_new(gpu);
    Rig rig = {.backend = gpu};
    float *host = mem_new(LARGEST * sizeof *host), *a = rig_alloc(&rig, LARGEST * sizeof *a);
    CU_ASSERT_PTR_NOT_NULL(t->stream_handle(other));
    fill(host, LARGEST, 1);
    t->copy(compute, a, host, LARGEST * sizeof *a);
    for (int i = 0; i < 100; ++i) t->flat->scale_add(compute, a, 0, a, 1, LARGEST);
    t->flat->add(compute, a, a, a, LARGEST);
    t->event_record(event, compute);
    t->event_wait(event, other);
    t->flat->add(other, a, a, a, LARGEST);
    t->sync(other);
    float *got = mem_new(LARGEST * sizeof *got);
    rig_copy(&rig, got, a, LARGEST * sizeof *a);
    for (int i = 0; i < LARGEST; ++i) host[i] *= 4;
    compare("flat add", gpu, PART_Y, allowed.exact, "streams", "a", got, host, LARGEST);
    t->flat->fill(compute, a, 2.5f, LARGEST);
    rig_copy(&rig, got, a, LARGEST * sizeof *a);
    for (int i = 0; i < LARGEST; ++i) host[i] = 2.5f;
    compare("fill", gpu, PART_Y, allowed.exact, "fill", "a", got, host, LARGEST);
    rig_release(&rig, a, LARGEST * sizeof *a);
    t->event_free(&event);
    t->stream_free(&other);
    mem_free(&host);
    mem_free(&got);
}

#endif
