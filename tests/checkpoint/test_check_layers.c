/* Tests the comparison of the configuration in a checkpoint with that of a run. */
#include "checkpoint.h"
#include "harness.h"
#include "model.h"

enum { CLASSES = 3, FIELDS = 4 };

static Config *parse(const char *layers)
{
    Config *config = NULL;
    char *text = mem_format("model: {layers: [%s]}\n", layers);
    CHECK_OK(config_parse(&config, "run.yaml", text, 0, NULL));
    mem_free(&text);
    return config;
}

static Status compare(Desc input, const char *ours, const char *theirs)
{
    Config *config = parse(ours);
    Graph *graph = NULL;
    CheckpointMeta meta = {.config = mem_format("model: {layers: [%s]}\n", theirs)};
    Status st = graph_build_ids(&graph, config, input, (GraphIds){.fields = FIELDS, .id_limit = 20},
                                CLASSES);
    if (st == OK) st = checkpoint_check_layers("c.h5", &meta, config, graph);
    graph_free(&graph);
    config_free(&config);
    mem_free(&meta.config);
    return st;
}

static Desc row(void)
{
    return desc_plain(shape_of(2, 2, 12, 1, 1), DTYPE_F32);
}

static Desc picture(void)
{
    return desc_plain(shape_of(4, 2, 4, 8, 8), DTYPE_F32);
}

/* Layers of a model before its last layer: of this run, and of the checkpoint; then the reported
 * difference, NULL: none. */
typedef struct Case {
    const char *ours, *theirs, *says;
} Case;

static void run_cases(Desc input, const char *tail, const Case *c, int count)
{
    for (int i = 0; i < count; ++i) {
        char *ours = mem_format("%s, %s", c[i].ours, tail);
        char *theirs = mem_format("%s, %s", c[i].theirs, tail);
        printf("  %s\n", c[i].theirs);
        if (c[i].says)
            CHECK_FAILS(compare(input, ours, theirs), ERR_DATA, c[i].says);
        else
            CHECK_OK(compare(input, ours, theirs));
        CHECK_OK(compare(input, ours, ours));
        mem_free(&ours);
        mem_free(&theirs);
    }
}

static void bags(void)
{
    static const Case c[] = {
        {"bag: {width: 2, mode: mean}", "bag: {width: 2}",
         "c.h5: the checkpoint's model has the same tensors but computes something else from them: "
         "mode of bag1 is mean in this model and sum in the checkpoint"},
        {"bag: {width: 2, fields: 2}", "bag: {width: 2, fields: 2, first_field: 1}",
         "first_field of bag1 is 0 in this model and 1 in the checkpoint"},
        {"bag: {width: 2, fields: 3}, fm: {width: 2}", "bag: {width: 2}, fm: {width: 2}",
         "fields of bag1 is 3 in this model and 4 in the checkpoint"},
        {"bag: {width: 2}, fm: {width: 2}", "bag: {width: 2, together: true}, fm: {width: 2}",
         "together of bag1 is false in this model and true in the checkpoint"},
        {"bag: {width: 2, mode: concat, ids: 3}, fm: {width: 2}",
         "bag: {width: 2, mode: concat, ids: 2}, fm: {width: 2}",
         "ids of bag1 is 3 in this model and 2 in the checkpoint"},
        {"bag: {width: 2, vocab: 30, hashed: true}", "bag: {width: 2, vocab: 30}",
         "hashed of bag1 is true in this model and false in the checkpoint"},
        {"bag: {width: 2, vocab: 30, hashed: true}", "bag: {width: 2, vocab: 40, hashed: true}",
         "vocab of bag1 is 30 in this model and 40 in the checkpoint"},
        {"bag: {width: 4}, fm: {width: 4}", "bag: {width: 4}, fm: {width: 2}",
         "width of fm1 is 4 in this model and 2 in the checkpoint"},
        /* no difference: a table without hashes may have more rows, and initial values have no
         * effect any more */
        {"bag: {width: 2, vocab: 30}", "bag: {width: 2, vocab: 40, init: zero}", NULL},
    };
    run_cases(row(), "dense: {width: 3}", c, sizeof c / sizeof *c);
}

static void pictures(void)
{
    static const Case c[] = {
        {"conv2d: {channels: 4, kernel: [3, 5], pad: [1, 2]}",
         "conv2d: {channels: 4, kernel: [3, 5], pad: [1, 2], stride: 2}",
         "stride of conv2d1 is [1, 1] in this model and [2, 2] in the checkpoint"},
        {"max_pool: {kernel: 2, stride: 2}", "avg_pool: {name: max_pool1, kernel: 2, stride: 2}",
         "max_pool1 is max_pool in this model and avg_pool in the checkpoint"},
        {"batch_norm: {eps: 1e-3}", "batch_norm: {momentum: 0.5}",
         "eps of batch_norm1 is 0.001 in this model and 1e-05 in the checkpoint"},
        {"batch_norm: {momentum: 0.1}", "batch_norm: {momentum: 0.5}", NULL},
        {"group_norm: {groups: 2}", "group_norm: {groups: 4}",
         "groups of group_norm1 is 2 in this model and 4 in the checkpoint"},
    };
    run_cases(picture(), "global_pool, flatten, dense: {width: 3}", c, sizeof c / sizeof *c);
}

/* Differences in layers without tensors, and in the inputs of layers. */
static void inputs(void)
{
    static const Case c[] = {
        {"dense: {width: 4}, relu", "dense: {width: 4}",
         "input 1 of dense2 is relu1 in this model and dense1 in the checkpoint"},
        {"dense: {width: 4}, gelu", "dense: {width: 4}, relu",
         "input 1 of dense2 is gelu1 in this model and relu1 in the checkpoint"},
        {"dense: {width: 12}, add: {input: [dense1, data]}",
         "dense: {width: 12}, add: {input: [dense1, dense1]}",
         "input 2 of add1 is data in this model and dense1 in the checkpoint"},
        {"dense: {width: 12}, concat: {input: [dense1, data]}",
         "dense: {width: 12}, concat: {input: [data, dense1]}",
         "input 1 of concat1 is dense1 in this model and data in the checkpoint"},
        /* the following models compute the same */
        {"dense: {width: 12}, add: {input: [dense1, data]}",
         "dense: {width: 12}, add: {input: [data, dense1]}", NULL},
        {"dense: {width: 4}, relu", "dense: {width: 4}, dropout: {p: 0.5}, relu: {name: act}",
         NULL},
        {"dropout: {p: 0.5}, relu, dense: {width: 4}", "relu: {name: act}, dense: {width: 4}",
         NULL},
        /* the tensors differ, which is reported when they are loaded */
        {"dense: {width: 4}, relu, dense: {name: more, width: 4}", "dense: {width: 4}", NULL},
    };
    run_cases(row(), "dense: {name: dense2, width: 3}", c, sizeof c / sizeof *c);
}

TEST_MAIN("layers of a checkpoint's configuration", {"bags", bags}, {"pictures", pictures},
          {"inputs", inputs})
