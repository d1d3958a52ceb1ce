/* Tests the export to ONNX. A small model's file has the bytes that the onnx package writes
 * (tools/golden_onnx.py). Files of larger models have the hashes of files with which onnxruntime
 * gave weft's results (tools/check_onnx.py). Every layer kind except losses can be exported; values
 * may be in a separate file; a checkpoint of another model is refused. */
#include "checkpoint/fixture.h"

#include "model.h"

#include <math.h>

#define LAYERS                                                                                     \
    "model: {layers: [conv2d: {name: conv, channels: 4, kernel: 3, stride: [2, 1], pad: same, "    \
    "groups: 2, bias: false}, batch_norm: {name: bn}, relu6: {name: act}, avg_pool: {name: pool, " \
    "kernel: 2, stride: [1, 2], pad: 1}, dropout: {p: 0.5}, flatten: {name: flat}, dense: {name: " \
    "fc, width: 3}]}\n"
#define GPT2  "model: {name: gpt2, layers: 2, width: 8, heads: 2, context: 6}\n"
#define LLAMA "model: {name: llama, layers: 1, width: 16, heads: 4, kv_heads: 2, context: 6}\n"
#define LENET "model: {name: lenet}\n"
#define YOLO                                                                                       \
    "model: {name: yolov5n, width_multiple: 0.02, anchors: [8, 9, 30, 20, 60, 80]}\n"              \
    "train: {loss: yolo}\n"
#define OTHERS                                                                                     \
    "model: {layers: [conv2d: {name: a, channels: 8, kernel: 3, pad: same}, group_norm: {groups: " \
    "4}, silu: {name: b}, conv2d: {name: c, channels: 8, kernel: 1}, add: {input: [b, c]}, relu: " \
    "{name: d}, concat: {input: [a, d]}, gelu, max_pool: {kernel: 2}, global_pool, flatten, "      \
    "dense: {name: e, width: 8}, layer_norm, swiglu, rms_norm, dense: {name: f, width: 10}]}\n"

/* attention over the pixels of an image, at two sizes */
#define PIXELS                                                                                     \
    "model: {layers: [conv2d: {name: a, channels: 8, kernel: 2, stride: 2}, pixels_to_tokens, "    \
    "positions: {context: 16}, dense: {width: 24}, attention: {heads: 2, rotary: true}, dense: "   \
    "{name: b, width: 8}, tokens_to_pixels: {input: [b, a]}, max_pool: {name: c, kernel: 2}, "     \
    "pixels_to_tokens, positions: {context: 4}, dense: {width: 24}, attention: {heads: 2, "        \
    "rotary: true}, dense: {name: d, width: 8}, tokens_to_pixels: {input: [d, c]}, global_pool, "  \
    "flatten, dense: {name: e, width: 10}]}\n"

static const char *folder;
static char *source, *out;

static Desc image(int64_t channels, int64_t size)
{
    return desc_plain(shape_of(4, 1, channels, size, size), DTYPE_F32);
}

static Desc tokens(int64_t length)
{
    return desc_plain(shape_of(2, 1, length, 1, 1), DTYPE_I32);
}

/* Fills a tensor with the values of tools/golden_onnx.py. */
static const float *get(void *user, int i, float *plain)
{
    const CheckpointTensor *t = (const CheckpointTensor *)user + i;
    for (int64_t j = 0; j < shape_count(t->shape); ++j) {
        plain[j] = (float)((j * 7 + i * 3) % 11 - 5) / 8;
        if (strstr(t->path, "running_var")) plain[j] = fabsf(plain[j]) + 0.5f;
    }
    return plain;
}

/* Saves a checkpoint of the model. */
static void save(const char *config_text, Desc input, int64_t classes)
{
    Config *config = NULL;
    Graph *graph = NULL;
    config_use_words(model_words, MODEL_WORDS);
    config_use_words(layers_words, LAYERS_WORDS);
    folder = fixture_folder();
    source = fixture_path(folder, "x.h5");
    out = fixture_path(folder, "x.onnx");
    CHECK_OK(config_parse(&config, "test.yaml", config_text, 0, NULL));
    CHECK_OK(graph_build(&graph, config, input, classes));
    CU_ASSERT_PTR_NOT_NULL_FATAL(graph);
    CheckpointTensor *tensor = mem_new((size_t)graph->param_count * sizeof *tensor);
    int count = 0;
    for (int i = 0; i < graph->param_count; ++i) {
        const Param *p = &graph->param[i];
        if (p->tied_param >= 0) continue;
        tensor[count++] = (CheckpointTensor){.path = checkpoint_param_path(p), .shape = p->shape};
    }
    const World world = world_alone();
    const CheckpointMeta meta = fixture_meta(7);
    const CheckpointIo io = {.count = count, .tensor = tensor, .user = tensor, .get = get};
    CHECK_OK(checkpoint_save(&world, source, &meta, &io));
    for (int i = 0; i < count; ++i) {
        char *path = (char *)(uintptr_t)tensor[i].path;
        mem_free(&path);
    }
    mem_free(&tensor);
    graph_free(&graph);
    config_free(&config);
}

static void end(void)
{
    mem_free(&source);
    mem_free(&out);
    fixture_clean(folder);
}

/* Exports the checkpoint as a model of this configuration. */
static Status export(const char *config_text, OnnxModel model, OnnxExported *made)
{
    Config *config = NULL;
    CHECK_OK(config_parse(&config, "test.yaml", config_text, 0, NULL));
    model.config = config;
    Status st = checkpoint_export_onnx(source, out, &model, made);
    config_free(&config);
    return st;
}

static void golden(void)
{
    size_t bytes = 0, want_bytes = 0;
    OnnxExported made = {0};
    save(LAYERS, image(2, 5), 3);
    CHECK_OK(export(LAYERS, (OnnxModel){.input = image(2, 5)}, &made));
    CU_ASSERT(made.nodes == 6 && made.classes == 3 && !made.external);
    unsigned char *got = fixture_bytes(out, &bytes);
    unsigned char *want = fixture_bytes("tests/golden/onnx/layers.onnx", &want_bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(got);
    CU_ASSERT_PTR_NOT_NULL_FATAL(want);
    CU_ASSERT_EQUAL_FATAL(bytes, want_bytes);
    CU_ASSERT(memcmp(got, want, bytes) == 0);
    mem_free(&got);
    mem_free(&want);
    end();
}

/* Compares the hashes of files with those of files that onnxruntime has run. */
static void files_have_run(void)
{
    static const struct {
        const char *config;
        int64_t classes;
        int image;
        bool softmax;
        uint64_t hash;
    } row[] = {{GPT2, 300, 0, false, 0x2d91985174a316f1},
               {LLAMA, 300, 0, true, 0x12bcaeaa1c42a7df},
               {OTHERS, 10, 8, false, 0x12febd6d2fdaf5d4},
               {PIXELS, 10, 8, false, 0x9a0116829c655d83}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; ++i) {
        size_t bytes = 0;
        OnnxExported made = {0};
        Desc input = row[i].image ? image(3, row[i].image) : tokens(6);
        save(row[i].config, input, row[i].classes);
        CHECK_OK(
            export(row[i].config, (OnnxModel){.input = input, .softmax = row[i].softmax}, &made));
        CU_ASSERT_EQUAL(made.classes, row[i].classes);
        unsigned char *got = fixture_bytes(out, &bytes);
        uint64_t hash = got ? hash_bytes(got, bytes) : 0;
        if (hash != row[i].hash)
            printf("  %s: %zu bytes, hash 0x%016llx\n", row[i].config, bytes,
                   (unsigned long long)hash);
        CU_ASSERT_EQUAL(hash, row[i].hash);
        mem_free(&got);
        end();
    }
}

/* A detector's file has the grids of all levels as outputs. */
static void several_outputs(void)
{
    OnnxExported made = {0};
    size_t bytes = 0;
    save(YOLO, image(3, 64), 2);
    CHECK_OK(export(YOLO, (OnnxModel){.input = image(3, 64)}, &made));
    unsigned char *got = fixture_bytes(out, &bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(got);
    CU_ASSERT_EQUAL(made.classes, 2);
    for (int k = 0; k < 3; ++k) {
        char name[16];
        snprintf(name, sizeof name, "logits.%d", k);
        CU_ASSERT(memmem(got, bytes, name, strlen(name)) != NULL);
    }
    CU_ASSERT(memmem(got, bytes, "logits.3", 8) == NULL && memmem(got, bytes, "Resize", 6));
    mem_free(&got);
    end();
}

static void every_kind(void)
{
    const LayerKind *kind;
    for (int i = 0; (kind = layer_kind_at(i)); ++i) {
        /* models with sparse tables cannot be exported */
        bool none = op_is_loss(op_info(kind->op)) || op_info(kind->op)->reads == READS_IDS;
        if (!kind->onnx != none) printf("  %s: .onnx\n", kind->name);
        CU_ASSERT_EQUAL(!kind->onnx, none);
    }
}

/* A limit one byte below the file's size moves the values to a separate file. */
static void external(void)
{
    size_t bytes = 0, inside = 0, data = 0;
    OnnxExported made = {0};
    save(GPT2, tokens(6), 300);
    CHECK_OK(export(GPT2, (OnnxModel){.input = tokens(6)}, &made));
    unsigned char *all = fixture_bytes(out, &bytes);
    char *path = mem_format("%s.data", out);
    CU_ASSERT(!made.external && access(path, F_OK) != 0);
    CHECK_OK(export(GPT2, (OnnxModel){.input = tokens(6), .bytes_max = (int64_t)bytes - 1}, &made));
    unsigned char *rest = fixture_bytes(out, &inside), *values = fixture_bytes(path, &data);
    CU_ASSERT(made.external && inside < bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(values);
    CU_ASSERT_PTR_NOT_NULL_FATAL(rest);
    CU_ASSERT(memmem(rest, inside, "x.onnx.data", 11) && memmem(rest, inside, "offset", 6) &&
              !memmem(rest, inside, folder, strlen(folder)));
    /* a StringStringEntryProto with key "length" and value "9600": the embedding has 300 rows of 8
     * floats */
    CU_ASSERT(memmem(rest, inside, "\n\6length\x12\0049600", 14) != NULL);
    /* the embedding is the first tensor; the next tensor begins at a page after it */
    CU_ASSERT(data > 12288 && memmem(all, bytes, values, 300 * 8 * sizeof(float)));
    CU_ASSERT(memmem(all, bytes, values + 12288, 256) != NULL);
    const OnnxModel split = {.input = tokens(6), .bytes_max = (int64_t)bytes - 1};
    CHECK_FAILS(export(GPT2, split, &made), ERR_USAGE, "x.onnx.data: is already there");
    OnnxModel over = split;
    over.force = true;
    CHECK_OK(export(GPT2, over, &made));
    CU_ASSERT(made.external && access(path, F_OK) == 0);
    CHECK_OK(export(GPT2, (OnnxModel){.input = tokens(6), .bytes_max = (int64_t)bytes}, &made));
    CU_ASSERT(!made.external && access(path, F_OK) == 0);
    over.bytes_max = (int64_t)bytes;
    CHECK_OK(export(GPT2, over, &made));
    CU_ASSERT(!made.external && access(path, F_OK) != 0);
    mem_free(&all);
    mem_free(&rest);
    mem_free(&values);
    mem_free(&path);
    end();
}

static void normalized(void)
{
    size_t bytes = 0;
    OnnxExported made = {0};
    const DataSet set = {
        .scale = 0.5f, .has_stats = true, .stats_count = 2, .mean = {1, 2}, .std = {3, 4}};
    OnnxModel model = {.input = image(2, 5), .set = &set};
    save(LAYERS, image(2, 5), 3);
    CHECK_OK(export(LAYERS, model, &made));
    unsigned char *got = fixture_bytes(out, &bytes);
    CU_ASSERT(made.nodes == 6 &&
              memmem(got, bytes,
                     "mean\x12\x03"
                     "1,2",
                     9) &&
              memmem(got, bytes,
                     "scale\x12\x03"
                     "0.5",
                     10));
    mem_free(&got);
    model.normalize = true;
    CHECK_OK(export(LAYERS, model, &made));
    got = fixture_bytes(out, &bytes);
    CU_ASSERT(made.nodes == 11 && !memmem(got, bytes, "mean\x12", 5) &&
              memmem(got, bytes, set.mean, 2 * sizeof *set.mean) &&
              memmem(got, bytes, set.std, 2 * sizeof *set.std));
    mem_free(&got);
    end();
}

static void refused(void)
{
    OnnxExported made;
    OnnxModel model = {.input = image(2, 5)};
    save(LAYERS, image(2, 5), 3);
    CHECK_FAILS(export(LAYERS "train: {loss: mse}\n",
                       (OnnxModel){.input = image(2, 5), .softmax = true}, &made),
                ERR_CONFIG, "does not end in a softmax");
    CHECK_FAILS(export(LAYERS, (OnnxModel){.input = image(2, 5), .normalize = true}, &made),
                ERR_CONFIG, "are not known");
    CHECK_FAILS(export(LENET, model, &made), ERR_DATA, "missing in the file: conv1.weight");
    CHECK_FAILS(
        export("model: {classes: 4, name: lenet}\n", (OnnxModel){.input = image(2, 28)}, &made),
        ERR_DATA, "missing in the file: ");
    CHECK_FAILS(export(LAYERS, (OnnxModel){.input = image(2, 7)}, &made), ERR_DATA,
                "of another size: fc.weight (3x48 in the file, 3x");
    CHECK_FAILS(export("model: {layers: [conv2d: {name: conv, channels: 4, kernel: 3, pad: same, "
                       "groups: 2, bias: false}, global_pool, flatten], classes: 4}",
                       (OnnxModel){.input = image(2, 5)}, &made),
                ERR_DATA, "not in this model: ");
    char *good = out;
    out = fixture_path(folder, "none/x.onnx");
    CHECK_FAILS(export(LAYERS, model, &made), ERR_IO, "cannot be written");
    mem_free(&out);
    out = good;
    hid_t file = H5Fopen(source, H5F_ACC_RDWR, H5P_DEFAULT);
    CU_ASSERT(H5Lmove(file, "/params/fc.bias", file, "/params/fc.new", 0, 0) >= 0);
    H5Fclose(file);
    CHECK_FAILS(export(LAYERS, model, &made), ERR_DATA,
                "/params/fc.new has the checksum of another name");
    end();
}

TEST_MAIN("onnx", {"golden", golden}, {"seen to run", files_have_run}, {"every kind", every_kind},
          {"beside", external}, {"normalized", normalized}, {"several outputs", several_outputs},
          {"refused", refused})
