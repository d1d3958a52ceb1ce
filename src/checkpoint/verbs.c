/* `weft ckpt info` prints attributes, and the shapes and stored checksums of tensors without
 * reading their values; `weft ckpt diff` prints where two files differ, and reads one tensor of
 * each at a time. */
#include "base/escape.h"
#include "stored.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Opens a file and reads its attributes and table. Release with close_both in every case. */
static Status open_both(StoredFile *file, CheckpointMeta *meta, const char *path)
{
    *meta = (CheckpointMeta){0};
    TRY(stored_open(file, path));
    TRY(stored_list(file));
    return stored_meta(file, meta);
}

static void close_both(StoredFile *file, CheckpointMeta *meta)
{
    checkpoint_meta_fini(meta);
    stored_close(file);
}

/* ---- names in a file are not trusted ---- */

/* Text in memory, which is escaped for a terminal when it is printed. */
typedef struct EscapedPage {
    FILE *out;
    /* the text; owned */
    char *text;
    size_t bytes;
} EscapedPage;

static FILE *page_begin(EscapedPage *page)
{
    *page = (EscapedPage){0};
    page->out = open_memstream(&page->text, &page->bytes);
    if (!page->out) die_as(ERR_MEMORY, "out of memory");
    return page->out;
}

static void page_end(EscapedPage *page, FILE *out)
{
    if (fclose(page->out) != 0) die_as(ERR_MEMORY, "out of memory");
    text_escape_print(out, "%s", page->text);
    mem_free(&page->text);
}

/* ---- print ---- */

/* Returns the tensor's shape in the file; there ids have one dimension. */
static Shape stored_shape(const StoredTensor *t)
{
    return t->ids ? shape_of(1, t->shape.dim[0], 1, 1, 1) : t->shape;
}

/* Prints "4 classes: cat, dog, eel, ...": the names that fit into a line. */
static void print_classes(const char *classes, FILE *out)
{
    enum { LINE = 80 };
    int64_t count = 1;
    int used = 0;
    for (const char *c = classes; *c; ++c) count += *c == '\n';
    fprintf(out, "  %lld classes:", (long long)count);
    for (const char *name = classes; name && *name; ++name) {
        int length = (int)strcspn(name, "\n");
        bool last = !name[length];
        used += length + 2;
        if (used > LINE) {
            fprintf(out, " ...");
            break;
        }
        fprintf(out, " %.*s%s", length, name, last ? "" : ",");
        name += length;
        if (last) break;
    }
    fputc('\n', out);
}

static void print_text(const StoredFile *file, const CheckpointMeta *meta, FILE *out)
{
    char shape[64], size[16];
    fprintf(out, "%s\n", file->path);
    fprintf(out, "  step %lld, epoch %lld, step in epoch %lld, ", (long long)meta->step,
            (long long)meta->epoch, (long long)meta->data_step);
    if (meta->batch > 0)
        fprintf(out, "%lld of %lld samples, batch %lld, ", (long long)meta->epoch_samples,
                (long long)meta->samples, (long long)meta->batch);
    fprintf(out, "seed %lld, grid %s, weft %s", (long long)meta->seed, meta->grid, meta->version);
    if (!isnan(meta->best_metric)) fprintf(out, ", best metric %.6g", meta->best_metric);
    if (!isnan(meta->best_metric) && *meta->best_of) fprintf(out, " (%s)", meta->best_of);
    if (meta->lr.lr > 0) fprintf(out, ", lr %.9g requested by a hook", meta->lr.lr);
    if (meta->loss_scale > 0)
        fprintf(out, ", loss scale %.9g, %lld steps skipped", meta->loss_scale,
                (long long)meta->skipped);
    fputc('\n', out);
    if (*meta->data_train) fprintf(out, "  trained on %s\n", meta->data_train);
    if (*meta->data_test) fprintf(out, "  tested on  %s\n", meta->data_test);
    if (*meta->init_from) fprintf(out, "  began with %s\n", meta->init_from);
    if (meta->classes) print_classes(meta->classes, out);
    double bytes = 0;
    for (int i = 0; i < file->count; ++i) {
        const StoredTensor *t = &file->tensor[i];
        bytes += (double)shape_count(t->shape) * sizeof(float);
        fprintf(out, "  %-48s %-16s ", t->path, shape_text(stored_shape(t), shape));
        if (t->has_hash)
            fprintf(out, "%016" PRIx64 "\n", t->hash);
        else
            fprintf(out, "no checksum\n");
    }
    fprintf(out, "  %d tensors, %s\n", file->count, text_bytes(bytes, size));
}

static void print_json_tensor(const StoredTensor *t, Json *json)
{
    json_object(json, NULL);
    json_text(json, "path", t->path);
    const Shape shape = stored_shape(t);
    json_array(json, "shape");
    for (int d = 0; d < shape.ndim; ++d) json_int(json, NULL, shape.dim[d]);
    json_end(json);
    if (t->has_hash)
        json_format(json, "xxh64", "%016" PRIx64, t->hash);
    else
        json_text(json, "xxh64", NULL);
    json_end(json);
}

static const char *or_null(const char *text)
{
    return *text ? text : NULL;
}

static void put_classes(const char *classes, Json *json)
{
    ClassNames names;
    class_names_split(&names, mem_text(classes), strlen(classes) + 1, '\n');
    json_array(json, "classes");
    for (int64_t i = 0; i < names.count; ++i) json_text(json, NULL, names.name[i]);
    json_end(json);
    class_names_free(&names);
}

static void print_json(const StoredFile *file, const CheckpointMeta *meta, FILE *out)
{
    Json json = json_to(out, false);
    json_object(&json, NULL);
    json_text(&json, "file", file->path);
    json_int(&json, "step", meta->step);
    json_int(&json, "epoch", meta->epoch);
    json_int(&json, "data_step", meta->data_step);
    if (meta->batch > 0) {
        json_int(&json, "epoch_samples", meta->epoch_samples);
        json_int(&json, "samples", meta->samples);
        json_int(&json, "batch", meta->batch);
        json_int(&json, "schedule_batch", meta->schedule_batch);
    }
    json_int(&json, "seed", meta->seed);
    json_text(&json, "grid", meta->grid);
    json_real(&json, "best_metric", meta->best_metric);
    json_text(&json, "best_metric_of", or_null(meta->best_of));
    json_text(&json, "weft", meta->version);
    json_text(&json, "data_train", or_null(meta->data_train));
    json_text(&json, "data_test", or_null(meta->data_test));
    json_text(&json, "init_from", or_null(meta->init_from));
    if (meta->classes) put_classes(meta->classes, &json);
    json_array(&json, "tensors");
    for (int i = 0; i < file->count; ++i) print_json_tensor(&file->tensor[i], &json);
    json_end(&json);
    json_end(&json);
}

Status checkpoint_print(const char *path, FILE *out, bool json)
{
    StoredFile file;
    CheckpointMeta meta;
    EscapedPage page;
    Status status = open_both(&file, &meta, path);
    if (status == OK && json) {
        print_json(&file, &meta, out);
    } else if (status == OK) {
        print_text(&file, &meta, page_begin(&page));
        page_end(&page, out);
    }
    close_both(&file, &meta);
    return status;
}

/* ---- diff ---- */

typedef struct Diff {
    StoredFile a, b;
    CheckpointMeta meta_a, meta_b;
    /* buffers, each for one tensor of its file; owned */
    float *plain_a, *plain_b;
    FILE *out;
    bool equal;
} Diff;

/* Compares attributes. Differences in attributes that belong to the state of training make files
 * unequal; differences in how the files were written (grid, version, configuration) are only noted.
 * Other attributes, such as losses and data sets, are not compared. */
static void diff_meta(Diff *diff)
{
    const CheckpointMeta *a = &diff->meta_a, *b = &diff->meta_b;
    const struct {
        const char *name;
        int64_t a, b;
    } whole[] = {{"step", a->step, b->step},
                 {"epoch", a->epoch, b->epoch},
                 {"data_step", a->data_step, b->data_step},
                 {"epoch_samples", a->epoch_samples, b->epoch_samples},
                 {"schedule_batch", a->schedule_batch, b->schedule_batch},
                 {"seed", a->seed, b->seed},
                 {"skipped", a->skipped, b->skipped},
                 {"evaluations", a->evaluations, b->evaluations},
                 {"plateau_bad", a->lr.bad_evaluations, b->lr.bad_evaluations},
                 {"plateau_falls", a->lr.falls, b->lr.falls},
                 {"early_stop_bad", a->stop_bad_evaluations, b->stop_bad_evaluations},
                 {"hook_stop", a->hook_stop, b->hook_stop},
                 {"evaluation_due", a->evaluation_due, b->evaluation_due},
                 {"loss_scale_good", a->loss_scale_good, b->loss_scale_good}};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; ++i) {
        if (whole[i].a == whole[i].b) continue;
        fprintf(diff->out, "attribute %s: %lld and %lld\n", whole[i].name, (long long)whole[i].a,
                (long long)whole[i].b);
        diff->equal = false;
    }
    const struct {
        const char *name;
        double a, b;
    } real[] = {{"best_metric", a->best_metric, b->best_metric},
                {"lr", a->lr.lr, b->lr.lr},
                {"plateau_best", a->lr.best, b->lr.best},
                {"early_stop_best", a->stop_best, b->stop_best},
                {"loss_scale", a->loss_scale, b->loss_scale}};
    for (size_t i = 0; i < sizeof real / sizeof *real; ++i) {
        if (real[i].a == real[i].b || (isnan(real[i].a) && isnan(real[i].b))) continue;
        fprintf(diff->out, "attribute %s: %.17g and %.17g\n", real[i].name, real[i].a, real[i].b);
        diff->equal = false;
    }
    if (strcmp(a->grid, b->grid) != 0)
        fprintf(diff->out, "note: grid %s and %s\n", a->grid, b->grid);
    if (strcmp(a->version, b->version) != 0)
        fprintf(diff->out, "note: weft %s and %s\n", a->version, b->version);
    if (strcmp(a->config, b->config) != 0) fprintf(diff->out, "note: the configurations differ\n");
}

static void print_element(Diff *diff, const StoredTensor *t, int64_t element, const float *ab[2])
{
    int64_t at[SHAPE_DIMS] = {0}, rest = element;
    for (int d = t->shape.ndim - 1; d >= 0; --d) {
        at[d] = rest % t->shape.dim[d];
        rest /= t->shape.dim[d];
    }
    fprintf(diff->out, "tensor %s differs first at [", t->path);
    for (int d = 0; d < t->shape.ndim; ++d)
        fprintf(diff->out, "%s%lld", d ? "," : "", (long long)at[d]);
    fprintf(diff->out, "] (element %lld): %.9g and %.9g\n", (long long)element,
            (double)ab[0][element], (double)ab[1][element]);
}

static Status diff_values(Diff *diff, const StoredTensor *ta, const StoredTensor *tb, bool *same)
{
    float *a = diff->plain_a, *b = diff->plain_b;
    TRY(stored_read(&diff->a, ta, a));
    TRY(stored_read(&diff->b, tb, b));
    int64_t count = shape_count(ta->shape), first = -1, differ = 0;
    for (int64_t i = 0; i < count; ++i)
        if (memcmp(&a[i], &b[i], sizeof *a) != 0 && differ++ == 0) first = i;
    *same = differ == 0;
    if (*same) return OK;
    print_element(diff, ta, first, (const float *[2]){a, b});
    fprintf(diff->out, "  %lld of its %lld elements differ\n", (long long)differ, (long long)count);
    return OK;
}

/* Compares a pair of tensors. ta or tb is NULL if that file has no more tensors. *same: true if
 * names, shapes and values are equal. */
static Status diff_pair(Diff *diff, const StoredTensor *ta, const StoredTensor *tb, bool *same)
{
    char sa[64], sb[64];
    int order = !ta ? 1 : !tb ? -1 : strcmp(ta->path, tb->path);
    *same = false;
    if (order != 0) {
        fprintf(diff->out, "tensor %s is only in %s\n", order < 0 ? ta->path : tb->path,
                order < 0 ? diff->a.path : diff->b.path);
        return OK;
    }
    if (!shape_equal(ta->shape, tb->shape)) {
        fprintf(diff->out, "tensor %s: shape %s and %s\n", ta->path, shape_text(ta->shape, sa),
                shape_text(tb->shape, sb));
        return OK;
    }
    return diff_values(diff, ta, tb, same);
}

/* Compares the tensors up to the first that only one file has, or whose shape or bits differ. */
static Status diff_tensors(Diff *diff)
{
    bool same = true;
    for (int i = 0; same && (i < diff->a.count || i < diff->b.count); ++i)
        TRY(diff_pair(diff, i < diff->a.count ? &diff->a.tensor[i] : NULL,
                      i < diff->b.count ? &diff->b.tensor[i] : NULL, &same));
    if (!same) diff->equal = false;
    return OK;
}

static Status diff_files(Diff *diff)
{
    diff->plain_a = stored_buffer(&diff->a);
    diff->plain_b = stored_buffer(&diff->b);
    diff_meta(diff);
    Status status = diff_tensors(diff);
    mem_free(&diff->plain_a);
    mem_free(&diff->plain_b);
    return status;
}

Status checkpoint_diff(const char *a, const char *b, FILE *out, bool *equal)
{
    EscapedPage page;
    Diff diff = {.out = page_begin(&page), .equal = true, .b = {.path = b, .fd = -1, .id = -1}};
    Status status = open_both(&diff.a, &diff.meta_a, a);
    if (status == OK) status = open_both(&diff.b, &diff.meta_b, b);
    if (status == OK) status = diff_files(&diff);
    *equal = status == OK && diff.equal;
    if (*equal) fprintf(diff.out, "equal: %d tensors, to the bit\n", diff.a.count);
    page_end(&page, out);
    close_both(&diff.a, &diff.meta_a);
    close_both(&diff.b, &diff.meta_b);
    return status;
}
