/* Good configurations: defaults, the design's example, words, overrides and what they replace,
 * places of keys, the resolved text read back, files. */
#include "train.h"
#include "schedules.def"
#include "fixture.h"

#include <sys/stat.h>

/* A value that equals the default is the default, whatever sets it. */
static void test_is_default(void)
{
    static const struct {
        const char *key, *same, *other;
    } rows[] = {{"model.hidden", "[512,512]", "[512]"}, {"model.rms_eps", "0.00001", "0.0001"},
                {"model.stem", "imagenet", "small"},    {"model.channels", "[]", "[8]"},
                {"train.batch", "128", "64"},           {"data.x", "/x", "/images"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
        for (int k = 0; k < 3; ++k) {
            char text[128], *word = text;
            Config *c = NULL;
            snprintf(text, sizeof text, "%s=%s", rows[i].key,
                     k == 1 ? rows[i].same : rows[i].other);
            CHECK_OK(config_parse(&c, "test.yaml", NULL, k > 0, &word));
            CU_ASSERT_PTR_NOT_NULL_FATAL(c);
            CU_ASSERT_EQUAL(config_key_is_default(c, rows[i].key), k < 2);
            config_free(&c);
        }
}

static void test_defaults(void)
{
    Config *c = NULL;
    CHECK_OK(config_load(&c, NULL, 0, NULL));
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    CU_ASSERT_STRING_EQUAL(c->run.name, "defaults");
    CU_ASSERT_STRING_EQUAL(c->run.dir, "runs");
    CU_ASSERT_EQUAL(c->run.seed, 1);
    CU_ASSERT_STRING_EQUAL(c->model.name, "");
    CU_ASSERT_EQUAL(c->model.stem, STEM_IMAGENET);
    CU_ASSERT_EQUAL(c->model.classes, 0);
    CU_ASSERT(c->model.dropout < 0);
    CU_ASSERT_EQUAL_FATAL(c->model.hidden.count, 2);
    CU_ASSERT_EQUAL(c->model.hidden.value[1], 512);
    CU_ASSERT_EQUAL(c->model.layer_count, 0);
    CU_ASSERT_STRING_EQUAL(c->data.x, "/x");
    CU_ASSERT_STRING_EQUAL(c->data.y, "/y");
    CU_ASSERT_PTR_NULL(c->data.train);
    CU_ASSERT_PTR_NULL(c->data.test);
    CU_ASSERT_EQUAL(c->data.augment, 0);
    CU_ASSERT_EQUAL(c->data.scale, 0);
    CU_ASSERT_TRUE(c->data.normalize);
    CU_ASSERT_EQUAL(c->train.epochs, 1);
    CU_ASSERT_EQUAL(c->train.steps, 0);
    CU_ASSERT_EQUAL(c->train.batch, 128);
    CU_ASSERT_EQUAL(c->train.micro_batch, 0);
    CU_ASSERT_EQUAL(c->optim.beta2, 0.999);
    CU_ASSERT_EQUAL(c->optim.lr_schedule, LR_CONSTANT);
    CU_ASSERT_EQUAL(c->grid.dp, 0);
    CU_ASSERT(c->grid.pp == 1 && c->grid.tp == 1 && c->grid.zero == ZERO_NONE);
    CU_ASSERT_EQUAL(c->grid.pipeline_schedule, SCHEDULE_1F1B);
    CU_ASSERT_PTR_NULL(c->grid.schedule_path);
    CU_ASSERT_EQUAL(c->grid.chunks, 1);
    CU_ASSERT_STRING_EQUAL(c->grid.cuts, "");
    CU_ASSERT_EQUAL(c->grid.recompute, RECOMPUTE_NONE);
    CU_ASSERT_EQUAL(c->train.memory, 0);
    CU_ASSERT(c->model.size == GPT_OWN && c->model.positions == POSITIONS_LEARNED);
    CU_ASSERT(c->model.depth == 0 && c->model.width == 0 && c->model.heads == 0);
    CU_ASSERT(c->model.context == 0 && c->model.vocab == 0);
    CU_ASSERT_EQUAL(c->checkpoint.keep, 3);
    CU_ASSERT_EQUAL(c->checkpoint.resume, RESUME_AUTO);
    CU_ASSERT_PTR_NULL(c->checkpoint.resume_path);
    config_free(&c);
    CU_ASSERT_PTR_NULL(c);
    config_free(&c);
}

static void test_example(void)
{
    Config *c = parse(
        "# the design's example\n"
        "run:   {name: fashion, seed: 1}\nmodel: {name: lenet}\n"
        "data:  {train: a/train.h5, test: a/test.h5, augment: [flip]}\n"
        "train: {epochs: 8, batch: 128, micro_batch: 32, precision: fp32}\n"
        "optim: {name: sgd, lr: 0.05, momentum: 0.9, weight_decay: 5e-4, lr_schedule: cosine, "
        "warmup_steps: 200}\ngrid:  {dp: 2}\n");
    CU_ASSERT_STRING_EQUAL(c->run.name, "fashion");
    CU_ASSERT_STRING_EQUAL(c->model.name, "lenet");
    CU_ASSERT_STRING_EQUAL(c->data.test, "a/test.h5");
    CU_ASSERT_EQUAL(c->data.augment, AUGMENT_FLIP);
    CU_ASSERT_EQUAL(c->train.epochs, 8);
    CU_ASSERT_EQUAL(c->train.micro_batch, 32);
    CU_ASSERT_EQUAL(c->optim.lr, 0.05);
    CU_ASSERT_EQUAL(c->optim.weight_decay, 5e-4);
    CU_ASSERT_EQUAL(c->optim.lr_schedule, LR_COSINE);
    CU_ASSERT_EQUAL(c->optim.warmup_steps, 200);
    CU_ASSERT_EQUAL(c->grid.dp, 2);
    config_free(&c);
}

/* Every word of every enum gives the number that the public header gives it. */
static void test_words(void)
{
    static const struct {
        const char *key, *word;
        size_t offset;
        int value;
    } words[] = {
        {"model.stem", "small", offsetof(Config, model.stem), STEM_SMALL},
        {"model.stem", "imagenet", offsetof(Config, model.stem), STEM_IMAGENET},
        {"data.layout", "nhwc", offsetof(Config, data.layout), LAYOUT_NHWC},
        {"data.augment", "[crop]", offsetof(Config, data.augment), AUGMENT_CROP},
        {"data.augment", "[cutout, flip]", offsetof(Config, data.augment),
         AUGMENT_CUTOUT | AUGMENT_FLIP},
        {"train.precision", "fp32", offsetof(Config, train.precision), PRECISION_FP32},
        {"train.reproducible", "same_grid", offsetof(Config, train.reproducible),
         REPRODUCIBLE_SAME_GRID},
        {"train.reproducible", "any_grid", offsetof(Config, train.reproducible),
         REPRODUCIBLE_ANY_GRID},
        {"train.device", "auto", offsetof(Config, train.device), DEVICE_AUTO},
        {"train.device", "cpu", offsetof(Config, train.device), DEVICE_CPU},
        {"train.device", "cuda", offsetof(Config, train.device), DEVICE_CUDA},
        {"train.loss", "mse", offsetof(Config, train.loss), 1},
        {"optim.name", "sgd", offsetof(Config, optim.name), OPTIM_SGD},
        {"optim.name", "adam", offsetof(Config, optim.name), OPTIM_ADAM},
        {"optim.name", "adamw", offsetof(Config, optim.name), OPTIM_ADAMW},
        {"optim.name", "lars", offsetof(Config, optim.name), OPTIM_LARS},
        {"optim.name", "lamb", offsetof(Config, optim.name), OPTIM_LAMB},
        {"optim.lr_schedule", "constant", offsetof(Config, optim.lr_schedule), LR_CONSTANT},
        {"optim.lr_schedule", "cosine", offsetof(Config, optim.lr_schedule), LR_COSINE},
        {"optim.lr_schedule", "linear", offsetof(Config, optim.lr_schedule), LR_LINEAR},
        {"optim.lr_schedule", "polynomial", offsetof(Config, optim.lr_schedule), LR_POLYNOMIAL},
        {"grid.transport", "shm", offsetof(Config, grid.transport), TRANSPORT_SHM},
        {"grid.transport", "mpi", offsetof(Config, grid.transport), TRANSPORT_MPI},
        {"grid.transport", "nccl", offsetof(Config, grid.transport), TRANSPORT_NCCL},
        {"grid.zero", "0", offsetof(Config, grid.zero), ZERO_NONE},
        {"grid.pipeline_schedule", "1f1b", offsetof(Config, grid.pipeline_schedule), SCHEDULE_1F1B},
        {"grid.pipeline_schedule", "gpipe", offsetof(Config, grid.pipeline_schedule),
         SCHEDULE_GPIPE},
        {"grid.pipeline_schedule", "interleaved", offsetof(Config, grid.pipeline_schedule),
         SCHEDULE_INTERLEAVED},
        {"grid.pipeline_schedule", "zero-bubble", offsetof(Config, grid.pipeline_schedule),
         SCHEDULE_ZERO_BUBBLE},
        {"grid.pipeline_schedule", "zb-v", offsetof(Config, grid.pipeline_schedule), SCHEDULE_ZB_V},
        {"grid.pipeline_schedule", "dualpipe-v", offsetof(Config, grid.pipeline_schedule),
         SCHEDULE_DUALPIPE_V},
        {"grid.pipeline_schedule", "file:a b.txt", offsetof(Config, grid.pipeline_schedule),
         SCHEDULE_FILE},
        {"grid.recompute", "none", offsetof(Config, grid.recompute), RECOMPUTE_NONE},
        {"model.size", "own", offsetof(Config, model.size), GPT_OWN},
        {"model.size", "124m", offsetof(Config, model.size), GPT_124M},
        {"model.size", "355m", offsetof(Config, model.size), GPT_355M},
        {"model.size", "774m", offsetof(Config, model.size), GPT_774M},
        {"model.size", "1558m", offsetof(Config, model.size), GPT_1558M},
        {"model.positions", "learned", offsetof(Config, model.positions), POSITIONS_LEARNED},
        {"model.positions", "rotary", offsetof(Config, model.positions), POSITIONS_ROTARY},
        {"checkpoint.resume", "no", offsetof(Config, checkpoint.resume), RESUME_NO},
        {"checkpoint.resume", "runs/a/step-00000001.h5", offsetof(Config, checkpoint.resume),
         RESUME_FILE},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; ++i) {
        char text[128];
        snprintf(text, sizeof text, "%s=%s", words[i].key, words[i].word);
        Config *c = override(NULL, text);
        CU_ASSERT_EQUAL(*(int *)(void *)((char *)c + words[i].offset), words[i].value);
        config_free(&c);
    }
    Config *c = parse("optim: {lr_schedule: multistep, milestones: [1.5, 20]}\n");
    CU_ASSERT_EQUAL(c->optim.lr_schedule, LR_MULTISTEP);
    CU_ASSERT_EQUAL_FATAL(c->optim.milestones.count, 2);
    CU_ASSERT_EQUAL(c->optim.milestones.value[0], 1.5);
    config_free(&c);
}

/* gpt2's keys, and those of a pipeline. chunks is never 0 after parsing. */
static void test_pipeline(void)
{
    Config *c =
        parse("model: {name: gpt2, layers: 6, width: 384, heads: 6, context: 256, vocab: 65, "
              "positions: rotary}\n"
              "grid: {pp: 2, pipeline_schedule: interleaved, cuts: [h1, h2.attn, h4]}\n");
    CU_ASSERT_STRING_EQUAL(c->model.name, "gpt2");
    CU_ASSERT(c->model.depth == 6 && c->model.layer_count == 0);
    CU_ASSERT(c->model.width == 384 && c->model.heads == 6);
    CU_ASSERT(c->model.context == 256 && c->model.vocab == 65);
    CU_ASSERT(c->grid.pp == 2 && c->grid.chunks == 2);
    CU_ASSERT_STRING_EQUAL(c->grid.cuts, "h1,h2.attn,h4");
    config_free(&c);
    c = override("grid: {pipeline_schedule: gpipe}\n", "grid.pipeline_schedule=file:plans/a.txt");
    CU_ASSERT_STRING_EQUAL(c->grid.schedule_path, "plans/a.txt");
    CU_ASSERT_EQUAL(c->grid.chunks, 1);
    config_free(&c);
    c = override("grid: {pipeline_schedule: file:plans/a.txt, chunks: 4}\n", "grid.pp=8");
    CU_ASSERT_STRING_EQUAL(c->grid.schedule_path, "plans/a.txt");
    CU_ASSERT(c->grid.chunks == 4 && c->grid.pp == 8);
    config_free(&c);
    c = override("grid: {pipeline_schedule: file:plans/a.txt}\n",
                 "grid.pipeline_schedule=zero-bubble");
    CU_ASSERT_PTR_NULL(c->grid.schedule_path);
    config_free(&c);
    c = override("grid: {pipeline_schedule: interleaved}\n", "grid.chunks=1");
    CU_ASSERT_EQUAL(c->grid.chunks, 1);
    config_free(&c);
    c = override("grid: {pp: 3}\n", "grid.cuts=[a, b]");
    CU_ASSERT_STRING_EQUAL(c->grid.cuts, "a,b");
    config_free(&c);
}

/* The later source wins over the earlier one, also over the key that excludes it. */
static void test_override(void)
{
    Config *c = override("train: {epochs: 8, batch: 100}\n", "train.steps=5");
    CU_ASSERT_EQUAL(c->train.steps, 5);
    CU_ASSERT_EQUAL(c->train.epochs, 0);
    CU_ASSERT_EQUAL(c->train.batch, 100);
    config_free(&c);
    c = override("train: {steps: 8}\n", "train.epochs=2");
    CU_ASSERT_EQUAL(c->train.steps, 0);
    CU_ASSERT_EQUAL(c->train.epochs, 2);
    config_free(&c);
    c = override("model: {name: lenet}\n", "model.layers=[relu, {dense: {width: 10}}]");
    CU_ASSERT_STRING_EQUAL(c->model.name, "");
    CU_ASSERT_EQUAL_FATAL(c->model.layer_count, 2);
    CU_ASSERT_STRING_EQUAL(c->model.layer[1].attr[0].value, "10");
    CU_ASSERT_EQUAL(c->model.layer[1].line, 0);
    config_free(&c);
    c = override("model: {layers: [relu]}\n", "model.name=mlp");
    CU_ASSERT_EQUAL(c->model.layer_count, 0);
    config_free(&c);
    c = override("model: {name: gpt2, layers: 4}\n", "model.layers=12");
    CU_ASSERT_EQUAL(c->model.depth, 12);
    CU_ASSERT_STRING_EQUAL(c->model.name, "gpt2");
    config_free(&c);
    c = override("model: {name: gpt2, layers: 4}\n", "model.layers=[relu]");
    CU_ASSERT(c->model.depth == 0 && c->model.layer_count == 1);
    CU_ASSERT_STRING_EQUAL(c->model.name, "");
    config_free(&c);
    c = override("run: {name: a}\n", "run.name=b c=d: #e");
    CU_ASSERT_STRING_EQUAL(c->run.name, "b c=d: #e");
    config_free(&c);
    c = override("checkpoint: {resume: a/b.h5}\n", "checkpoint.resume=no");
    CU_ASSERT_EQUAL(c->checkpoint.resume, RESUME_NO);
    CU_ASSERT_PTR_NULL(c->checkpoint.resume_path);
    config_free(&c);
}

static const char layers_text[] = "model:\n  layers:\n"
                                  "    - conv2d: {channels: 32, kernel: [3, 5]}\n"
                                  "    - relu\n"
                                  "    - flatten:\n"
                                  "    - dense:\n        width: 10\n        name: \"out put\"\n";

static void test_layers(void)
{
    Config *c = parse(layers_text);
    CU_ASSERT_EQUAL_FATAL(c->model.layer_count, 4);
    const ConfigLayer *conv = &c->model.layer[0], *dense = &c->model.layer[3];
    CU_ASSERT_STRING_EQUAL(conv->kind, "conv2d");
    CU_ASSERT(conv->line == 3 && conv->column == 7);
    CU_ASSERT_EQUAL_FATAL(conv->attr_count, 2);
    CU_ASSERT_STRING_EQUAL(conv->attr[1].key, "kernel");
    CU_ASSERT_STRING_EQUAL(conv->attr[1].value, "3,5");
    CU_ASSERT(conv->attr[1].line == 3 && conv->attr[1].column == 38);
    CU_ASSERT_STRING_EQUAL(c->model.layer[1].kind, "relu");
    CU_ASSERT_EQUAL(c->model.layer[2].attr_count, 0);
    CU_ASSERT_EQUAL_FATAL(dense->attr_count, 2);
    CU_ASSERT_STRING_EQUAL(dense->attr[1].value, "out put");
    config_free(&c);
}

static void test_places(void)
{
    Config *c = override("run: {seed: 3}\nmodel:\n  name: nosuch\n", "train.batch=7");
    CHECK_FAILS(config_fail_key(c, "model.name", "no model %d", 5), ERR_CONFIG,
                "good.yaml:3:3: model.name: no model 5");
    CHECK_FAILS(config_fail_key(c, "train.batch", "odd"), ERR_CONFIG,
                "command line: train.batch=7: odd");
    CHECK_FAILS(config_fail_key(c, "optim.lr", "odd"), ERR_CONFIG,
                "good.yaml: optim.lr (not set): odd");
    CHECK_FAILS(config_fail(c, 4, 5, "odd %s", "thing"), ERR_CONFIG, "good.yaml:4:5: odd thing");
    CHECK_FAILS(config_fail(c, 0, 0, "odd"), ERR_CONFIG, "command line: odd");
    config_free(&c);
    Config bare = {.path = "bare"};
    CHECK_FAILS(config_fail_key(&bare, "optim.lr", "odd"), ERR_CONFIG,
                "bare: optim.lr (not set): odd");
}

/* The text reads back, and writes the same text again. */
static void check_round(Config *first)
{
    char *text = config_text(first);
    Config *second = NULL;
    CHECK_OK(config_parse(&second, "again.yaml", text, 0, NULL));
    if (second) {
        char *again = config_text(second);
        CU_ASSERT_STRING_EQUAL(text, again);
        CU_ASSERT_STRING_EQUAL(first->run.name, second->run.name);
        CU_ASSERT_EQUAL(first->train.epochs, second->train.epochs);
        CU_ASSERT_EQUAL(first->optim.lr, second->optim.lr);
        CU_ASSERT_EQUAL(first->model.layer_count, second->model.layer_count);
        CU_ASSERT_EQUAL(!first->data.train, !second->data.train);
        if (first->data.train && second->data.train)
            CU_ASSERT_STRING_EQUAL(first->data.train, second->data.train);
        mem_free(&again);
    }
    mem_free(&text);
    config_free(&second);
    config_free(&first);
}

static void test_round_trip(void)
{
    static const char *const texts[] = {
        "run: {seed: 7}\n",
        "run: {name: \"- a: 'b' #c\", dir: \"~\", trace: true}\n",
        "run: {name: \"null\", dir: \"\xc3\xa4 \\\"x\\\\y\"}\n",
        "model: {name: resnet18, stem: small, dropout: 0.25, classes: 10, hidden: []}\n",
        "data: {train: \"a: b\", augment: [flip, cutout], mean: [0.1, -2], std: [1e-3, 3], scale: "
        "0.1}\n",
        "train: {steps: 12, batch: 96, micro_batch: 32, reproducible: same_grid, threads: 3}\n",
        "optim: {lr: 0.3333333333333333, lr_schedule: multistep, milestones: [1, 2.5], "
        "warmup_epochs: "
        "0.5}\n",
        "checkpoint: {resume: \"dir with space/a.h5\", every_s: 600, best: false}\n",
        "checkpoint: {resume: no}\ngrid: {dp: 3, pp: 1, tp: 1, transport: shm, bucket_mb: 0.5}\n",
        "model: {layers: [{x: {a: '', b: ',', c: 'it is', d: ['null', '-']}}, 'odd kind']}\n",
        layers_text,
        "model: {name: gpt2, layers: 12, width: 768, heads: 12, positions: rotary}\n",
        "model: {name: gpt2, size: 1558m, context: 512, vocab: 50304}\ntrain: {memory: 1.3GiB}\n",
        "run: {max_time: 1d2h3m4.5s}\n",
        "train: {loss: mse}\n",
        "run: {max_time: 0.001s}\n",
        "grid: {pp: 2, pipeline_schedule: interleaved, cuts: [a, \"b c\", \"null\"]}\n",
        "grid: {pp: 4, pipeline_schedule: \"file:a b: c\", chunks: 3}\n",
        "grid: {pipeline_schedule: file:plan.txt}\n",
        "model: {widths: {conv1: 51, layer1.0.conv1: 7, \"null\": 1}}\noptim: {slim: 1e-4}\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; ++i) check_round(parse(texts[i]));
    Config *c = NULL;
    CHECK_OK(config_load(&c, NULL, 0, NULL));
    check_round(c);
}

static void test_files(void)
{
    char path[] = "/tmp/weft-config-XXXXXX", yaml[64];
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(path));
    snprintf(yaml, sizeof yaml, "%s/my run.v2.yaml", path);
    Config *c = NULL;
    CHECK_FAILS(config_load(&c, yaml, 0, NULL), ERR_NOINPUT, "No such file");
    CHECK_FAILS(config_load(&c, path, 0, NULL), ERR_NOINPUT, "folder");
    FILE *out = fopen(yaml, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(out);
    fputs("train: {batch: 5}\n", out);
    for (int i = 0; i < 5000; ++i)
        fprintf(out, "# %s filler, so that the file is read in parts\n", yaml);
    fputs("run: {seed: 9}\n", out);
    fclose(out);
    CHECK_OK(config_load(&c, yaml, 0, NULL));
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    CU_ASSERT_EQUAL(c->train.batch, 5);
    CU_ASSERT_EQUAL(c->run.seed, 9);
    CU_ASSERT_STRING_EQUAL(c->run.name, "run");
    config_free(&c);
    unlink(yaml);
    rmdir(path);
    c = parse("run: {seed: 1}\n");
    CU_ASSERT_STRING_EQUAL(c->run.name, "good-one");
    config_free(&c);
}

/* Names the first key that differs, and for lists the entry. */
static void test_difference(void)
{
    static const struct {
        const char *x, *y, *a, *b;
    } row[] = {
        {"optim: {lr: 1}", "optim: {lr: 2}", "optim.lr: 1", "optim.lr: 2"},
        {"optim: {groups: [{match: a, lr: 1}]}", "optim: {groups: [{match: a, lr: 2}]}",
         "optim.groups: - {match: [a], lr: 1}", "optim.groups: - {match: [a], lr: 2}"},
        {"optim: {groups: [{match: a}, {roles: head}]}", "optim: {groups: [{match: a}]}",
         "optim.groups: - {roles: [head]}", "no further entry of optim.groups"},
        {"optim: {lr: 1}", "optim: {lr: 1, groups: [{match: a}]}", "no optim.groups",
         "optim.groups:"},
        {"model: {layers: [relu, gelu]}", "model: {layers: [relu, silu]}", "model.layers: - gelu",
         "model.layers: - silu"},
        {"model: {widths: {a: 1, b.0: 2}}", "model: {widths: {a: 1, b.0: 3}}",
         "model.widths.b.0: 2", "model.widths.b.0: 3"},
        {"model: {widths: {a: 1, b: 2}}", "model: {widths: {a: 1}}", "model.widths.b: 2",
         "no model.widths.b"},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; ++i) {
        Config *x = parse(row[i].x), *y = parse(row[i].y);
        char *text_x = config_text(x), *text_y = config_text(y), a[160], b[160];
        CU_ASSERT_FALSE(config_difference(text_x, text_x, a, b, sizeof a));
        CU_ASSERT_TRUE(config_difference(text_x, text_y, a, b, sizeof a));
        CU_ASSERT_STRING_EQUAL(a, row[i].a);
        CU_ASSERT_STRING_EQUAL(b, row[i].b);
        if (strcmp(a, row[i].a) != 0 || strcmp(b, row[i].b) != 0) printf("  %s | %s\n", a, b);
        mem_free(&text_x);
        mem_free(&text_y);
        config_free(&x);
        config_free(&y);
    }
}

TEST_MAIN("config", {"words of modules", use_test_words}, {"defaults", test_defaults},
          {"values that are defaults", test_is_default}, {"example", test_example},
          {"words", test_words}, {"gpt2 and pipeline", test_pipeline}, {"override", test_override},
          {"layers", test_layers}, {"places", test_places}, {"round trip", test_round_trip},
          {"difference", test_difference}, {"files", test_files})
