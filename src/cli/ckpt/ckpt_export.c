/* weft ckpt export: writes a checkpoint for other programs. Without --onnx it writes the parameters
 * as safetensors. With --onnx it writes the whole model as ONNX. The configuration that describes
 * the model is that of --config or, without this flag, that in the checkpoint; key=value arguments
 * change it. */
#include "../private.h"

#include "checkpoint.h"

#include <string.h>

typedef struct ExportOptions {
    const char *out, *config, *input;
    bool force, onnx, softmax, normalize, no_ema;
} ExportOptions;

static const Flag flags[] = {
    FLAG_OUT(ExportOptions, out, "the file to write"),
    FLAG_FORCE(ExportOptions, force),
    FLAG_NO_EMA(ExportOptions),
    {"--onnx", FLAG_FIELD(ExportOptions, onnx),
     .help = "write the whole model as ONNX, opset 17; key=value arguments change its "
             "configuration"},
    {"--softmax", FLAG_FIELD(ExportOptions, softmax), .needs = "--onnx",
     .help = "the ONNX model outputs probabilities instead of logits"},
    {"--normalize", FLAG_FIELD(ExportOptions, normalize), .needs = "--onnx",
     .help = "the ONNX model accepts samples as they are stored, and normalises them itself"},
    {"--input", FLAG_FIELD(ExportOptions, input), .value = INPUT_VALUE, .needs = "--onnx",
     .help = "shape of a sample; by default that of data.train"},
    {"--config", FLAG_FIELD(ExportOptions, config), .value = "CONFIG", .needs = "--onnx",
     .help = "configuration to use instead of that in the checkpoint; imported checkpoints have "
             "none"},
};

/* Sets the description of a sample in *model. It comes from --input or, without this flag, from the
 * training set, which is opened as *set; *model borrows it. */
static Status describe_input(const ExportOptions *o, DataSet *set, OnnxModel *model)
{
    const Config *c = model->config;
    if (o->input) {
        Input input;
        TRY(input_parse(o->input, &input));
        model->input = input.tokens ? desc_plain(shape_of(2, 1, data_context(c), 1, 1), DTYPE_I32)
                                    : desc_plain(input.shape, DTYPE_F32);
        return OK;
    }
    const char *train = c->data.train ? c->data.train : "";
    Status st = input_open_train(set, c);
    if (st == ERR_NOINPUT)
        return fail(ERR_USAGE, "the data set%s%.*s is needed for the shape of a sample: %s",
                    *train ? " " : "", (int)strcspn(train, "\n"), train, fail_message());
    TRY(st);
    DType type = data_has_tokens(set) ? DTYPE_I32 : DTYPE_F32;
    model->input = desc_plain(data_set_shape(set, 1), type);
    model->set = set;
    return OK;
}

/* Returns the part of a message that says that values are from the EMA, or "". averaged: number of
 * tensors with values from the EMA. */
static const char *source_words(int averaged)
{
    return averaged > 0 ? "; values: the EMA (--no-ema: the parameters themselves)" : "";
}

static Status export_onnx(int argc, char **argv, const ExportOptions *o)
{
    DataSet set = {0};
    Config *config = NULL;
    OnnxModel model = {.normalize = o->normalize,
                       .softmax = o->softmax,
                       .force = o->force,
                       .averages = !o->no_ema};
    OnnxExported exported = {0};
    TRY(checkpoint_read_config(&config, argv[0], o->config, argc - 1, argv + 1));
    model.config = config;
    Status st = job_check_output(config, o->out);
    if (st == OK) st = describe_input(o, &set, &model);
    if (st == OK) st = checkpoint_export_onnx(argv[0], o->out, &model, &exported);
    if (st == OK)
        log_info("wrote %s%s%s%s: ONNX opset 17, %d nodes, %lld %s%s", o->out,
                 exported.external ? " and its values in " : "", exported.external ? o->out : "",
                 exported.external ? ".data" : "", exported.nodes, (long long)exported.classes,
                 model.input.dtype == DTYPE_I32 ? "tokens" : "classes",
                 source_words(exported.averaged));
    data_set_fini(&set);
    config_free(&config);
    return st;
}

static Status run(int argc, char **argv, const void *options)
{
    const ExportOptions *o = options;
    CheckpointExport export = {.from = argv[0], .out = o->out, .exports_averages = !o->no_ema};
    TRY(file_check_writable(o->out, o->force));
    TRY(checkpoint_export_check(argv[0], o->onnx ? "ONNX" : "safetensors"));
    if (o->onnx) return export_onnx(argc, argv, o);
    if (argc > 1)
        return fail(ERR_USAGE, "weft ckpt export: %s has an effect only with --onnx", argv[1]);
    TRY(checkpoint_export(&export));
    log_info("wrote %s: %d tensors, names and layouts of %s%s", o->out, export.tensors,
             export.family, source_words(export.averaged));
    return OK;
}

const Verb verb_ckpt_export = {
    .name = "ckpt export",
    .words = "FILE [key=value ...]",
    .words_min = 1,
    .words_max = 0,
    .expects = "a checkpoint",
    .help = "writes parameters and running statistics as safetensors, or the model as ONNX",
    VERB_FLAGS(ExportOptions, flags),
    .traits = VERB_NO_TRAITS,
    .run = run,
};
