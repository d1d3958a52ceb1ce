/* weft eval: evaluates a checkpoint on the test data. Prints loss, top-1, top-5, AUC, AP, IoU,
 * errors of fields and the confusion matrix, as far as the model has them. Runs on any grid,
 * whatever the grid of the training was; the number of replicas follows from the number of
 * ranks. */
#include "private.h"

#include "train.h"

#include <math.h>
#include <string.h>

/* Results of one class. */
typedef struct ClassResult {
    /* number of samples (for label fields: pixels) of the class */
    int64_t count;
    /* number of samples that are predicted as the class */
    int64_t predicted;
    /* number of samples of the class that are predicted as the class */
    int64_t hits;
    /* hits / count; NaN if count is 0 */
    double recall;
    /* hits / predicted; NaN if `predicted` is 0 */
    double precision;
} ClassResult;

enum {
    /* largest number of classes for which the confusion matrix is printed; with more classes, only
     * the most frequent confusions are printed */
    MATRIX_CLASSES_MAX = 20,
    /* number of most frequent confusions that are printed */
    WORST_COUNT = 10,
    /* width of a class's name in tables, in characters */
    NAME_COLUMNS = 13
};

typedef struct Eval {
    /* path of the checkpoint; borrowed */
    const char *checkpoint;
    /* path of the file of --results, to which all boxes are written; NULL: none; borrowed */
    const char *results;
    bool json, per_class, no_ema;
    /* metrics of the evaluation */
    EvalLine line;
    /* number of classes; 0: there is no confusion matrix */
    int64_t classes;
    /* results of each class of a detector, if per_class is set; on rank 0 only; owned */
    CocoResult coco;
    /* number of samples (for label fields: pixels) for each pair [true class][predicted class],
     * [classes][classes]; NULL for losses without classes; owned */
    int64_t *confusion;
    /* the test set; borrowed */
    const DataSet *set;
    /* true: the loaded parameters are the EMA */
    bool ema;
    /* names of the classes, on rank 0 only; owned */
    ClassNames names;
} Eval;

/* Returns the name of a class or, if it has none, its label in the data set as text in `number`. */
static const char *label_of(const Eval *e, int64_t class, char number[24])
{
    return class_name(&e->names, class < e->names.count ? class : class + e->set->label_base,
                      number);
}

/* Prints the name of a class, cut or padded to NAME_COLUMNS characters. */
static void put_name(const Eval *e, int64_t class, FILE *out)
{
    char number[24];
    const char *name = label_of(e, class, number);
    char *fit = mem_new(strlen(name) + NAME_COLUMNS + 1);
    fputs(utf8_fit(name, NAME_COLUMNS, fit), out);
    mem_free(&fit);
}

static ClassResult class_result(const Eval *e, int64_t class)
{
    ClassResult r = {.hits = e->confusion[class * e->classes + class]};
    for (int64_t other = 0; other < e->classes; ++other) {
        r.count += e->confusion[class * e->classes + other];
        r.predicted += e->confusion[other * e->classes + class];
    }
    r.recall = r.count > 0 ? (double)r.hits / (double)r.count : NAN;
    r.precision = r.predicted > 0 ? (double)r.hits / (double)r.predicted : NAN;
    return r;
}

static void put_percent(double fraction, FILE *out)
{
    if (isnan(fraction))
        fprintf(out, " %11s", "-");
    else
        fprintf(out, " %9.2f %%", 100 * fraction);
}

static void print_classes(const Eval *e, FILE *out)
{
    fprintf(out, "\n%*s %9s %11s %11s %11s\n", NAME_COLUMNS + 6, "class",
            e->line.labels ? "pixels" : "samples", "predicted", "recall", "precision");
    for (int64_t c = 0; c < e->classes; ++c) {
        ClassResult result = class_result(e, c);
        fprintf(out, "%5lld ", (long long)(c + e->set->label_base));
        put_name(e, c, out);
        fprintf(out, " %9lld %11lld", (long long)result.count, (long long)result.predicted);
        put_percent(result.recall, out);
        put_percent(result.precision, out);
        fputc('\n', out);
    }
}

/* Prints a line for each class of a detector, with the number of true boxes that COCO's metrics
 * count, AP and AP50. */
static void print_box_classes(const Eval *e, FILE *out)
{
    fprintf(out, "\n%*s %9s %11s %11s\n", NAME_COLUMNS + 6, "class", "boxes", "AP", "AP50");
    for (int c = 0; c < e->coco.categories; ++c) {
        fprintf(out, "%5d ", c);
        put_name(e, c, out);
        fprintf(out, " %9lld", (long long)e->coco.truths[c]);
        if (e->coco.truths[c] == 0)
            fprintf(out, " %11s %11s\n", "-", "-");
        else
            fprintf(out, " %11.6f %11.6f\n", e->coco.ap[c], e->coco.ap50[c]);
    }
}

static void print_matrix(const Eval *e, FILE *out)
{
    enum { COLUMNS_MIN = 6 };
    int64_t largest = 0;
    for (int64_t i = 0; i < e->classes * e->classes; ++i)
        if (e->confusion[i] > largest) largest = e->confusion[i];
    int columns = snprintf(NULL, 0, "%lld", (long long)largest);
    if (columns < COLUMNS_MIN) columns = COLUMNS_MIN;
    fprintf(out, "\nconfusion: a row is the true class, a column what was predicted\n%*s",
            NAME_COLUMNS + 3, "");
    for (int64_t c = 0; c < e->classes; ++c)
        fprintf(out, " %*lld", columns, (long long)(c + e->set->label_base));
    fputc('\n', out);
    for (int64_t r = 0; r < e->classes; ++r) {
        fprintf(out, "%2lld ", (long long)(r + e->set->label_base));
        put_name(e, r, out);
        for (int64_t c = 0; c < e->classes; ++c)
            fprintf(out, " %*lld", columns, (long long)e->confusion[r * e->classes + c]);
        fputc('\n', out);
    }
}

/* Returns the index of the cell that follows `cell` in the order of descending numbers of samples.
 * Cells with equal numbers are ordered by index, and cells on the matrix's diagonal are left out.
 * Returns -1 if no cell with samples follows. count: number of samples of `cell`; INT64_MAX:
 * returns the first cell. */
static int64_t next_worst(const Eval *e, int64_t count, int64_t cell)
{
    int64_t best = -1, most = 0;
    for (int64_t i = 0; i < e->classes * e->classes; ++i) {
        int64_t n = e->confusion[i];
        bool after = n < count || (n == count && i > cell);
        if (i / e->classes != i % e->classes && after && n > most) {
            best = i;
            most = n;
        }
    }
    return best;
}

static void print_worst(const Eval *e, FILE *out)
{
    char truth[24], predicted[24];
    int64_t count = INT64_MAX, cell = -1;
    fprintf(out, "\nmost frequent confusions\n");
    for (int i = 0; i < WORST_COUNT; ++i) {
        cell = next_worst(e, count, cell);
        if (cell < 0) return;
        count = e->confusion[cell];
        fprintf(out, "  %6lld  %s taken for %s\n", (long long)count,
                label_of(e, cell / e->classes, truth), label_of(e, cell % e->classes, predicted));
    }
}

/* Prints skill and RMSE of fields, and a line of metrics for each target. */
static void print_fields(const FieldMetrics *fields, FILE *out)
{
    enum { COLUMNS = 20 };
    char fit[COLUMNS + sizeof fields->target[0].label.name];
    fprintf(out, "skill       %.4f, mean over the targets%s\nRMSE        %.4f of the deviation\n",
            text_nan_without_sign(fields->skill), fields->latitude ? ", weighted by latitude" : "",
            text_nan_without_sign(fields->normalized_rmse));
    fprintf(out, "\n%*s %11s %11s %11s %9s %9s %9s %9s  %s\n", COLUMNS, "", "RMSE", "MAE", "bias",
            "corr.", "anomaly", "skill P", "skill C", "units");
    for (int i = 0; i < fields->targets; ++i) {
        const FieldTargetMetrics *t = &fields->target[i];
        fputs(utf8_fit(t->label.name, COLUMNS, fit), out);
        for (int k = 0; k < FIELD_METRICS; ++k)
            fprintf(out, k < FIELD_CORRELATION ? " %11.5g" : " %9.4f",
                    text_nan_without_sign(t->metric[k]));
        fprintf(out, "  %s\n", t->label.units);
    }
}

/* Prints IoU and Dice of label fields, with a line for each class. */
static void print_labels(const LabelMetrics *labels, FILE *out)
{
    char fit[4 * NAME_COLUMNS + sizeof labels->item[0].name];
    fprintf(out,
            "IoU         %.4f, mean over the classes\nDice        %.4f, mean over the classes\n"
            "accuracy    %.2f %% of %lld pixels\n\n%*s %12s %12s %9s %9s\n",
            text_nan_without_sign(labels->iou), text_nan_without_sign(labels->dice),
            100 * text_nan_without_sign(labels->accuracy), (long long)labels->pixels,
            NAME_COLUMNS + 3, "class", "pixels", "predicted", "IoU", "Dice");
    for (int c = 0; c < labels->classes; ++c) {
        const LabelClassMetrics *k = &labels->item[c];
        fprintf(out, "%2d %s %12lld %12lld %9.4f %9.4f\n", c, utf8_fit(k->name, NAME_COLUMNS, fit),
                (long long)k->pixels, (long long)k->predicted, text_nan_without_sign(k->iou),
                text_nan_without_sign(k->dice));
    }
    fputc('\n', out);
}

static void print_metrics(const EvalLine *line, FILE *out)
{
    if (line->fields) print_fields(line->fields, out);
    if (line->labels) print_labels(line->labels, out);
    const char *top1 = line->auc_kind ? "accuracy" : "top-1   ";
    if (!isnan(line->top1)) fprintf(out, "%s    %.2f %%\n", top1, 100 * line->top1);
    if (!isnan(line->top5)) fprintf(out, "top-5       %.2f %%\n", 100 * line->top5);
    for (int i = 0; line->has_boxes && i < LOSS_PARTS; ++i)
        fprintf(out, "%-11s %.4f\n", loss_part_name((LossPart)i), line->part[i]);
    for (int i = 0; line->has_boxes && i < COCO_NUMBERS; ++i) {
        const double value = line->coco[i];
        fprintf(out, value < 0 ? "%-11s -\n" : "%-11s %.6f\n", coco_number_name((CocoNumber)i),
                value);
    }
    if (!line->auc_kind) return;
    if (isnan(line->auc))
        fprintf(out, "AUC         not defined: all labels are equal, or a logit is not a number\n");
    else
        fprintf(out, "AUC         %.6f (%s)\nentropy     %.6f (normalised)\n", line->auc,
                line->auc_kind, line->normalized_entropy);
    if (!isnan(line->calibration)) fprintf(out, "calibration %.4f\n", line->calibration);
}

static void print_text(const Eval *e, FILE *out)
{
    fprintf(out, "checkpoint  %s%s\ndata        %s, %lld %s\nloss        %.4f\n", e->checkpoint,
            e->ema ? ", the EMA of the parameters" : "", e->set->path, (long long)e->line.samples,
            row_unit(e->line.counts_tokens), text_nan_without_sign(e->line.loss));
    print_metrics(&e->line, out);
    fprintf(out, "time        %.2f s, %.0f %s/s\n", e->line.seconds,
            (double)e->line.samples / fmax(e->line.seconds, 1e-9), row_unit(e->line.counts_tokens));
    if (e->coco.categories > 0) print_box_classes(e, out);
    if (!e->confusion) return;
    if (e->per_class) print_classes(e, out);
    if (e->classes <= MATRIX_CLASSES_MAX)
        print_matrix(e, out);
    else
        print_worst(e, out);
}

static void put_confusion(const Eval *e, Json *json)
{
    char number[24];
    json_array(json, "classes");
    for (int64_t r = 0; r < e->classes; ++r) json_text(json, NULL, label_of(e, r, number));
    json_end(json);
    json_array(json, "confusion");
    for (int64_t r = 0; r < e->classes; ++r) {
        json_array(json, NULL);
        for (int64_t c = 0; c < e->classes; ++c)
            json_int(json, NULL, e->confusion[r * e->classes + c]);
        json_end(json);
    }
    json_end(json);
}

static void put_classes(const Eval *e, Json *json)
{
    char number[24];
    json_array(json, "per_class");
    for (int64_t c = 0; c < e->classes; ++c) {
        ClassResult result = class_result(e, c);
        json_object(json, NULL);
        json_text(json, "class", label_of(e, c, number));
        json_int(json, "samples", result.count);
        json_int(json, "predicted", result.predicted);
        json_real(json, "recall", result.recall);
        json_real(json, "precision", result.precision);
        json_end(json);
    }
    json_end(json);
}

static void put_box_classes(const Eval *e, Json *json)
{
    char number[24];
    json_array(json, "per_class");
    for (int c = 0; c < e->coco.categories; ++c) {
        json_object(json, NULL);
        json_text(json, "class", label_of(e, c, number));
        json_int(json, "boxes", e->coco.truths[c]);
        json_real(json, coco_number_name(COCO_AP), e->coco.ap[c]);
        json_real(json, coco_number_name(COCO_AP50), e->coco.ap50[c]);
        json_end(json);
    }
    json_end(json);
}

static void print_json(const Eval *e, FILE *out)
{
    Json json = json_to(out, true);
    json_object(&json, NULL);
    json_text(&json, "checkpoint", e->checkpoint);
    json_bool(&json, "ema", e->ema);
    json_text(&json, "data", e->set->path);
    json_int(&json, row_unit(e->line.counts_tokens), e->line.samples);
    json_real(&json, "eval_loss", e->line.loss);
    json_real(&json, "top1", e->line.top1);
    json_real(&json, "top5", e->line.top5);
    eval_put_metrics(&e->line, &json);
    json_real(&json, "seconds", e->line.seconds);
    if (e->confusion) put_confusion(e, &json);
    if (e->per_class && e->confusion) put_classes(e, &json);
    if (e->coco.categories > 0) put_box_classes(e, &json);
    json_end(&json);
}

static Status evaluate(Trainer *trainer, Eval *e)
{
    e->set = trainer_test_set(trainer);
    const bool has_classes = data_has_label_fields(e->set) ||
                             (loss_info(trainer_config(trainer))->results == LOSS_RESULTS_RANK &&
                              !data_has_tokens(e->set));
    const bool boxes = loss_info(trainer_config(trainer))->reads == LOSS_READS_BOXES;
    if (e->per_class && !has_classes && !boxes)
        return fail(ERR_USAGE, "--per-class: this model does not predict classes; that needs "
                               "labels and train.loss: softmax, or boxes and train.loss: yolo");
    TRY(train_load(trainer, e->checkpoint, e->no_ema ? LOAD_PARAMS : LOAD_AVERAGES));
    e->ema = trainer_has_averages(trainer);
    if (has_classes) {
        e->classes = trainer_graph(trainer)->classes;
        e->confusion = mem_new((size_t)(e->classes * e->classes) * sizeof *e->confusion);
    }
    if (e->results && !boxes)
        return fail(ERR_USAGE, "--results: this model finds no boxes; that needs train.loss: yolo");
    const EvalExtras extras = {
        .confusion = e->confusion, .results = e->results, .coco = e->per_class ? &e->coco : NULL};
    TRY(train_evaluate(trainer, trainer_test_set(trainer), &e->line, &extras));
    if (trainer_world(trainer)->rank > 0) return OK;
    const bool names = e->confusion || e->coco.categories > 0;
    const char *classes = names ? trainer_classes(trainer) : NULL;
    if (classes)
        class_names_from_lines(&e->names, classes);
    else if (names)
        TRY(data_set_class_names(e->set, &e->names));
    if (e->json)
        print_json(e, stdout);
    else
        print_text(e, stdout);
    return OK;
}

typedef struct EvalOptions {
    int64_t ranks;
    const char *checkpoint, *results;
    bool json, per_class, no_ema;
} EvalOptions;

static const Flag flags[] = {
    FLAG_RANKS(EvalOptions),
    FLAG_CHECKPOINT(EvalOptions),
    FLAG_NO_EMA(EvalOptions),
    {"--per-class", FLAG_FIELD(EvalOptions, per_class),
     .help = "also print samples, recall (the accuracy of the class) and precision of each class; "
             "of a detector: boxes, AP and AP50"},
    {"--results", FLAG_FIELD(EvalOptions, results), .value = "FILE",
     .help = "detectors: writes all boxes as COCO's file of results (JSON)"},
    {"--json", FLAG_FIELD(EvalOptions, json), .help = "one JSON object"},
};

static Status run_job(const Job *job, const EvalOptions *o)
{
    Trainer *trainer = NULL;
    char *path = NULL;
    Eval e = {
        .json = o->json, .per_class = o->per_class, .no_ema = o->no_ema, .results = o->results};
    if (!job->config->data.test)
        return config_fail_key(job->config, "data.test",
                               "no test data: set data.test to an HDF5 file");
    /* 0: the number of replicas follows from the number of ranks */
    job->config->grid.dp = 0;
    job_drop_servers(job->config);
    TRY(job_find_checkpoint(job, o->checkpoint, &path));
    e.checkpoint = path;
    train_use_widths(job->config, &job->world, path);
    Status status = trainer_new_to_load(&trainer, job->config, &job->world, NULL, path);
    if (status == OK) status = evaluate(trainer, &e);
    trainer_free(&trainer);
    mem_free(&e.confusion);
    coco_result_fini(&e.coco);
    class_names_free(&e.names);
    mem_free(&path);
    return status;
}

static Status run(int argc, char **argv, const void *options)
{
    Job job;
    Status status = job_open(&job, argc, argv);
    if (status == OK) status = run_job(&job, options);
    return job_close(&job, status);
}

const Verb verb_eval = {
    .name = "eval",
    .words = "CONFIG [key=value ...]",
    .help = "computes loss, top-1, top-5, AUC, AP, IoU and confusion matrix on the test data",
    VERB_FLAGS(EvalOptions, flags),
    .traits = VERB_CONFIG | VERB_THREADS,
    .run = run,
};
