/* Opens the data sets of a trainer and checks that they fit together; makes the model's graph with
 * the number of outputs that the data sets require. */
#include "field_steps.h"
#include "state/classes.h"
#include "state/resume.h"
#include "state/scaling.h"
#include "step/position.h"
#include "step/step_loader.h"

#include <string.h>

static Status compare_tokenizers(const DataSet *set, const DataSet *train)
{
    TokenizerMatch match = tokenizer_match(set->tokenizer_hash, train->tokenizer_hash);
    Status st = OK;
    if (match == TOKENIZERS_SAME) return OK;
    char *a = tokenizer_describe(set->tokenizer, set->tokenizer_hash);
    char *b = tokenizer_describe(train->tokenizer, train->tokenizer_hash);
    char *line = tokenizer_unknown_message(set->path, a, train->path, b);
    if (match == TOKENIZERS_DIFFER)
        st = fail(ERR_DATA,
                  "%s: its tokens are %s, but those of %s are %s: import both with one tokenizer",
                  set->path, a, train->path, b);
    else
        log_info("%s", line);
    mem_free(&line);
    mem_free(&a);
    mem_free(&b);
    return st;
}

/* Checks that `set` is compatible with the training set, and gives it the training set's mean and
 * deviation, because every set is normalised with the training set's values. */
Status train_prepare_set(DataSet *set, const DataSet *train)
{
    char ta[64], tb[64];
    Shape a = data_set_shape(train, 1), b = data_set_shape(set, 1);
    if (set->kind != train->kind)
        return fail(ERR_DATA, "%s: holds samples of kind %s, but %s of kind %s", set->path,
                    data_kind(set)->name, train->path, data_kind(train)->name);
    if (!shape_equal(a, b))
        return fail(ERR_DATA, "%s: samples are %s, but those of %s are %s", set->path,
                    shape_text(b, tb), train->path, shape_text(a, ta));
    if (set->fields != train->fields)
        return fail(ERR_DATA, "%s: samples have %lld fields of ids, but those of %s have %lld",
                    set->path, (long long)set->fields, train->path, (long long)train->fields);
    bool words_only_here = set->vocabulary_hash && !train->vocabulary_hash && !train->id_limit;
    if (words_only_here || !data_ids_match(data_set_ids(set), data_set_ids(train)))
        return fail(ERR_DATA,
                    "%s: its ids (below %llu; 0: any) are from another vocabulary than those of %s "
                    "(below %llu); import both in one call (--test-files), so that they share it",
                    set->path, (unsigned long long)set->id_limit, train->path,
                    (unsigned long long)train->id_limit);
    if (set->id_limit == 0 && train->id_limit > 0)
        return fail(ERR_DATA,
                    "%s: may have any ids (no attribute id_rows), but those of %s are below %llu; "
                    "import both in one call, or give both the same id_rows",
                    set->path, train->path, (unsigned long long)train->id_limit);
    if (set->scale != train->scale)
        return fail(ERR_DATA,
                    "%s: its samples are %s and multiplied by %.6g, but those of %s are %s and "
                    "multiplied by %.6g, so equal numbers would become different inputs: store "
                    "both in one type, or, if equal numbers mean the same in both, set data.scale "
                    "to one factor for both; weft eval can use data.train=%s instead",
                    set->path, element_name(set->x.type), (double)set->scale, train->path,
                    element_name(train->x.type), (double)train->scale, set->path);
    TRY(compare_tokenizers(set, train));
    TRY(data_columns_check(set, train));
    train_share_stats(set, train);
    return OK;
}

Status train_prepare_test_set(DataSet *test, DataSet *train)
{
    TRY(train_prepare_set(test, train));
    if (test->ids_per_sample_max > train->ids_per_sample_max)
        train->ids_per_sample_max = test->ids_per_sample_max;
    if (test->target_width == train->target_width) return OK;
    return fail(ERR_DATA, "%s: %lld target numbers a sample, but %s has %lld (0: class labels)",
                test->path, (long long)test->target_width, train->path,
                (long long)train->target_width);
}

void train_bcast_set(const World *world, DataSet *set)
{
    size_t bytes;
    if (world->rank > 0) data_set_fini(set);
    world_bcast(world, set, sizeof *set, 0);
    void *block = data_set_block(set, &bytes);
    if (bytes == 0) return;
    if (world->rank > 0) block = mem_new(bytes);
    world_bcast(world, block, bytes, 0);
    data_set_give_block(set, block);
}

static Status open_set(const Config *config, const char *path, bool test, DataSet *set)
{
    TRY(data_set_open(set, config, path));
    TRY(data_set_select_times(set, config, test));
    TRY(data_set_take_patch(set, config, test));
    return data_set_check_size(set, config);
}

/* If a training set of fields has no mean and deviation, measures them on all ranks, or reads them
 * from data.stats. Only rank 0's sets get them; the caller broadcasts the sets. Collective. */
static Status find_field_stats(Trainer *t)
{
    DataSet *train = &t->train_set, *test = &t->test_set;
    const Config *c = t->config;
    const double begun = clock_s();
    const int threads =
        c->train.threads ? (int)c->train.threads : threads_share(t->world->node_size);
    train_bcast_set(t->world, train);
    /* true: the loss reads numbers and the set's targets are numbers, or the loss reads no numbers
     * and the targets are labels. For all other pairs nothing is measured here, because
     * train_build_graph refuses them later. */
    const bool fits = (loss_info(c)->reads == LOSS_READS_TARGETS) != data_has_label_fields(train);
    if (train->has_stats || !c->data.normalize || !fits) return OK;
    FieldStats *stats = mem_new(sizeof *stats);
    Status st = OK;
    if (!*c->data.stats)
        st = train_measure_fields(t->world, train, stats, threads);
    else if (t->world->rank == 0)
        st = data_fields_stats_load(train, stats, c->data.stats);
    if (st == OK && t->world->rank == 0) st = data_fields_use(train, stats);
    st = status_agree(t->world, st);
    mem_free(&stats);
    TRY(st);
    if (t->world->rank > 0) return OK;
    if (test->samples > 0) train_share_stats(test, train);
    if (*c->data.stats)
        log_info("%s: mean and deviation are those in %s", train->path, c->data.stats);
    else
        log_info("%s: mean and deviation of %d variables measured over %lld samples in %.1f s",
                 train->path, data_fields_measured(train), (long long)train->samples,
                 clock_s() - begun);
    return OK;
}

/* Returns the paths of the files that the training set had when the checkpoint t->earlier was
 * written. Returns NULL if the training set does not grow (data.refresh), if there is no such
 * checkpoint, or if it has no list of files that can be read. Owner: the caller. */
static char *recorded_files(const Trainer *t)
{
    CheckpointMeta meta = {0};
    char *paths = NULL;
    if (t->config->data.refresh == REFRESH_NEVER || !t->earlier) return NULL;
    /* an unreadable file is reported when it is loaded */
    if (checkpoint_read_meta(t->earlier, &meta) == OK && meta.data_files)
        paths = data_listed_paths(meta.data_files);
    checkpoint_meta_fini(&meta);
    return paths;
}

Status trainer_extend_data(Trainer *t, DataSet *next)
{
    const Position at = position_after(t, t->step);
    Status st = t->world->rank == 0 ? train_prepare_set(next, &t->train_set) : OK;
    TRY(status_agree(t->world, st));
    executor_release_batches(t->executor);
    step_loader_close(t);
    train_bcast_set(t->world, next);
    data_set_fini(&t->train_set);
    t->train_set = *next;
    *next = (DataSet){0};
    position_move(t, at);
    /* losses on new files may be higher; a higher loss is then no spike */
    loss_window_init(&t->losses, NULL, 0);
    return resume_know_data(t);
}

/* Opens the training and test sets. Only rank 0 calls this function. */
static Status open_sets(Trainer *t)
{
    const Config *c = t->config;
    /* without data.train the test set replaces the training set, and the checkpoint supplies scale,
     * mean, deviation and classes */
    char *recorded = c->data.train ? recorded_files(t) : NULL;
    const char *train = recorded ? recorded : c->data.train ? c->data.train : c->data.test;
    Status st = open_set(c, train, !c->data.train, &t->train_set);
    if (st == OK && recorded)
        log_info("data.train: the %d files that %s was trained on", data_set_files(&t->train_set),
                 t->earlier);
    mem_free(&recorded);
    TRY(st);
    if (c->data.test) TRY(open_set(c, c->data.test, true, &t->test_set));
    if (c->data.test) TRY(train_prepare_test_set(&t->test_set, &t->train_set));
    scaling_take(t);
    return OK;
}

/* Compares the scaling of the sets and of their files (scaling_compare_sets), matches the sets'
 * classes (classes_fit), and checks all labels (classes_check_labels). Only rank 0 calls this
 * function. */
static Status compare_sets(Trainer *t)
{
    TRY(scaling_compare_sets(t));
    TRY(classes_fit(t));
    return classes_check_labels(t);
}

Status trainer_open_data(Trainer *t, const DryRun *only)
{
    const Config *c = t->config;
    const DataSet *given = only && only->data ? only->data : t->substitute_set;
    if (given) {
        data_set_copy(&t->train_set, given);
        return OK;
    }
    if (!c->data.train && t->checkpoint && !c->data.test)
        return config_fail_key(c, "data.test", "no test data: set data.test to an HDF5 file");
    if (!c->data.train && !t->checkpoint)
        return config_fail_key(c, "data.train", "no training data: set data.train to an HDF5 file");
    TRY(status_agree(t->world, t->world->rank == 0 ? open_sets(t) : OK));
    if (c->data.variables.count > 0 && !only) TRY(find_field_stats(t));
    TRY(status_agree(t->world, t->world->rank == 0 ? compare_sets(t) : OK));
    train_bcast_set(t->world, &t->train_set);
    if (c->data.test) train_bcast_set(t->world, &t->test_set);
    return OK;
}

/* Sets *outputs for a loss that requires a fixed number of outputs, such as one logit for two
 * classes. */
static Status count_fixed(const Config *c, const DataSet *set, const DataSet *test,
                          int64_t *outputs)
{
    const LossInfo *loss = loss_info(c);
    const DataSet *larger = set->classes > loss->classes ? set : test;
    *outputs = loss->outputs;
    if (larger->classes <= loss->classes) return OK;
    if (c->model.classes > loss->classes)
        return config_fail_key(c, "model.classes", "is %lld, but train.loss %s has %lld classes",
                               (long long)c->model.classes, loss_name(c), (long long)loss->classes);
    return fail(ERR_DATA,
                "%s: has %lld classes, but train.loss %s needs labels 0 and 1: set it to "
                "softmax",
                larger->path, (long long)larger->classes, loss_name(c));
}

/* Fails with a message that says what the set has in place of class labels: labels in another form,
 * or numbers as targets. For numbers the message lists the losses that read them. */
static Status fail_no_labels(const Config *c, const DataSet *set)
{
    char *line = data_set_label_warning(set, c, NULL);
    Status st;
    if (line) {
        st = fail(ERR_DATA, "%s", line);
    } else {
        TextList losses;
        const LayerKind *kind;
        text_list_begin(&losses, 8);
        for (int i = 0; (kind = layer_kind_at(i)); ++i)
            if (kind->loss && kind->loss->reads == LOSS_READS_TARGETS)
                text_list_add(&losses, kind->loss->word.word);
        line = text_list_end(&losses);
        if (data_has_fields(set))
            st = fail(ERR_DATA,
                      "%s: its targets are numbers, and train.loss %s needs labels: set train.loss "
                      "to one for numbers (%s), or give the target's classes in data.variables, "
                      "{name: NAME, classes: N}",
                      set->path, loss_name(c), line);
        else
            st = fail(
                ERR_DATA,
                "%s: has no class labels: its targets are numbers, and train.loss %s needs one "
                "integer a sample: set train.loss to one for numbers (%s), or name labels with "
                "data.y",
                set->path, loss_name(c), line);
    }
    mem_free(&line);
    return st;
}

/* Sets *outputs to the model's number of outputs. It is the loss's number of outputs if that is
 * fixed (count_fixed), else model.classes if that is set. Otherwise there is one output for each
 * class or, if targets are numbers, one for each number in a sample's targets; in a rollout, in the
 * targets of one step. */
static Status count_outputs(const Config *c, const DataSet *set, const DataSet *test,
                            int64_t *outputs)
{
    const LossInfo *loss = loss_info(c);
    const bool numbers = loss->reads == LOSS_READS_TARGETS;
    int64_t outputs_needed = numbers ? set->target_width : set->classes;
    const bool fields = data_has_fields(set), pixels = data_has_label_fields(set);
    if (pixels && (numbers || loss->outputs > 0))
        return config_fail_key(c, "train.loss",
                               "%s has a label for each pixel, which %s does not read: set it to "
                               "softmax, focal, dice or iou",
                               set->path, loss_name(c));
    if (numbers && fields && !pixels) outputs_needed = set->field_set.step_targets;
    if (outputs_needed == 0 && numbers)
        return fail(ERR_DATA, "%s: holds class labels, but train.loss %s needs target numbers",
                    set->path, loss_name(c));
    if (outputs_needed == 0) return fail_no_labels(c, set);
    if (loss->outputs > 0) return count_fixed(c, set, test, outputs);
    *outputs = c->model.classes ? c->model.classes : outputs_needed;
    if (numbers && *outputs != outputs_needed)
        return config_fail_key(c, "model.classes", "%s has %lld target numbers a sample, not %lld",
                               set->path, (long long)outputs_needed, (long long)*outputs);
    if (pixels && *outputs != outputs_needed)
        return config_fail_key(c, "model.classes",
                               "is %lld, but %s has labels of %lld classes (data.variables): "
                               "remove it",
                               (long long)*outputs, set->path, (long long)outputs_needed);
    if (outputs_needed > *outputs)
        return config_fail_key(c, "model.classes", "%s has %lld classes, the model only %lld",
                               set->path, (long long)outputs_needed, (long long)*outputs);
    if (test->classes > *outputs)
        return fail(
            ERR_DATA,
            "%s: has labels up to %lld, but %s only up to %lld: set model.classes to %lld, "
            "or, if their labels start at different numbers, make them start at the same one",
            test->path, (long long)(test->label_base + test->classes - 1), set->path,
            (long long)(set->label_base + outputs_needed - 1), (long long)test->classes);
    return OK;
}

/* Sets *outputs for tokens: the vocabulary's size, from model.vocab, model.size or the data set. */
static Status count_tokens(const Config *c, const DataSet *set, const DataSet *test,
                           int64_t *outputs)
{
    if (loss_info(c)->reads != LOSS_READS_TOKENS)
        return config_fail_key(c, "train.loss", "%s holds tokens, which need train.loss softmax",
                               set->path);
    bool named = c->model.size != GPT_OWN;
    *outputs = c->model.vocab ? c->model.vocab : named ? GPT2_VOCAB : set->vocab;
    if (set->vocab > *outputs || test->vocab > *outputs)
        return config_fail_key(c, "model.vocab", "%s has tokens up to %lld, the model only %lld",
                               set->vocab > *outputs ? set->path : test->path,
                               (long long)(set->vocab > *outputs ? set->vocab : test->vocab),
                               (long long)*outputs);
    return OK;
}

/* Returns ERR_CONFIG if the model's outputs do not fit the set. For fields they must have the shape
 * of the targets or, with a label for each pixel, (samples, classes, height, width). For other
 * targets only the number of values must be the same. */
static Status check_targets(const Graph *graph, const Config *config, const DataSet *set)
{
    char y[64], needed[64];
    const Shape is = graph->node[graph->logits_node].spec.y.shape;
    const bool fields = data_has_fields(set), pixels = data_has_label_fields(set);
    const int64_t channels = pixels ? set->classes : set->y.dim[1];
    Shape needs = shape_of(2, is.dim[0], set->target_width, 1, 1);
    if (fields) needs = shape_of(4, is.dim[0], channels, set->y.dim[2], set->y.dim[3]);
    const bool fits = fields ? shape_equal(is, needs) : shape_count(is) == shape_count(needs);
    if ((set->target_width == 0 && !pixels) || fits) return OK;
    return config_fail_key(config, config->model.layer_count ? "model.layers" : "model.name",
                           "its outputs are %s, but the %s of %s %s %s", shape_text(is, y),
                           pixels ? "classes of the pixels" : "targets", set->path,
                           pixels ? "need" : "are", shape_text(needs, needed));
}

/* Returns ERR_CONFIG if the loss needs another number of labels than a sample has. */
static Status check_labels(const Graph *graph, const Config *config, const DataSet *set)
{
    char y[64];
    const OpSpec *loss = &graph->node[graph->loss_node].spec;
    /* sets with boxes are not checked here, because the loader checks them */
    if (op_info(loss->kind)->reads != READS_LABELS || data_has_boxes(set)) return OK;
    const int64_t needed = loss_labels(loss) / loss->x[0].shape.dim[0];
    const int64_t given = data_labels_per_sample(set);
    if (needed == given) return OK;
    return config_fail_key(config, config->model.layer_count ? "model.layers" : "model.name",
                           "its outputs are %s, so that train.loss %s needs %lld labels a sample, "
                           "and %s has %lld: for one label, end with flatten and dense",
                           shape_text(loss->x[0].shape, y), loss_name(config), (long long)needed,
                           set->path, (long long)given);
}

/* Returns true if weights of targets differ between samples of the set; false for an empty set. */
static bool weights_vary(const DataSet *set)
{
    return data_has_fields(set) && field_loss_weights_vary(&set->field_set);
}

Status train_build_graph(Graph **graph, const Config *config, const DataSet *train,
                         const DataSet *test, int64_t samples)
{
    const bool tokens = data_has_tokens(train), fields = data_has_fields(train);
    int64_t outputs = 0;
    if (config->train.rollout > 1 && !fields)
        return config_fail_key(config, "train.rollout",
                               "%s is no set of fields, so its samples "
                               "have no steps: set it to 1",
                               train->path);
    TRY((tokens ? count_tokens : count_outputs)(config, train, test, &outputs));
    Desc input = desc_plain(data_set_shape(train, samples), tokens ? DTYPE_I32 : DTYPE_F32);
    GraphIds ids = {.fields = train->fields, .id_limit = train->id_limit};
    if (fields && train->field_set.steps > 1)
        TRY(field_steps_build(graph, config, train, input, outputs));
    else
        TRY(graph_build_ids(graph, config, input, ids, outputs));
    TRY(check_targets(*graph, config, train));
    TRY(check_labels(*graph, config, train));
    (*graph)->weights_vary = weights_vary(train) || weights_vary(test);
    (*graph)->box_rows =
        samples * data_box_most(train->box_most > test->box_most ? train : test, config, true);
    return OK;
}
