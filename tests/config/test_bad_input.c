/* Bad configurations, one a line: each must end in ERR_CONFIG with this line and column and a
 * message that holds this text. line 0: the fault is in an override, and the message begins with
 * "command line: ". */
#include "config.h"
#include "harness.h"
#include "words.h"

typedef struct BadCase {
    const char *text, *override;
    int line, column;
    const char *word;
} BadCase;

static const BadCase syntax_cases[] = {
    {"", NULL, 1, 1, "empty"},
    {"# only a comment\n", NULL, 1, 1, "empty"},
    {"---\n", NULL, 2, 1, "empty"},
    {"just words\n", NULL, 1, 1, "expected sections"},
    {"- run\n", NULL, 1, 1, "not a list"},
    {"run: {name: a\n", NULL, 2, 1, "YAML"},
    {"run:\n  name: 'a\n", NULL, 3, 1, "quoted scalar"},
    {"run:\n\tname: a\n", NULL, 2, 1, "a tab indents this line"},
    {"run:\n  name: a\n seed: 1\n", NULL, 3, 2, "YAML"},
    {"run:\n  name: a: b\n", NULL, 2, 10, "mapping values are not allowed"},
    {"run: {name: a]\n", NULL, 1, 14, "YAML"},
    {"run: {name: \"\\q\"}\n", NULL, 1, 14, "escape"},
    {"run:\n  name: \xff\n", NULL, 2, 9, "UTF-8"},
    {"run:\n  name: a\x01\n", NULL, 2, 10, "control characters"},
    {"run: {seed: 1}\n---\nrun: {seed: 2}\n", NULL, 2, 1, "second document"},
    {"run: &r {seed: 1}\n", NULL, 1, 6, "anchors"},
    {"run: {seed: &s 1}\n", NULL, 1, 13, "anchors"},
    {"run: *r\n", NULL, 1, 6, "aliases"},
    {"optim:\n  groups:\n    - match: *.bias\n", NULL, 3, 15, "needs quotes"},
    {"*r : {seed: 1}\n", NULL, 1, 1, "aliases"},
    {"run: {seed: !!int 1}\n", NULL, 1, 13, "tags"},
    {"data: {augment: !x [flip]}\n", NULL, 1, 17, "tags"},
    {"? [run]\n: {seed: 1}\n", NULL, 1, 3, "key must be a word"},
    {"run: {name: [[[[[[[[[[[[[[[[[[[[a]]]]]]]]]]]]]]]]]]]]}\n", NULL, 1, 28, "nested too deeply"},
    {"run: {name: \"a\\0b\"}\n", NULL, 1, 13, "zero byte"},
};

static const BadCase key_cases[] = {
    {"rum: {name: a}\n", NULL, 1, 1, "did you mean 'run'"},
    {"trian:\n  epochs: 3\n", NULL, 1, 1, "did you mean 'train'"},
    {"epochs: 3\n", NULL, 1, 1, "did you mean 'train.epochs'"},
    {"train.batch: 3\n", NULL, 1, 1, "train: {batch: ...}"},
    {"zzzzzz: {a: 1}\n", NULL, 1, 1, "unknown section"},
    {"<<: {a: 1}\n", NULL, 1, 1, "unknown section"},
    {"run: {seed: 1}\ntrain:\n  bach: 64\n", NULL, 3, 3, "did you mean 'batch'"},
    {"train: {Batch: 64}\n", NULL, 1, 9, "did you mean 'batch'"},
    {"optim: {learning_rate: 64}\n", NULL, 1, 9, "unknown key 'learning_rate' in optim"},
    {"optim: {wieght_decay: 0.1}\n", NULL, 1, 9, "did you mean 'weight_decay'"},
    {"optim: {batch: 64}\n", NULL, 1, 9, "did you mean 'train.batch'"},
    {"train: {batch: 1, batch: 2}\n", NULL, 1, 19, "first in line 1"},
    {"train:\n  batch: 1\n  epochs: 2\n  batch: 2\n", NULL, 4, 3, "first in line 2"},
    {"run: {seed: 1}\nrun: {name: a}\n", NULL, 2, 1, "first in line 1"},
    {"run:\n", NULL, 1, 5, "not nothing"},
    {"run: fast\n", NULL, 1, 6, "not a single value"},
    {"run: [a]\n", NULL, 1, 6, "not a list"},
};

static const BadCase value_cases[] = {
    {"train: {batch: 32x}\n", NULL, 1, 16, "'32x' is not a whole number"},
    {"train: {batch: 1e3}\n", NULL, 1, 16, "write 1000"},
    {"train: {batch: 64.0}\n", NULL, 1, 16, "write 64"},
    {"train: {batch: 2.5}\n", NULL, 1, 16, "not a whole number"},
    {"train: {batch: 0x40}\n", NULL, 1, 16, "not a whole number"},
    {"train: {batch: 064}\n", NULL, 1, 16, "begins with a zero"},
    {"train: {batch: 1_000}\n", NULL, 1, 16, "not a whole number"},
    {"train: {batch: +64}\n", NULL, 1, 16, "write 64"},
    {"train: {batch: \"64\"}\n", NULL, 1, 16, "without quotes"},
    {"train: {batch: }\n", NULL, 1, 16, "no value"},
    {"train: {batch: ~}\n", NULL, 1, 16, "no value"},
    {"train:\n  batch: null\n", NULL, 2, 10, "no value"},
    {"train: {batch: true}\n", NULL, 1, 16, "not a whole number"},
    {"train: {batch: [64]}\n", NULL, 1, 16, "not a list"},
    {"train: {batch: {of: 64}}\n", NULL, 1, 16, "not a mapping"},
    {"train: {batch: 0}\n", NULL, 1, 16, "at least 1 (samples)"},
    {"train: {batch: -64}\n", NULL, 1, 16, "out of range"},
    {"train: {batch: 99999999999999999999}\n", NULL, 1, 16, "from 1 to 2147483647 (samples)"},
    {"train: {batch: 2147483648}\n", NULL, 1, 16, "from 1 to 2147483647 (samples)"},
    {"model: {vocab: -99999999999999999999}\n", NULL, 1, 16, "at least 1 (tokens)"},
    {"model: {vocab: 1000000000000000000}\n", NULL, 1, 16, "from 1 to 2147483647 (tokens)"},
    {"model: {hidden: [512, 3000000000]}\n", NULL, 1, 23, "from 1 to 2147483647"},
    {"train: {epochs: 0}\n", NULL, 1, 17, "at least 1"},
    {"train: {steps: -1}\n", NULL, 1, 16, "at least 1"},
    {"train: {threads: 4096}\n", NULL, 1, 18, "from 1 to 1024"},
    {"train: {label_smoothing: 1}\n", NULL, 1, 26, "below 1"},
    {"train: {precision: fp16, loss_scale: 1000}\n", NULL, 1, 26, "no power of two"},
    {"train: {precision: fp23}\n", NULL, 1, 20, "did you mean 'fp32'"},
    {"train: {device: gpu}\n", NULL, 1, 17, "auto, cpu, cuda"},
    {"train: {loss: crossentropy}\n", NULL, 1, 15, "softmax, mse"},
    {"run: {seed: -1}\n", NULL, 1, 13, "at least 0"},
    {"run: {trace: yes}\n", NULL, 1, 14, "neither true nor false: write true"},
    {"run: {trace: True}\n", NULL, 1, 14, "neither true nor false: write true"},
    {"run: {trace: 1}\n", NULL, 1, 14, "neither true nor false: write true"},
    {"run: {trace: \"true\"}\n", NULL, 1, 14, "without quotes"},
    {"run: {name: \"\"}\n", NULL, 1, 13, "empty"},
    {"run: {name: [a]}\n", NULL, 1, 13, "not a list"},
    {"run: {name: \"a\\nb\"}\n", NULL, 1, 13, "control character"},
    {"optim: {lr: 0}\n", NULL, 1, 13, "above 0"},
    {"optim: {lr: fast}\n", NULL, 1, 13, "not a number"},
    {"optim: {lr: 0.5,1}\n", NULL, 1, 17, "unknown key '1'"},
    {"optim: {lr: 1e}\n", NULL, 1, 13, "not a number"},
    {"optim: {lr: .}\n", NULL, 1, 13, "not a number"},
    {"optim: {lr: .inf}\n", NULL, 1, 13, "not a number"},
    {"optim: {lr: nan}\n", NULL, 1, 13, "not a number"},
    {"optim: {lr: 1e999}\n", NULL, 1, 13, "too large"},
    {"optim: {lr: 5e-4 }\noptim2: {}\n", NULL, 2, 1, "did you mean 'optim'"},
    {"optim: {momentum: 1}\n", NULL, 1, 19, "from 0 to below 1"},
    {"optim: {weight_decay: -1e-4}\n", NULL, 1, 23, "at least 0"},
    {"optim: {name: sdg}\n", NULL, 1, 15, "did you mean 'sgd'"},
    {"optim: {lr_schedule: [cosine]}\n", NULL, 1, 22, "not a list"},
    {"optim: {milestones: 30}\n", NULL, 1, 21, "write [30]"},
    {"optim: {milestones: [30, x]}\n", NULL, 1, 26, "not a number"},
    {"data: {augment: flip}\n", NULL, 1, 17, "write [flip]"},
    {"data: {augment: [flip, corp]}\n", NULL, 1, 24, "did you mean 'crop'"},
    {"data: {augment: [flip, flip]}\n", NULL, 1, 24, "already"},
    {"data: {augment: }\n", NULL, 1, 17, "no value"},
    {"data: {augment: {flip: true}}\n", NULL, 1, 17, "not a mapping"},
    {"data: {layout: NHWC}\n", NULL, 1, 16, "did you mean 'nhwc'"},
    {"data: {mean: [0.5], std: [0]}\n", NULL, 1, 27, "above 0"},
    {"model: {hidden: [512, 0]}\n", NULL, 1, 23, "at least 1"},
    {"model: {hidden: [512, 1.5]}\n", NULL, 1, 23, "not a whole number"},
    {"model: {dropout: -0.5}\n", NULL, 1, 18, "out of range"},
    {"model: {classes: 0}\n", NULL, 1, 18, "at least 1"},
    {"grid: {pp: 0}\n", NULL, 1, 12, "from 1 to 1048576 (ranks)"},
    {"grid: {zero: 4}\n", NULL, 1, 14, "'4' is none of: 0, 1, 2, 3"},
    {"grid: {recompute: all}\n", NULL, 1, 19, "none of"},
    {"grid: {pipeline_schedule: 1fb1}\n", NULL, 1, 27, "did you mean '1f1b'"},
    {"grid: {pipeline_schedule: plan.txt}\n", NULL, 1, 27,
     "is none of: 1f1b, gpipe, interleaved, "},
    {"grid: {pipeline_schedule: 'file:'}\n", NULL, 1, 27, "write file:PATH"},
    {"grid: {pipeline_schedule: [gpipe]}\n", NULL, 1, 27, "not a list"},
    {"grid: {chunks: 0}\n", NULL, 1, 16, "from 1 to 1024"},
    {"grid: {pipeline_schedule: zb-v, chunks: 3}\n", NULL, 1, 33,
     "zb-v has 2 chunks a stage, not 3"},
    {"grid: {pipeline_schedule: dualpipe-v, chunks: 1}\n", NULL, 1, 39,
     "dualpipe-v has 2 chunks a stage, not 1"},
    {"grid: {chunks: two}\n", NULL, 1, 16, "not a whole number"},
    {"grid: {cuts: b1}\n", NULL, 1, 14, "write [b1]"},
    {"grid: {cuts: [b1, b2, b1]}\n", NULL, 1, 23, "in the list already"},
    {"grid: {cuts: [b1, '']}\n", NULL, 1, 19, "a name is empty"},
    {"grid: {cuts: ['a,b']}\n", NULL, 1, 15, "no comma"},
    {"grid: {cuts: [[a]]}\n", NULL, 1, 15, "not a list"},
    {"run: {max_time: 90}\n", NULL, 1, 17, "'90' is not a length of time: write 90s"},
    {"run: {max_time: 12:00}\n", NULL, 1, 17, "12:00:00"},
    {"run: {max_time: 12:60:00}\n", NULL, 1, 17, "not a length of time"},
    {"run: {max_time: 12:00:60}\n", NULL, 1, 17, "not a length of time"},
    {"run: {max_time: 1-24:00:00}\n", NULL, 1, 17, "not a length of time"},
    {"run: {max_time: 1-12:00:00:00}\n", NULL, 1, 17, "not a length of time"},
    {"run: {max_time: 1-}\n", NULL, 1, 17, "not a length of time"},
    {"run: {max_time: -1s}\n", NULL, 1, 17, "not a length of time"},
    {"run: {max_time: 30m1h}\n", NULL, 1, 17, "not a length of time"},
    {"run: {max_time: 1h1h}\n", NULL, 1, 17, "not a length of time"},
    {"run: {max_time: 1.h}\n", NULL, 1, 17, "not a length of time"},
    {NULL, "run.max_time=1 h", 0, 0, "not a length of time"},
    {"run: {max_time: 1e3s}\n", NULL, 1, 17, "not a length of time"},
    {"run: {max_time: 0.0001s}\n", NULL, 1, 17, "not a length of time"},
    {"run: {max_time: soon}\n", NULL, 1, 17, "or none"},
    {"run: {max_time: [1h]}\n", NULL, 1, 17, "not a list"},
    {"train: {memory: 8 apples}\n", NULL, 1, 17, "'8 apples' is not a size"},
    {"train: {memory: GB}\n", NULL, 1, 17, "not a size"},
    {"train: {memory: 8G}\n", NULL, 1, 17, "8GB or 2GiB"},
    {"train: {memory: 8iB}\n", NULL, 1, 17, "not a size"},
    {"train: {memory: 8 GB x}\n", NULL, 1, 17, "not a size"},
    {"train: {memory: 1e}\n", NULL, 1, 17, "not a size"},
    {"train: {memory: -8GB}\n", NULL, 1, 17, "at least 1 (bytes)"},
    {"train: {memory: 0}\n", NULL, 1, 17, "at least 1 (bytes)"},
    {"train: {memory: 1e308TB}\n", NULL, 1, 17, "too large"},
    {"train: {memory: \"8GB\"}\n", NULL, 1, 17, "without quotes"},
    {"model: {size: 123m}\n", NULL, 1, 15, "did you mean '124m'"},
    {"model: {positions: sinus}\n", NULL, 1, 20, "learned, rotary"},
    {"model: {width: 0}\n", NULL, 1, 16, "at least 1"},
    {"model: {heads: 1.5}\n", NULL, 1, 16, "not a whole number"},
    {"model: {context: -1}\n", NULL, 1, 18, "at least 1 (tokens)"},
    {"model: {vocab: 50k}\n", NULL, 1, 16, "not a whole number"},
    {"grid: {dp: 0}\n", NULL, 1, 12, "from 1 to 1048576 (ranks)"},
    {"grid: {transport: tcp}\n", NULL, 1, 19, "auto, shm, mpi, nccl"},
    {"grid: {bucket_mb: 0}\n", NULL, 1, 19, "above 0 (MB)"},
    {"checkpoint: {resume: yes}\n", NULL, 1, 22, "neither auto, no nor"},
    {"checkpoint: {keep: -1}\n", NULL, 1, 20, "at least 0"},
    {"checkpoint: {best: best}\n", NULL, 1, 20, "neither true nor false"},
};

static const BadCase layer_cases[] = {
    {"model: {layers: relu}\n", NULL, 1, 17, "write [relu]"},
    {"model: {layers: []}\n", NULL, 1, 17, "empty"},
    {"model: {layers: 3}\n", NULL, 1, 9, "needs a model by name: set model.name to one of "},
    {"model: {layers: }\n", NULL, 1, 17, "no value"},
    {"model: {layers: 0}\n", NULL, 1, 17, "from 1 to 65536"},
    {"model: {layers: -2}\n", NULL, 1, 17, "from 1 to 65536"},
    {"model: {layers: 2.5}\n", NULL, 1, 17, "not a whole number"},
    {"model: {layers: 12x}\n", NULL, 1, 17, "not a whole number"},
    {"model: {layers: '12'}\n", NULL, 1, 17, "write [12]"},
    {"model: {layers: {relu: }}\n", NULL, 1, 17, "not a mapping"},
    {"model:\n  layers:\n    - [relu]\n", NULL, 3, 7, "expected a layer"},
    {"model:\n  layers:\n    - conv2d:\n      channels: 3\n", NULL, 3, 7,
     "each entry is one layer"},
    {"model:\n  layers:\n    - conv2d: 32\n", NULL, 3, 15, "expected attributes"},
    {"model:\n  layers:\n    - conv2d: {a: 1, a: 2}\n", NULL, 3, 22, "given twice"},
    {"data: {variables: {inputs: [{name: z, levels: [1], levels: [1, 2]}]}}\n", NULL, 1, 52,
     "'levels' is given twice"},
    {"data: {variables: {inputs: [z], inputs: [t]}}\n", NULL, 1, 33, "'inputs' is given twice"},
    {"data: {window: {inputs: [0], inputs: [0, 1]}}\n", NULL, 1, 30, "'inputs' is given twice"},
    {"model:\n  layers:\n    - conv2d: {a: }\n", NULL, 3, 19, "no value"},
    {"model:\n  layers:\n    - conv2d: {a: {b: 1}}\n", NULL, 3, 19, "not a mapping"},
    {"model:\n  layers:\n    - conv2d: {a: [[1]]}\n", NULL, 3, 20, "not a list"},
    {"model:\n  layers:\n    - conv2d: {a: []}\n", NULL, 3, 19, "empty list"},
    {"model:\n  layers:\n    - conv2d: {a: ['1,2']}\n", NULL, 3, 20, "no comma"},
    {"model:\n  layers:\n    - ''\n", NULL, 3, 7, "kind of layer is empty"},
};

static const BadCase rule_cases[] = {
    {"train: {epochs: 1, steps: 2}\n", NULL, 1, 20, "train.epochs is set, too"},
    {"train:\n  batch: 100\n  micro_batch: 32\n", NULL, 3, 3, "does not divide"},
    {"model: {name: mlp, layers: [relu]}\n", NULL, 1, 20, "model.name is set, too"},
    {"model: {layers: 12}\n", NULL, 1, 9, "needs a model by name"},
    {"grid: {chunks: 2}\n", NULL, 1, 8, "has 1 chunk a stage, not 2: interleaved, "},
    {"grid: {pipeline_schedule: gpipe, chunks: 2}\n", NULL, 1, 34,
     "has 1 chunk a stage, not 2: interleaved, "},
    {"grid: {pp: 2, cuts: [a, b]}\n", NULL, 1, 15, "2 stages of 1 chunk need 1"},
    {"grid: {cuts: [a]}\n", NULL, 1, 8, "names 1 layer, but 1 stage of 1 chunk need 0"},
    {"grid: {pp: 2, pipeline_schedule: interleaved, cuts: [a, b]}\n", NULL, 1, 47, "need 3"},
    {"optim: {lr_schedule: multistep}\n", NULL, 1, 9, "optim.milestones"},
    {"optim: {milestones: [30, 20]}\n", NULL, 1, 9, "20 comes after 30"},
    {"optim: {warmup_steps: 5, warmup_epochs: 1}\n", NULL, 1, 26, "warmup_steps is set, too"},
    {"optim: {nesterov: true}\n", NULL, 1, 9, "momentum above 0"},
    {"optim: {name: adam, nesterov: true}\n", NULL, 1, 21, "only by sgd"},
    {"data: {mean: [0.5]}\n", NULL, 1, 8, "needs data.std, too"},
    {"data: {std: [0.5]}\n", NULL, 1, 8, "needs data.mean, too"},
    {"data: {mean: [0.5], std: [1, 1, 1]}\n", NULL, 1, 21, "has 3 values"},
    {"run: {name: a/b}\n", NULL, 1, 7, "name of a folder"},
    {"run: {name: ..}\n", NULL, 1, 7, "name of a folder"},
    {"train: {loss: mse, huber_delta: 2}\n", NULL, 1, 20, "needs train.loss: huber"},
    {"train: {huber_delta: 0}\n", NULL, 1, 22, "above 0"},
    {"train: {loss: mse, label_smoothing: 0.1}\n", NULL, 1, 20, "needs train.loss: softmax"},
};

static const BadCase override_cases[] = {
    {NULL, "train.batch", 0, 0, "expected key=value"},
    {NULL, "=3", 0, 0, "expected key=value"},
    {NULL, "batch=3", 0, 0, "did you mean 'train.batch'"},
    {NULL, "train.bach=3", 0, 0, "did you mean 'batch'"},
    {NULL, "trian.batch=3", 0, 0, "did you mean 'train'"},
    {NULL, "train.batch.size=3", 0, 0, "unknown key 'batch.size'"},
    {NULL, "train=3", 0, 0, "'train' is a section"},
    {NULL, "train.batch=", 0, 0, "no value"},
    {NULL, "train.batch=32x", 0, 0, "train.batch=32x: '32x' is not"},
    {NULL, "train.batch= 32", 0, 0, "not a whole number"},
    {NULL, "train.batch=[32]", 0, 0, "not a whole number"},
    {NULL, "optim.lr=0", 0, 0, "above 0"},
    {NULL, "optim.eps=1e-6", 0, 0, "is used only by adam and adamw and lamb: set optim.name: adam"},
    {NULL, "optim.power=2", 0, 0, "is used only by polynomial: set optim.lr_schedule: polynomial"},
    {NULL, "optim.gamma=0.5", 0, 0, "is used only by multistep and plateau"},
    {NULL, "optim.name=sdg", 0, 0, "did you mean 'sgd'"},
    {NULL, "data.augment=flip", 0, 0, "write [flip]"},
    {NULL, "data.augment=[flip", 0, 0, "YAML"},
    {NULL, "data.augment=[flop]", 0, 0, "did you mean 'flip'"},
    {NULL, "data.train=", 0, 0, "no value"},
    {NULL, "data.train=a\nb", 0, 0, "control character"},
    {NULL, "data.train=a\xff", 0, 0, "not UTF-8"},
    {NULL, "data.train=a\xe0\x80\xaf", 0, 0, "not UTF-8"},
    {NULL, "data.train=a\xed\xa0\x80", 0, 0, "not UTF-8"},
    {NULL, "grid.tp=0", 0, 0, "from 1 to 1048576 (ranks)"},
    {NULL, "grid.cuts=a,b", 0, 0, "write [a,b]"},
    {NULL, "grid.pipeline_schedule=file:", 0, 0, "write file:PATH"},
    {NULL, "train.memory=lots", 0, 0, "not a size"},
    {NULL, "model.layers=3", 0, 0, "needs a model by name"},
    {NULL, "model.layers=0", 0, 0, "from 1 to 65536"},
    {"grid: {pipeline_schedule: interleaved, chunks: 3}\n", "grid.pipeline_schedule=1f1b", 1, 40,
     "has 1 chunk a stage"},
    {"train: {micro_batch: 32}\n", "train.batch=100", 1, 9, "does not divide"},
    {"train: {batch: 100}\n", "train.micro_batch=32", 0, 0, "does not divide"},
    {"optim: {momentum: 0.9, nesterov: true}\n", "optim.name=adamw", 1, 24, "only by sgd"},
};

static void check_case(const BadCase *bad)
{
    char place[64], *overrides[] = {(char *)bad->override};
    Config *config = NULL;
    Status status = config_parse(&config, "bad.yaml", bad->text, bad->override != NULL, overrides);
    const char *message = fail_message();
    if (bad->line)
        snprintf(place, sizeof place, "bad.yaml:%d:%d: ", bad->line, bad->column);
    else
        snprintf(place, sizeof place, "command line: ");
    bool good = status == ERR_CONFIG && !strncmp(message, place, strlen(place)) &&
                strstr(message, bad->word) && !config;
    if (!good)
        printf("  input: %s%s\n  want %d %s...%s\n  got  %d %s\n", bad->text ? bad->text : "",
               bad->override ? bad->override : "", ERR_CONFIG, place, bad->word, status, message);
    CU_ASSERT_TRUE(good);
    config_free(&config);
}

#define CASES(name)                                                                                \
    static void test_##name(void)                                                                  \
    {                                                                                              \
        for (size_t i = 0; i < sizeof name##_cases / sizeof name##_cases[0]; ++i)                  \
            check_case(&name##_cases[i]);                                                          \
    }
CASES(syntax)
CASES(key)
CASES(value)
CASES(layer)
CASES(rule)
CASES(override)

static void test_twice(void)
{
    Config *config = NULL;
    char *words[] = {"train.batch=1", "train.batch=2"};
    CHECK_FAILS(config_parse(&config, "x", NULL, 2, words), ERR_CONFIG, "given twice");
    char *both[] = {"train.epochs=1", "train.steps=2"};
    CHECK_FAILS(config_parse(&config, "x", NULL, 2, both), ERR_CONFIG, "train.epochs is set, too");
}

/* A message that is longer than the text of all errors is shown as far as it fits. */
static void test_long_message(void)
{
    enum { LONG = 3900 };
    char word[LONG + 1] = "", *words[] = {word, "train.batch=x"};
    Config *config = NULL;
    memset(word, 'x', LONG);
    CHECK_FAILS(config_parse(&config, "x", NULL, 1, words), ERR_CONFIG, "xxxxxxxxxx");
    CHECK_FAILS(config_parse(&config, "x", NULL, 2, words), ERR_CONFIG, "\nand 1 more");
}

/* Any cut of a good file is a good file or an ERR_CONFIG with a place, never anything else. */
static void test_cut(void)
{
    static const char text[] = "run: {name: \"a b\", seed: 1}\nmodel:\n  layers:\n"
                               "    - conv2d: {channels: 32, kernel: [3, 5]}\n    - relu\n"
                               "data: {augment: [flip], mean: [0.5], std: [0.2]}\n";
    for (size_t n = 0; n < sizeof text; ++n) {
        char cut[sizeof text] = "";
        memcpy(cut, text, n);
        Config *config = NULL;
        Status status = config_parse(&config, "cut", cut, 0, NULL);
        CU_ASSERT(status == OK || (status == ERR_CONFIG && !strncmp(fail_message(), "cut:", 4)));
        CU_ASSERT((status == OK) == (config != NULL));
        config_free(&config);
    }
}

TEST_MAIN("bad input", {"words of modules", use_test_words}, {"syntax", test_syntax},
          {"keys", test_key}, {"values", test_value}, {"layers", test_layer}, {"rules", test_rule},
          {"overrides", test_override}, {"twice", test_twice},
          {"a long message", test_long_message}, {"cut anywhere", test_cut})
