/* For tests that train on different grids and compare the results bit by bit. Has models that are
 * small enough to train in a second, and a function that makes a part of a run, from one step to
 * another, on the first ranks of the program with any key=value overrides. */
#ifndef WEFT_TESTS_GRIDS_H
#define WEFT_TESTS_GRIDS_H

#include "tiny_main.h"

#include <math.h>

enum { SAMPLES = 52, CONTEXT = 8, VOCAB = 29, MOST_STEPS = 16, WORDS = 24 };

static char images_path[64], tokens_path[64];

typedef struct GridModel {
    /* name: name for messages; text: a configuration without data.train, data.test and the section
     * train */
    const char *name, *text;
    /* true: the model reads tokens; false: images */
    bool tokens;
} GridModel;

static const GridModel grid_models[] = {
    {"resnet18",
     "model: {name: resnet18, stem: small, width: 16}\n"
     "optim: {name: sgd, lr: 0.05, momentum: 0.9, nesterov: true, weight_decay: 5e-4, clip: 1.0}\n"
     "data: {augment: [flip, crop, cutout], crop_pad: 2, cutout_size: 4}\n",
     false},
    {"mobilenet_v2",
     "model: {name: mobilenet_v2, width: 8}\noptim: {name: adamw, lr: 1e-3, weight_decay: 0.01}\n"
     "data: {augment: [flip]}\n",
     false},
    {"gpt2",
     "model: {name: gpt2, layers: 3, width: 24, heads: 3, context: 8, dropout: 0.1}\n"
     "optim: {name: adamw, lr: 3e-3, weight_decay: 0.1, clip: 0.5}\n",
     true},
    {"layers",
     "model: {layers: [conv2d: {channels: 8, kernel: 3}, batch_norm, relu, conv2d: {channels: 8, "
     "kernel: 3}, batch_norm, relu, flatten, dense: {width: 24}, gelu, dropout: {p: 0.2}, dense: "
     "{width: 7}]}\noptim: {name: lamb, lr: 0.01, weight_decay: 1e-2, lr_schedule: cosine}\n"
     "data: {augment: [flip, crop]}\n",
     false},
    {"llama",
     "model: {name: llama, layers: 3, width: 32, heads: 4, kv_heads: 2, ffn: 40, context: 8, "
     "dropout: 0.1}\n"
     "optim: {name: adamw, lr: 3e-3, weight_decay: 0.1, clip: 0.5}\n",
     true},
    {"group_norm",
     "model: {layers: [conv2d: {channels: 12, kernel: 3}, group_norm: {groups: 3}, relu, conv2d: "
     "{channels: 20, kernel: 3, stride: 2}, group_norm: {groups: 5}, silu, dropout2d: {p: 0.2}, "
     "conv2d: {channels: 20, kernel: 3}, group_norm: {groups: 1, name: top}, global_pool, flatten, "
     "dense: {width: 40}, tanh, film: {input: [top, tanh1]}, instance_norm, sigmoid, global_pool, "
     "flatten, dense: {width: 7}]}\n"
     "optim: {name: sgd, lr: 0.05, momentum: 0.9, weight_decay: 1e-3, clip: 1.0}\n"
     "data: {augment: [flip, crop]}\n",
     false},
    /* all layers before layer2.1 are frozen, and some after it; with four stages, one stage has no
     * backward */
    {"frozen",
     "model: {name: resnet18, stem: small, width: 8, freeze: [conv1, bn1, 'layer1.*', "
     "'layer2.0.*', "
     "layer3.0.bn2, layer3.1.conv1, layer4.1.bn2.bias]}\n"
     "optim: {name: adamw, lr: 0.003, weight_decay: 0.1, clip: 1.0, layer_decay: 0.9}\n"
     "data: {augment: [flip, crop]}\n",
     false},
};

/* The outcome of a part of a run, the same on every rank of the program. */
typedef struct Outcome {
    /* tiny_hash at the end; 0: the run failed, or ranks differ */
    uint64_t hash;
    /* number of steps */
    int steps;
    /* results of each step, [steps] */
    double loss[MOST_STEPS], top1[MOST_STEPS], norm[MOST_STEPS], column[MOST_STEPS][2];
    /* The fields below are results of the evaluation at the end. */
    int64_t eval_samples;
    double eval_loss, eval_top1, eval_top5;
    /* only for detectors; 0 for other models */
    double coco[COCO_NUMBERS], part[LOSS_PARTS];
} Outcome;

/* A part of a run. */
typedef struct GridPart {
    const GridModel *model;
    int ranks;
    /* overrides, such as "grid.pp=2 grid.pipeline_schedule=gpipe" */
    const char *more;
    /* path of the checkpoint from which the part resumes; NULL: it begins at step 0 */
    const char *from;
    /* number of steps of the run at the end of the part */
    int to;
    /* path of the checkpoint to write at the end; NULL: none */
    const char *save;
} GridPart;

static inline Config *grid_config(const GridPart *part)
{
    Config *config = NULL;
    const char *data = part->model->tokens ? tokens_path : images_path;
    char *text =
        mem_format("run: {seed: 5}\ntrain: {batch: 16, micro_batch: 2, steps: 12, threads: "
                   "1, log_every: 1}\n%s",
                   part->model->text);
    char *all = mem_format("data.train=%s data.test=%s %s", data, data, part->more), *rest = all;
    char *words[WORDS];
    int count = 0;
    for (char *word; count < WORDS && (word = strsep(&rest, " "));)
        if (*word) words[count++] = word;
    CHECK_OK(config_parse(&config, "grid.yaml", text, count, words));
    mem_free(&text);
    mem_free(&all);
    return config;
}

static inline Status grid_steps(Trainer *t, const GridPart *part, Outcome *out)
{
    EvalLine line;
    if (part->from) TRY(train_load(t, part->from, LOAD_RUN));
    while (t->step < part->to) {
        StepResult r;
        TRY(next_step(t, &r));
        out->loss[out->steps] = r.loss;
        out->top1[out->steps] = r.top1;
        memcpy(out->column[out->steps], r.loss_result, sizeof r.loss_result);
        out->norm[out->steps++] = r.grad_norm;
    }
    if (part->save) TRY(train_save(t, part->save));
    TRY(train_evaluate(t, &t->test_set, &line, NULL));
    out->eval_samples = line.samples;
    out->eval_loss = line.loss;
    out->eval_top1 = line.top1;
    out->eval_top5 = line.top5;
    if (line.has_boxes) memcpy(out->coco, line.coco, sizeof out->coco);
    if (line.has_boxes) memcpy(out->part, line.part, sizeof out->part);
    out->hash = tiny_hash(t);
    return OK;
}

/* Trains a part of a run and returns its outcome. Collective on all ranks of the program. */
static inline Outcome grid_train(const GridPart *part)
{
    World sub;
    Outcome out;
    memset(&out, 0, sizeof out);
    if (tiny_world(&sub, part->ranks)) {
        Trainer *t = NULL;
        Config *config = grid_config(part);
        Status st = config ? trainer_new(&t, config, &sub) : ERR_CONFIG;
        if (st == OK) st = grid_steps(t, part, &out);
        if (st != OK && sub.rank == 0) printf("  %s: %s\n", part->more, fail_message());
        trainer_free(&t);
        config_free(&config);
    }
    tiny_world_fini(&sub);
    tiny_bcast(&out, sizeof out);
    return out;
}

/* A grid. */
typedef struct Place {
    /* key=value overrides that set the grid */
    const char *grid;
    int ranks;
} Place;

/* Trains a part of a run on the grid of `place`. from, to, save: as in GridPart. */
static inline Outcome place_train(const GridModel *model, const Place *place, const char *from,
                                  int to, const char *save)
{
    return grid_train(&(GridPart){.model = model,
                                  .ranks = place->ranks,
                                  .more = place->grid,
                                  .from = from,
                                  .to = to,
                                  .save = save});
}

/* Returns whether two checkpoints have the same bits. Prints the differences. */
static inline bool grid_same_files(const char *a, const char *b)
{
    bool equal = false;
    FILE *out = tmpfile();
    CHECK_OK(checkpoint_diff(a, b, out, &equal));
    if (!equal) {
        char line[256];
        rewind(out);
        while (fgets(line, sizeof line, out)) printf("  %s", line);
    }
    fclose(out);
    return equal;
}

/* Returns whether two outcomes have the same bits, and all losses and norms are finite. */
static inline bool outcome_same(const Outcome *a, const Outcome *b)
{
    bool good = a->hash != 0 && a->steps > 0;
    for (int i = 0; i < a->steps; ++i)
        good &= isfinite(a->loss[i]) && isfinite(a->norm[i]) && a->norm[i] > 0;
    return good && memcmp(a, b, sizeof *a) == 0;
}

/* Prints how two outcomes differ. what: what was compared. */
static inline void outcome_explain(const char *what, const Outcome *a, const Outcome *b)
{
    if (tiny_rank > 0) return;
    printf("  %s: not the same:", what);
    if (a->hash != b->hash) printf(" parameters");
    for (int i = 0; i < a->steps; ++i) {
        if (a->loss[i] != b->loss[i])
            printf(" loss of step %d (%.9g, not %.9g)", i, a->loss[i], b->loss[i]);
        if (memcmp(a->column[i], b->column[i], sizeof a->column[i]) != 0)
            printf(" columns of step %d", i);
        if (a->norm[i] != b->norm[i]) printf(" norm of step %d", i);
    }
    if (a->eval_loss != b->eval_loss) printf(" evaluation");
    if (memcmp(a->part, b->part, sizeof a->part) != 0) printf(" parts of its loss");
    if (memcmp(a->coco, b->coco, sizeof a->coco) != 0) printf(" COCO's numbers");
    printf("\n");
}

/* Makes data sets of 52 samples for batches of 16. The fourth step of an epoch has only 4 samples,
 * so that some of its micro-batches are empty. */
static inline void grid_data(void)
{
    snprintf(images_path, sizeof images_path, "%s/images.h5", tiny_folder);
    snprintf(tokens_path, sizeof tokens_path, "%s/tokens.h5", tiny_folder);
    if (tiny_rank > 0) return;
    tiny_data(images_path, SAMPLES, 3, 14, 14, 7);
    tiny_tokens(tokens_path, SAMPLES * CONTEXT + 1, VOCAB);
}

/* Returns whether a test is to try all combinations with model `name`. The environment variable
 * WEFT_MATRIX says so: it is "1", for all models, or a list of models such as "gpt2,layers". */
static inline bool grid_whole_matrix(const char *name)
{
    const char *wanted = getenv("WEFT_MATRIX");
    return wanted && (strcmp(wanted, "1") == 0 || strstr(wanted, name));
}

#endif
