/* Tests of the CUDA backend's flat functions, compared with the CPU's, and of its streams. */
#ifndef WEFT_TEST_CUDA_FLAT_CASES_H
#define WEFT_TEST_CUDA_FLAT_CASES_H

#include "cases.h"
#include "optim/rules.h"

enum { ARRAYS = 5, ELEMENTS = 3 * FLAT_CHUNK + 77 };

/* Reads counters of the emulated runtime: calls by the host, and calls that wait until a stream is
 * empty. The symbol is NULL on a real GPU. */
void emulate_counts(long *all, long *empty) __attribute__((weak));

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
        /* This array serves as a second moment, which is never negative. */
        if (i == 3)
            for (int k = 0; k < ELEMENTS; ++k) a->host[i][k] = fabsf(a->host[i][k]);
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
    /* ranges with any alignment */
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

/* Sums of squares of the chunks of several tensors with any alignment, in one launch, have the same
 * bits as those of each tensor alone. */
static void test_flat_chunks(void)
{
    static const struct {
        int64_t offset, elements;
    } tensor[] = {{0, 4100}, {4104, 3}, {4109, 4096}, {8207, 4097}};
    enum { TENSORS = 4, CHUNKS = 6 };
    Rig rig = {.backend = gpu};
    FlatChunk chunk[CHUNKS], *device_chunk = rig_alloc(&rig, sizeof chunk);
    double alone[CHUNKS], got[CHUNKS], host[CHUNKS];
    double *device[2] = {rig_alloc(&rig, sizeof got), rig_alloc(&rig, sizeof got)};
    Stream *s = gpu->table->stream(gpu);
    int count = 0;
    Arrays a;
    arrays_new(&a);
    for (int t = 0; t < TENSORS; ++t) {
        gpu->table->flat->squares(s, device[0] + count, a.device[0] + tensor[t].offset,
                                  tensor[t].elements);
        for (int64_t at = 0; at < tensor[t].elements; at += FLAT_CHUNK) {
            int64_t left = tensor[t].elements - at;
            chunk[count] =
                (FlatChunk){tensor[t].offset + at, left < FLAT_CHUNK ? left : FLAT_CHUNK, count};
            ++count;
        }
    }
    CU_ASSERT_EQUAL_FATAL(count, CHUNKS);
    rig_copy(&rig, device_chunk, chunk, sizeof chunk);
    gpu->table->flat->chunk_squares(s, device[1], a.device[0], device_chunk, CHUNKS);
    cpu->table->flat->chunk_squares(cpu->table->stream(cpu), host, a.host[0], chunk, CHUNKS);
    rig_copy(&rig, alone, device[0], sizeof alone);
    rig_copy(&rig, got, device[1], sizeof got);
    CU_ASSERT_EQUAL(memcmp(got, alone, sizeof got), 0);
    for (int i = 0; i < CHUNKS; ++i)
        CU_ASSERT_DOUBLE_EQUAL(got[i], host[i], allowed.elementwise.fp32 * host[i]);
    for (int i = 0; i < 2; ++i) rig_release(&rig, device[i], sizeof got);
    rig_release(&rig, device_chunk, sizeof chunk);
    arrays_check(&a, "squares", allowed.exact);
}

/* Exact sums have the same bits on the GPU and on the CPU, for numbers of any magnitude and for
 * NaN. */
static void test_flat_exact(void)
{
    enum { CHUNKS = (ELEMENTS + FLAT_CHUNK - 1) / FLAT_CHUNK };
    Rig rig = {.backend = gpu};
    Arrays a;
    const int64_t first[] = {0, CHUNKS / 2, CHUNKS};
    const FlatChunk chunk = {5, FLAT_CHUNK - 9, 0};
    SquareSum want[CHUNKS + 3], got[CHUNKS + 3];
    double want_value[2], value[2];
    int64_t *device_first = rig_alloc(&rig, sizeof first);
    FlatChunk *device_chunk = rig_alloc(&rig, sizeof chunk);
    SquareSum *device = rig_alloc(&rig, sizeof got);
    double *device_value = rig_alloc(&rig, sizeof value);
    Stream *s[2] = {cpu->table->stream(cpu), gpu->table->stream(gpu)};
    rig_copy(&rig, device_first, first, sizeof first);
    rig_copy(&rig, device_chunk, &chunk, sizeof chunk);
    arrays_new(&a);
    for (int i = 0; i < ELEMENTS; ++i) a.host[0][i] *= ldexpf(1, i % 97 * 2 - 97);
    for (int k = 0; k < 3; ++k) {
        static const float special[] = {1, INFINITY, NAN};
        if (k > 0) a.host[0][FLAT_CHUNK + 3] = special[k];
        rig_copy(&rig, a.device[0], a.host[0], ELEMENTS * sizeof(float));
        for (int d = 0; d < 2; ++d) {
            const FlatTable *f = d ? gpu->table->flat : cpu->table->flat;
            const float *x = d ? a.device[0] : a.host[0];
            SquareSum *out = d ? device : want;
            f->exact_squares(s[d], out, x, ELEMENTS);
            f->exact_chunk_squares(s[d], out + CHUNKS, x, d ? device_chunk : &chunk, 1);
            f->join_squares(s[d], out + CHUNKS + 1, d ? device_value : want_value, out,
                            d ? device_first : first, 2);
        }
        rig_copy(&rig, got, device, sizeof got);
        rig_copy(&rig, value, device_value, sizeof value);
        CU_ASSERT_EQUAL(memcmp(got, want, sizeof got), 0);
        CU_ASSERT(k == 2 || value[0] == want_value[0]);
        CU_ASSERT_EQUAL(value[1], want_value[1]);
        CU_ASSERT(k == 2 ? isnan(value[0]) : k == 1 ? isinf(value[0]) : isfinite(value[0]));
    }
    a.host[0][FLAT_CHUNK + 3] = 1;
    rig_copy(&rig, a.device[0], a.host[0], ELEMENTS * sizeof(float));
    rig_release(&rig, device_first, sizeof first);
    rig_release(&rig, device_chunk, sizeof chunk);
    rig_release(&rig, device, sizeof got);
    rig_release(&rig, device_value, sizeof value);
    arrays_check(&a, "squares", allowed.exact);
}

/* Returns the number of calls by the host for the norm of a gradient of `tensors` tensors. */
static long norm_calls(int tensors)
{
    enum { ELEMENTS_OF_ONE = 64 };
    Rig rig = {.backend = gpu};
    Optim *optim = NULL;
    Config *config = NULL;
    OptimRange *range = mem_new((size_t)tensors * sizeof *range);
    double *squares = mem_new((size_t)tensors * sizeof *squares);
    size_t bytes = (size_t)tensors * ELEMENTS_OF_ONE * sizeof(float);
    float *host = mem_new(bytes), *grads = rig_alloc(&rig, bytes);
    long calls[2] = {0}, waits;
    for (int i = 0; i < tensors; ++i)
        range[i] = (OptimRange){.offset = i * ELEMENTS_OF_ONE, .elements = ELEMENTS_OF_ONE};
    for (int i = 0; i < tensors * ELEMENTS_OF_ONE; ++i) host[i] = (float)(1 + i / ELEMENTS_OF_ONE);
    rig_copy(&rig, grads, host, bytes);
    CHECK_OK(config_parse(&config, "test", "data: {train: x.h5}\noptim: {name: sgd}\n", 0, NULL));
    CHECK_OK(optim_new(&optim, config, gpu, range, tensors, tensors * ELEMENTS_OF_ONE));
    if (emulate_counts) emulate_counts(&calls[0], &waits);
    optim_grad_squares(optim, grads, squares);
    if (emulate_counts) emulate_counts(&calls[1], &waits);
    for (int i = 0; i < tensors; ++i)
        CU_ASSERT_EQUAL(squares[i], ELEMENTS_OF_ONE * (1.0 + i) * (1.0 + i));
    optim_free(&optim);
    config_free(&config);
    rig_release(&rig, grads, bytes);
    mem_free(&host);
    mem_free(&squares);
    mem_free(&range);
    return calls[1] - calls[0];
}

/* The norm takes the same number of launches for any number of tensors. */
static void test_flat_norm(void)
{
    long few = norm_calls(2), many = norm_calls(148);
    if (emulate_counts) printf("  %ld calls for the norm of 148 tensors\n", many);
    CU_ASSERT_EQUAL(few, many);
}

/* Copies rows with small pitches, without gaps on one or both sides, and with a pitch of 2 GiB. */
static void test_copy_rows(void)
{
    const size_t far = (size_t)1 << 31, width = 48;
    const struct {
        size_t to_pitch, from_pitch, rows;
    } cases[] = {{48, 48, 5}, {64, 48, 5}, {48, 64, 5}, {80, 64, 3}, {48, far, 2}, {far, 48, 1}};
    Rig rig = {.backend = gpu};
    Stream *s = gpu->table->stream(gpu);
    char *from = rig_alloc(&rig, far + width), *to = rig_alloc(&rig, 512);
    char sent[512], got[512], expected[512];
    for (size_t i = 0; i < sizeof sent; ++i) sent[i] = (char)(i * 7 + 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        memset(expected, 0x55, sizeof expected);
        rig_copy(&rig, to, expected, sizeof expected);
        for (size_t r = 0; r < cases[i].rows; ++r) {
            rig_copy(&rig, from + r * cases[i].from_pitch, sent + r * width, width);
            memcpy(expected + r * cases[i].to_pitch, sent + r * width, width);
        }
        gpu->table->copy_rows(s, to, cases[i].to_pitch, from, cases[i].from_pitch, width,
                              cases[i].rows);
        rig_copy(&rig, got, to, sizeof got);
        CU_ASSERT_EQUAL(memcmp(got, expected, sizeof got), 0);
    }
    rig_release(&rig, to, 512);
    rig_release(&rig, from, far + width);
}

/* Cuts the first four arrays, the average in the last one, and the copy, an array of 16-bit
 * numbers, into PIECES pieces of different lengths, some of them empty and some of several blocks,
 * with and without weight decay. aligned: true if all pieces begin at multiples of 16 bytes. copy:
 * may be NULL. */
enum { PIECES = 150 };
static void cut(UpdatePiece piece[PIECES], float **v, bool average, uint16_t *copy, bool aligned)
{
    int64_t from = 0;
    for (int i = 0; i < PIECES; ++i) {
        const int64_t left = ELEMENTS - from, length = i % 40 == 3 ? 1500 : i * 17 % 80;
        const int64_t n = i + 1 == PIECES || length > left ? left : length;
        piece[i] = (UpdatePiece){.w = v[0] + from,
                                 .g = v[1] + from,
                                 .m = v[2] + from,
                                 .v = v[3] + from,
                                 .average = average ? v[4] + from : NULL,
                                 .copy = copy ? copy + from : NULL,
                                 .n = n,
                                 .weight_decay = 0.01f * (float)(i % 3)};
        from += aligned ? (n + 7) / 8 * 8 : n;
        if (from > ELEMENTS) from = ELEMENTS;
    }
}

/* How test_flat_updates divides the arrays. */
typedef enum Cut { CUT_NONE, CUT_ALIGNED, CUT_ANYWHERE, CUTS } Cut;

/* Checks that the elements of the pieces have been copied from w, rounded to `type`, and no
 * others. w, copy: in the GPU's memory; copy was filled with bytes 0x55. */
static void check_copy(const UpdatePiece *piece, int count, DType type, const float *w,
                       const uint16_t *copy)
{
    Rig rig = {.backend = gpu};
    float *value = mem_new(ELEMENTS * sizeof *value);
    uint16_t *got = mem_new(ELEMENTS * sizeof *got), *expected = mem_new(ELEMENTS * sizeof *got);
    rig_copy(&rig, value, w, ELEMENTS * sizeof *value);
    rig_copy(&rig, got, copy, ELEMENTS * sizeof *got);
    memset(expected, 0x55, ELEMENTS * sizeof *expected);
    for (int i = 0; i < count; ++i)
        for (int64_t k = piece[i].w - w; k < piece[i].w - w + piece[i].n; ++k)
            expected[k] = type == DTYPE_BF16 ? bf16_of(value[k]).bits : f16_of(value[k]).bits;
    CU_ASSERT_EQUAL(memcmp(got, expected, ELEMENTS * sizeof *got), 0);
    mem_free(&value);
    mem_free(&got);
    mem_free(&expected);
}

/* Runs update number `rule` on the CPU and on the GPU, and compares them. */
static void check_update(int rule, Cut kind)
{
    SgdArgs sgd = {.lr = 0.1f,
                   .momentum = rule == 6 ? 0 : 0.9f,
                   .grad_scale = 0.5f,
                   .average_rate = 0.25f,
                   .copy_type = rule == 0 ? DTYPE_F16 : DTYPE_BF16,
                   .nesterov = rule & 1,
                   .m_is_empty = rule & 2};
    AdamArgs adam = {.lr = 0.01f,
                     .beta1 = 0.9f,
                     .beta2 = 0.99f,
                     .eps = 1e-3f,
                     .grad_scale = 2,
                     .average_rate = 0.25f,
                     .copy_type = rule == 4 ? DTYPE_F16 : DTYPE_BF16,
                     .correct1 = 0.19f,
                     .correct2 = 0.0199f,
                     .decoupled = rule == 5};
    const int count = kind == CUT_NONE ? 1 : PIECES;
    const bool is_adam = rule == 4 || rule == 5, is_direction = rule == 7;
    Rig rig = {.backend = gpu};
    uint16_t *filled = mem_new(ELEMENTS * sizeof *filled),
             *copy = rig_alloc(&rig, ELEMENTS * sizeof *copy);
    memset(filled, 0x55, ELEMENTS * sizeof *filled);
    rig_copy(&rig, copy, filled, ELEMENTS * sizeof *copy);
    Arrays a;
    arrays_new(&a);
    for (int d = 0; d < 2; ++d) {
        const FlatTable *f = d ? gpu->table->flat : cpu->table->flat;
        Stream *s = d ? gpu->table->stream(gpu) : cpu->table->stream(cpu);
        float **v = d ? a.device : a.host;
        UpdatePiece piece[PIECES] = {{.w = v[0],
                                      .g = v[1],
                                      .m = rule == 6 ? NULL : v[2],
                                      .v = v[3],
                                      .average = rule & 1 ? v[4] : NULL,
                                      .copy = d ? copy : NULL,
                                      .n = ELEMENTS,
                                      .weight_decay = is_adam || is_direction ? 0.1f : 0.01f}};
        long before = 0, after = 0, empty;
        if (kind != CUT_NONE) cut(piece, v, rule & 1, d ? copy : NULL, kind == CUT_ALIGNED);
        if (emulate_counts) emulate_counts(&before, &empty);
        if (is_adam)
            f->adam(s, &adam, piece, count);
        else if (is_direction)
            f->adam_direction(s, &adam, v[4], piece);
        else
            f->sgd(s, &sgd, piece, count);
        if (emulate_counts) emulate_counts(&after, &empty);
        /* a launch updates up to 56 pieces */
        if (d && emulate_counts) CU_ASSERT_EQUAL(after - before, kind == CUT_NONE ? 1 : 3);
        if (d)
            check_copy(piece, is_direction ? 0 : count, is_adam ? adam.copy_type : sgd.copy_type,
                       v[0], copy);
    }
    arrays_check(&a,
                 is_adam        ? "adam"
                 : is_direction ? "adam_direction"
                                : "sgd",
                 allowed.elementwise);
    rig_release(&rig, copy, ELEMENTS * sizeof *copy);
    mem_free(&filled);
}

/* SGD with rules 0 to 3 (Nesterov momentum, first updates) and 6 (without momentum), Adam with 4
 * and 5, a direction with 7. Odd rules also update an average, in the last array. */
static void test_flat_updates(void)
{
    for (int rule = 0; rule < 8; ++rule)
        for (Cut kind = 0; kind < CUTS; ++kind)
            if (kind == CUT_NONE || rule != 7) check_update(rule, kind);
}

/* Every rule with update_pieces writes the copies: the operations that read them are not refreshed
 * after an update. */
static void test_rule_copies(void)
{
    enum { TENSORS = 3, FLOATS = ELEMENTS / TENSORS / 16 * 16, ROOM = TENSORS * FLOATS };
    Rig rig = {.backend = gpu};
    for (int r = 0; optim_rule_at(r); ++r) {
        const OptimTable *table = optim_rule_at(r);
        if (!table->update_pieces) continue;
        char *text = mem_format("data: {train: x.h5}\noptim: {name: %s}\n", table->word.word);
        Config *config = NULL;
        Optim *optim = NULL;
        Arrays a;
        arrays_new(&a);
        CHECK_OK(config_parse(&config, "test", text, 0, NULL));
        OptimRange range[TENSORS];
        UpdatePiece piece[TENSORS];
        uint16_t *filled = mem_new(ELEMENTS * sizeof *filled),
                 *copy = rig_alloc(&rig, ELEMENTS * sizeof *copy);
        void *copies[TENSORS];
        memset(filled, 0x55, ELEMENTS * sizeof *filled);
        rig_copy(&rig, copy, filled, ELEMENTS * sizeof *copy);
        for (int i = 0; i < TENSORS; ++i) {
            range[i] = (OptimRange){.offset = i * FLOATS, .elements = FLOATS - i, .decay = i & 1};
            copies[i] = i == 1 ? NULL : copy + i * FLOATS;
            piece[i] = (UpdatePiece){.w = a.device[0] + i * FLOATS, .n = i == 1 ? 0 : FLOATS - i};
        }
        CHECK_OK(optim_new(&optim, config, gpu, range, TENSORS, ROOM));
        CU_ASSERT_FATAL(optim_can_copy(optim));
        optim_use_copies(optim, copies, DTYPE_BF16);
        optim_step(optim, a.device[0], a.device[1], 0.1, 1);
        check_copy(piece, TENSORS, DTYPE_BF16, a.device[0], copy);
        optim_free(&optim);
        config_free(&config);
        rig_release(&rig, copy, ELEMENTS * sizeof *copy);
        for (int i = 0; i < ARRAYS; ++i) {
            rig_release(&rig, a.device[i], ELEMENTS * sizeof(float));
            mem_free(&a.host[i]);
        }
        mem_free(&filled);
        mem_free(&text);
    }
}

/* Updates of the average without an optimizer, with the rate in the arguments or in the backend's
 * memory, and swaps of two arrays. Both are also tested with ranges of any alignment. */
static void test_flat_average(void)
{
    const UpdateNumbers numbers = {.average_rate = 0.75f};
    Rig rig = {.backend = gpu};
    UpdateNumbers *device_now = rig_alloc(&rig, sizeof numbers);
    Arrays a;
    arrays_new(&a);
    rig_copy(&rig, device_now, &numbers, sizeof numbers);
    for (int d = 0; d < 2; ++d) {
        const FlatTable *f = d ? gpu->table->flat : cpu->table->flat;
        Stream *s = d ? gpu->table->stream(gpu) : cpu->table->stream(cpu);
        float **v = d ? a.device : a.host;
        f->average(s, (Average){v[0], 0.25f}, NULL, v[1], ELEMENTS);
        f->average(s, (Average){v[2] + 3, 0.25f}, d ? device_now : &numbers, v[1] + 1,
                   ELEMENTS - 5);
        f->swap(s, v[0], v[3], ELEMENTS - 1);
        f->swap(s, v[4] + 1, v[2] + 2, 1003);
    }
    arrays_check(&a, "average", allowed.elementwise);
    rig_release(&rig, device_now, sizeof numbers);
}

/* A second stream waits for an event of the first. */
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
