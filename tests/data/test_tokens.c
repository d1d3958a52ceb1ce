/* Tests token sets: opening every type and byte order; every window once per epoch for any number
 * of replicas, with labels one token later; parts left out; refused files. */
#include "fixture.h"

enum { VOCAB = 97 };

static int token_of(int64_t i)
{
    return (int)(((uint64_t)i * 2654435761u >> 9) % VOCAB);
}

/* Writes a weft token set of n tokens; vocab 0: without the attribute; chunk 0: contiguous. */
static const char *tokens_file(const char *name, hid_t stored, int64_t n, int vocab, hsize_t chunk)
{
    const char *path = in_scratch(name);
    int32_t *token = mem_new((size_t)n * sizeof *token);
    for (int64_t i = 0; i < n; ++i) token[i] = token_of(i);
    H5Array a = {"tokens",     stored,  H5T_NATIVE_INT32, 1,
                 {(hsize_t)n}, {chunk}, chunk ? 4 : 0,    token};
    hid_t file = h5_new(path);
    h5_put(file, a);
    h5_put_word(file, "format", "weft-data");
    h5_put_word(file, "kind", "tokens");
    h5_put_int(file, "version", 1);
    if (vocab) h5_put_int(file, "vocab", vocab);
    H5Fclose(file);
    mem_free(&token);
    return path;
}

static Config config_tokens(int64_t context)
{
    Config c = config_plain();
    c.model.context = context;
    return c;
}

static Loader *loader_of(const DataSet *set, const Config *c, LoaderPlan plan)
{
    Loader *l = NULL;
    CHECK_OK(loader_new(&l, set, c, plan));
    return l;
}

/* Counts wrong values in a micro-batch; tokens or labels may be NULL. */
static int batch_wrong(const MicroBatch *b, int64_t n, int64_t context)
{
    int bad = b->x != NULL || b->targets != NULL;
    for (int64_t r = 0; r < n; ++r)
        for (int64_t t = 0; t < context; ++t) {
            bool real = r < b->rows;
            int64_t at = b->sample[r] * context + t;
            if (b->tokens) bad += b->tokens[r * context + t] != (real ? token_of(at) : 0);
            if (b->labels) bad += b->labels[r * context + t] != (real ? token_of(at + 1) : 0);
        }
    return bad;
}

static void types(void)
{
    const struct {
        const char *name;
        hid_t stored;
        ElementType type;
        hsize_t chunk;
        bool direct;
    } t[] = {{"u8.h5", H5T_STD_U8LE, ELEM_U8, 0, true},
             {"u16.h5", H5T_STD_U16LE, ELEM_U16, 0, true},
             {"u32.h5", H5T_STD_U32LE, ELEM_U32, 0, true},
             {"u16be.h5", H5T_STD_U16BE, ELEM_U16, 0, false},
             {"u32be.h5", H5T_STD_U32BE, ELEM_U32, 0, false},
             {"i32.h5", H5T_STD_I32LE, ELEM_I32, 0, true},
             {"i64.h5", H5T_STD_I64LE, ELEM_I64, 0, true},
             {"u16chunk.h5", H5T_STD_U16LE, ELEM_U16, 30, false}};
    for (size_t i = 0; i < sizeof t / sizeof t[0]; ++i) {
        DataSet set;
        Config c = config_tokens(9);
        CHECK_OK(
            data_set_open(&set, &c, tokens_file(t[i].name, t[i].stored, 200, VOCAB, t[i].chunk)));
        CU_ASSERT_EQUAL(set.kind, DATA_TOKENS);
        CU_ASSERT_EQUAL(set.x.type, t[i].type);
        CU_ASSERT_EQUAL(set.x.offset > 0, t[i].direct);
        CU_ASSERT(set.samples == 22 && set.context == 9 && set.vocab == VOCAB);
        CHECK_OK(data_set_check(&set, 0));
        CHECK_OK(data_set_check_labels(&set));
        Loader *l = loader_of(
            &set, &c,
            (LoaderPlan){
                .batch = 8, .micro_batch = 8, .micro_count = 1, .training = true, .slots = 2});
        for (int k = 0; l && k < 6; ++k) {
            const MicroBatch *b;
            CHECK_OK(loader_next(l, &b, NULL));
            CU_ASSERT_EQUAL(batch_wrong(b, 8, 9), 0);
            loader_release(l);
        }
        loader_free(&l);
    }
}

/* Reads two epochs of one grid and counts how often each window occurs. */
static void once_each(const DataSet *set, const Config *c, int replicas, int per, int micro)
{
    int64_t n = set->samples, batch = (int64_t)replicas * per * micro;
    int64_t steps = data_steps_per_epoch(n, batch);
    int *seen = mem_new((size_t)n * 2 * sizeof *seen), bad = 0;
    for (int r = 0; r < replicas; ++r) {
        LoaderPlan plan = {.batch = batch,
                           .micro_batch = micro,
                           .micro_first = r * per,
                           .micro_count = per,
                           .training = true,
                           .slots = 3};
        Loader *l = loader_of(set, c, plan);
        for (int64_t i = 0; l && i < 2 * steps * per; ++i) {
            const MicroBatch *b;
            CHECK_OK(loader_next(l, &b, NULL));
            int64_t epoch = i / (steps * per), first = b->step * batch + b->micro * micro;
            bad += b->epoch != epoch || b->step != i / per % steps || b->micro != r * per + i % per;
            for (int row = 0; row < b->rows; ++row) {
                bad += b->sample[row] != sampler_at(n, 7, epoch, first + row);
                ++seen[epoch * n + b->sample[row]];
            }
            bad += batch_wrong(b, micro, set->context);
            loader_release(l);
        }
        loader_free(&l);
    }
    for (int64_t i = 0; i < 2 * n; ++i) bad += seen[i] != 1;
    if (bad) printf("  n %lld, %d replicas, %d of %d\n", (long long)n, replicas, per, micro);
    CU_ASSERT_EQUAL(bad, 0);
    mem_free(&seen);
}

static void every_window_once(void)
{
    /* numbers of tokens, which make 1, 1, 10 and 100 windows */
    static const int n[] = {6, 7, 52, 503};
    for (size_t i = 0; i < sizeof n / sizeof n[0]; ++i) {
        DataSet set;
        Config c = config_tokens(5);
        CHECK_OK(data_set_open(&set, &c, tokens_file("once.h5", H5T_STD_U16LE, n[i], VOCAB, 0)));
        CU_ASSERT_EQUAL(set.samples, (n[i] - 1) / 5);
        for (int replicas = 1; replicas <= 4; ++replicas)
            for (int per = 1; per <= 3; per += 2)
                for (int micro = 1; micro <= 4; micro += 3)
                    once_each(&set, &c, replicas, per, micro);
    }
}

static void evaluation(void)
{
    DataSet set;
    Config c = config_tokens(4);
    const MicroBatch *b;
    int64_t next = 0;
    CHECK_OK(data_set_open(&set, &c, tokens_file("eval.h5", H5T_STD_U8LE, 93, VOCAB, 0)));
    Loader *l = loader_of(&set, &c,
                          (LoaderPlan){.batch = 5, .micro_batch = 5, .micro_count = 1, .slots = 2});
    for (;;) {
        CHECK_OK(loader_next(l, &b, NULL));
        if (!b) break;
        for (int r = 0; r < b->rows; ++r) CU_ASSERT_EQUAL(b->sample[r], next++);
        CU_ASSERT_EQUAL(batch_wrong(b, 5, 4), 0);
        loader_release(l);
    }
    /* The last window ends with the last token. */
    CU_ASSERT_EQUAL(next, 23);
    loader_free(&l);
}

/* Sample numbers and rows are always present; a rank that needs neither tokens nor labels reads
 * nothing. */
static void parts(void)
{
    for (int part = 0; part < 4; ++part) {
        bool skips_inputs = part & 1, skips_labels = part & 2;
        DataSet set;
        Config c = config_tokens(5);
        CHECK_OK(data_set_open(&set, &c, tokens_file("parts.h5", H5T_STD_U16LE, 99, VOCAB, 0)));
        /* Any token that is read would be refused. */
        if (skips_inputs && skips_labels) set.vocab = 1;
        Loader *l = loader_of(&set, &c,
                              (LoaderPlan){.batch = 8,
                                           .micro_batch = 4,
                                           .micro_first = 1,
                                           .micro_count = 1,
                                           .training = true,
                                           .skips_inputs = skips_inputs,
                                           .skips_labels = skips_labels,
                                           .slots = 2});
        for (int64_t step = 0; l && step < 3; ++step) {
            const MicroBatch *b;
            CHECK_OK(loader_next(l, &b, NULL));
            CU_ASSERT(b->step == step && b->micro == 1 && b->rows == (step < 2 ? 4 : 0));
            CU_ASSERT(!b->tokens == skips_inputs && !b->labels == skips_labels);
            for (int r = 0; r < b->rows; ++r)
                CU_ASSERT_EQUAL(b->sample[r], sampler_at(19, 7, 0, step * 8 + 4 + r));
            CU_ASSERT_EQUAL(batch_wrong(b, 4, 5), 0);
            loader_release(l);
        }
        loader_free(&l);
    }
}

/* Samples too long to be mapped are read by pread. */
static void long_samples(void)
{
    enum { CONTEXT = 20000, N = 3 * CONTEXT + 17 };
    DataSet set;
    Config c = config_tokens(CONTEXT);
    const MicroBatch *b;
    CHECK_OK(data_set_open(&set, &c, tokens_file("long.h5", H5T_STD_U32LE, N, VOCAB, 0)));
    Loader *l = loader_of(
        &set, &c,
        (LoaderPlan){.batch = 2, .micro_batch = 2, .micro_count = 1, .training = true, .slots = 2});
    for (int i = 0; l && i < 4; ++i) {
        CHECK_OK(loader_next(l, &b, NULL));
        CU_ASSERT_EQUAL(batch_wrong(b, 2, CONTEXT), 0);
        loader_release(l);
    }
    loader_free(&l);
}

static void sizes(void)
{
    DataSet set;
    Config c = config_plain();
    const char *path = tokens_file("sizes.h5", H5T_STD_U16LE, 3000, VOCAB, 0);
    CHECK_OK(data_set_open(&set, NULL, path));
    CU_ASSERT(set.context == 256 && set.samples == 11);
    Shape shape = data_set_shape(&set, 8);
    CU_ASSERT(shape.ndim == 2 && shape.dim[0] == 8 && shape.dim[1] == 256);
    c.model.size = GPT_124M;
    CHECK_OK(data_set_open(&set, &c, path));
    CU_ASSERT(set.context == 1024 && set.samples == 2);
    c.model.context = 100;
    c.model.vocab = 128;
    CHECK_OK(data_set_open(&set, &c, path));
    CU_ASSERT(set.context == 100 && set.samples == 29 && set.vocab == 128);
    c.model.vocab = 96;
    CHECK_FAILS(data_set_open(&set, &c, path), ERR_CONFIG, "has 97 tokens, model.vocab is 96");
    c.model.vocab = 0;
    c.model.context = 2999;
    CHECK_OK(data_set_open(&set, &c, path));
    CU_ASSERT_EQUAL(set.samples, 1);
    c.model.context = 3000;
    CHECK_FAILS(data_set_open(&set, &c, path), ERR_DATA, "set a smaller model.context");
    /* Without the attribute, the vocabulary follows from the tokens. */
    c.model.context = 8;
    CHECK_OK(data_set_open(&set, &c, tokens_file("plain.h5", H5T_STD_U16LE, 900, 0, 0)));
    CU_ASSERT_EQUAL(set.vocab, VOCAB);
    CHECK_OK(data_set_open(&set, &c, tokens_file("bytes.h5", H5T_STD_U8LE, 900, 0, 0)));
    CU_ASSERT_EQUAL(set.vocab, 256);
}

/* Reads a file of another program: integers in one dimension, under another name. */
static void other_names(void)
{
    const char *path = in_scratch("own.h5");
    int16_t id[40];
    float real[40] = {0};
    for (int i = 0; i < 40; ++i) id[i] = (int16_t)token_of(i);
    hid_t file = h5_new(path);
    h5_put(file, (H5Array){"ids", H5T_STD_I16BE, H5T_NATIVE_INT16, 1, {40}, {0}, 0, id});
    h5_put(file, (H5Array){"real", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 1, {40}, {0}, 0, real});
    id[33] = -4;
    h5_put(file, (H5Array){"bad", H5T_STD_I16LE, H5T_NATIVE_INT16, 1, {40}, {0}, 0, id});
    H5Fclose(file);
    DataSet set;
    Config c = config_tokens(6);
    const MicroBatch *b;
    c.data.x = (char *)"/ids";
    CHECK_OK(data_set_open(&set, &c, path));
    CU_ASSERT(set.kind == DATA_TOKENS && set.samples == 6 && set.vocab <= VOCAB);
    Loader *l = loader_of(
        &set, &c,
        (LoaderPlan){.batch = 6, .micro_batch = 6, .micro_count = 1, .training = true, .slots = 2});
    CHECK_OK(loader_next(l, &b, NULL));
    CU_ASSERT_EQUAL(batch_wrong(b, 6, 6), 0);
    loader_free(&l);
    c.data.x = (char *)"/real";
    CHECK_FAILS(data_set_open(&set, &c, path), ERR_DATA, "tokens integers (N)");
    c.data.x = (char *)"/bad";
    CHECK_FAILS(data_set_open(&set, &c, path), ERR_DATA, "token 33 of /bad is -4");
}

static void refused(void)
{
    DataSet set;
    Config c = config_tokens(5);
    Loader *l = NULL;
    const MicroBatch *b;
    LoaderPlan plan = {.batch = 4, .micro_batch = 4, .micro_count = 1, .slots = 2};
    CHECK_OK(data_set_open(&set, &c, tokens_file("bad.h5", H5T_STD_U16LE, 200, VOCAB, 0)));
    int64_t first = 0;
    char text[80];
    set.vocab = 90;
    while (token_of(first) < 90) ++first;
    snprintf(text, sizeof text, "bad.h5: token %lld of /tokens is %d", (long long)first,
             token_of(first));
    CHECK_FAILS(data_set_check(&set, 0), ERR_DATA, text);
    l = loader_of(&set, &c, plan);
    Status st = OK;
    for (int i = 0; st == OK && i < 20; ++i) {
        st = loader_next(l, &b, NULL);
        if (st == OK) loader_release(l);
    }
    CHECK_FAILS(st, ERR_DATA, text);
    loader_free(&l);
    c.train.loss = loss_number("mse");
    CHECK_FAILS(loader_new(&l, &set, &c, plan), ERR_CONFIG, "train.loss: softmax");
    c.train.loss = loss_number("softmax");
    c.data.augment = AUGMENT_FLIP;
    plan.training = true;
    CHECK_FAILS(loader_new(&l, &set, &c, plan), ERR_CONFIG, "holds no images");
    const char *path = in_scratch("real.h5");
    float real[40] = {0};
    hid_t file = h5_new(path);
    h5_put(file, (H5Array){"tokens", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 1, {40}, {0}, 0, real});
    h5_put_word(file, "format", "weft-data");
    h5_put_word(file, "kind", "tokens");
    h5_put_int(file, "version", 1);
    H5Fclose(file);
    CHECK_FAILS(data_set_open(&set, NULL, path), ERR_DATA, "must be one row of integers");
}

static void print(void)
{
    DataSet set;
    Config c = config_tokens(10);
    char text[2000] = "";
    CHECK_OK(data_set_open(&set, &c, tokens_file("print.h5", H5T_STD_U16LE, 1000, VOCAB, 0)));
    FILE *f = fmemopen(text, sizeof text, "w");
    CHECK_OK(data_set_print(&set, f, true));
    fclose(f);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"kind\": \"tokens\", \"samples\": 99"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"tokens\": 1000, \"context\": 10, \"vocab\": 97}"));
    f = fmemopen(text, sizeof text, "w");
    CHECK_OK(data_set_print(&set, f, false));
    fclose(f);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "tokens data set, 99 samples"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "1000 uint16"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "vocab     97"));
}

/* If an array is missing, the message names the key for other programs' files; weft's own sets have
 * fixed names. */
static void array_names(void)
{
    Config c = config_tokens(4);
    DataSet set;
    int32_t token[40] = {1, 2, 3};
    const H5Array a = {"tokens", H5T_STD_U16LE, H5T_NATIVE_INT32, 1, {40}, {0}, 0, token};
    const char *path = in_scratch("theirs.h5");
    hid_t file = h5_new(path);
    h5_put(file, a);
    H5Fclose(file);
    CHECK_FAILS(data_set_open(&set, &c, path), ERR_DATA,
                "only /tokens; to use that: data.x=/tokens");
    c.data.x = (char *)"/tokens";
    CHECK_OK(data_set_open(&set, &c, path));
    CU_ASSERT_EQUAL(set.x.dim[0], 40);
    c.data.x = (char *)"/x";
    file = h5_new(path);
    h5_put(file, (H5Array){"ids", H5T_STD_U16LE, H5T_NATIVE_INT32, 1, {40}, {0}, 0, token});
    h5_put_word(file, "format", "weft-data");
    h5_put_word(file, "kind", "tokens");
    h5_put_int(file, "version", 1);
    H5Fclose(file);
    CHECK_FAILS(data_set_open(&set, &c, path), ERR_DATA,
                "holds no data set /tokens, which a weft data set of its kind has; there is /ids");
    CU_ASSERT_PTR_NULL(strstr(fail_message(), "data.x"));
}

TEST_MAIN("tokens", {"types and byte orders", types}, {"every window once", every_window_once},
          {"evaluation", evaluation}, {"without x, without y", parts},
          {"long samples", long_samples}, {"context and vocabulary", sizes},
          {"own names", other_names}, {"refused", refused}, {"print", print},
          {"names of arrays", array_names})
