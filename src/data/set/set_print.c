/* Implements `weft data info`, which describes a data set as text or as one JSON object, and `weft
 * data check`, which reads all of a set once. `weft data info` counts the samples of each class
 * only if the set has at most COUNTED_SAMPLES_MAX samples and COUNTED_CLASSES_MAX classes. */
#include "../fields/fields_private.h"

#include <string.h>

enum { COUNTED_SAMPLES_MAX = 10000000, COUNTED_CLASSES_MAX = 100000, BUFFER_BYTES = 1 << 20 };

/* Returns the number of samples of each class, [classes], owned by the caller. NULL: the set has
 * boxes, targets, or too many samples or classes, or its labels cannot be read. */
static int64_t *class_counts(const DataSet *set)
{
    Reader *reader;
    int32_t label;
    if (data_has_boxes(set) || set->classes < 1 || set->classes > COUNTED_CLASSES_MAX ||
        set->samples > COUNTED_SAMPLES_MAX || reader_new(&reader, set) != OK)
        return NULL;
    int64_t *count = mem_new((size_t)set->classes * sizeof *count);
    for (int64_t i = 0; i < set->samples && count; ++i) {
        if (reader_get(reader, i, NULL, &label, NULL) == OK)
            ++count[label];
        else
            mem_free(&count);
    }
    reader_free(&reader);
    return count;
}

static void array_json(const char *key, const DataArray *a, Json *json)
{
    json_object(json, key);
    json_text(json, "name", a->name);
    json_text(json, "type", element_name(a->type));
    json_text(json, "byte_order", a->big_endian ? "big" : "little");
    json_array(json, "shape");
    for (int i = 0; i < a->ndim; ++i) json_int(json, NULL, a->dim[i]);
    json_end(json);
    json_text(json, "storage", a->storage);
    json_bool(json, "direct", a->offset >= 0);
    json_int(json, "offset", a->offset);
    json_end(json);
}

static void numbers_json(Json *json, const char *key, const float *value, int n)
{
    json_array(json, key);
    for (int i = 0; i < n; ++i) json_real(json, NULL, (double)value[i]);
    json_end(json);
}

static void labels_json(const DataSet *set, const ClassNames *names, Json *json)
{
    int64_t *count = class_counts(set);
    json_int(json, "classes", set->classes);
    json_int(json, "target_width", set->target_width);
    if (names->count) {
        json_array(json, "class_names");
        for (int64_t i = 0; i < names->count; ++i) json_text(json, NULL, names->name[i]);
        json_end(json);
    }
    if (!count) return;
    json_array(json, "class_counts");
    for (int64_t i = 0; i < set->classes; ++i) json_int(json, NULL, count[i]);
    json_end(json);
    mem_free(&count);
}

static void names_json(const DataSet *set, const char *list, Json *json)
{
    ClassNames names;
    if (class_names_read_list(&names, set->path, list) == OK && names.count > 0) {
        json_array(json, list);
        for (int64_t i = 0; i < names.count; ++i) json_text(json, NULL, names.name[i]);
        json_end(json);
    }
    class_names_free(&names);
}

static void table_json(const DataSet *set, Json *json)
{
    names_json(set, "columns", json);
    if (set->fields == 0) return;
    array_json("ids", &set->ids, json);
    if (set->id_first.ndim) array_json("ids_offset", &set->id_first, json);
    names_json(set, "fields", json);
    json_int(json, "field_count", set->fields);
    json_int(json, "id_most", set->ids_per_sample_max);
    json_int(json, "id_rows", (int64_t)set->id_limit);
}

static void boxes_json(const DataSet *set, Json *json)
{
    DataBoxes boxes;
    array_json("boxes", &set->box[BOX_ARRAY_BOXES], json);
    if (data_boxes_read(&boxes, set) != OK) return;
    BoxCounts count = box_counts(&boxes);
    json_int(json, "crowd_boxes", count.crowds);
    json_int(json, "boxes_without_area", count.without_area);
    json_int(json, "pictures_without_boxes", count.empty_pictures);
    json_int(json, "most_boxes", count.boxes_max);
    json_array(json, "category_ids");
    for (int c = 0; c < boxes.classes; ++c) json_int(json, NULL, boxes.category_id[c]);
    json_end(json);
    json_array(json, "box_counts");
    for (int c = 0; c < boxes.classes; ++c) json_int(json, NULL, count.of_class[c]);
    json_end(json);
    mem_free(&count.of_class);
    data_boxes_free(&boxes);
}

static void images_json(const DataSet *set, const ClassNames *names, Json *json)
{
    if (data_has_boxes(set))
        boxes_json(set, json);
    else
        array_json("y", &set->y, json);
    json_int(json, "channels", set->channels);
    json_int(json, "height", set->height);
    json_int(json, "width", set->width);
    json_bool(json, "encoded", set->encoded);
    json_text(json, "layout", set->channels_last ? "nhwc" : "nchw");
    labels_json(set, names, json);
    json_real(json, "scale", (double)set->scale);
    if (!set->has_stats) return;
    numbers_json(json, "mean", set->mean, set->stats_count);
    numbers_json(json, "std", set->std, set->stats_count);
}

static void print_json(const DataSet *set, const ClassNames *names, FILE *out)
{
    Json json = json_to(out, true);
    json_object(&json, NULL);
    json_text(&json, "file", set->path);
    json_text(&json, "kind", data_kind(set)->name);
    json_int(&json, "samples", set->samples);
    if (data_has_fields(set)) {
        field_print_json(set, &json);
        json_end(&json);
        return;
    }
    array_json("x", &set->x, &json);
    if (data_has_tokens(set)) {
        json_int(&json, "tokens", set->x.dim[0]);
        json_int(&json, "context", set->context);
        json_int(&json, "vocab", set->vocab);
        if (set->tokenizer_hash[0]) {
            json_text(&json, "tokenizer", set->tokenizer);
            json_text(&json, "tokenizer_hash", set->tokenizer_hash);
        }
    } else {
        images_json(set, names, &json);
        if (!data_has_images(set)) table_json(set, &json);
    }
    json_end(&json);
}

static void array_text(const char *key, const DataArray *a, FILE *out)
{
    char bytes[16];
    fprintf(out, "  %-9s %s, ", key, a->name);
    for (int i = 0; i < a->ndim; ++i) fprintf(out, "%s%lld", i ? " x " : "", (long long)a->dim[i]);
    fprintf(out, " %s%s, %s, %s, ", element_name(a->type), a->big_endian ? " (big-endian)" : "",
            text_bytes((double)a->dim[0] * (double)a->sample_bytes, bytes), a->storage);
    if (a->offset >= 0)
        fprintf(out, "read directly at byte %lld\n", (long long)a->offset);
    else
        fputs("read through the HDF5 library\n", out);
}

static void labels_text(const DataSet *set, const ClassNames *names, FILE *out)
{
    if (set->target_width > 0) {
        fprintf(out, "  %-9s %lld numbers a sample\n", "targets", (long long)set->target_width);
        return;
    }
    int64_t *count = class_counts(set);
    fprintf(out, "  %-9s %lld\n", "classes", (long long)set->classes);
    for (int64_t i = 0; i < set->classes && (count || i < names->count); ++i) {
        const char *name = i < names->count ? names->name[i] : "";
        int blanks = 20 - utf8_columns(name);
        fprintf(out, "    %5lld  %s%*s", (long long)i, name, blanks > 0 ? blanks : 0, "");
        if (count) fprintf(out, " %9lld samples", (long long)count[i]);
        fputc('\n', out);
    }
    mem_free(&count);
}

static void boxes_text(const DataSet *set, const ClassNames *names, FILE *out)
{
    DataBoxes boxes;
    array_text("boxes", &set->box[BOX_ARRAY_BOXES], out);
    fprintf(out, "  %-9s %lld\n", "classes", (long long)set->classes);
    if (data_boxes_read(&boxes, set) != OK) {
        fprintf(out, "  %-9s cannot be read: %s\n", "labels", fail_message());
        return;
    }
    BoxCounts count = box_counts(&boxes);
    for (int c = 0; c < boxes.classes; ++c) {
        char number[24];
        const char *name = class_name(names, c, number);
        int blanks = 20 - utf8_columns(name);
        fprintf(out, "    %5d  %s%*s %9lld boxes, category %lld\n", c, name,
                blanks > 0 ? blanks : 0, "", (long long)count.of_class[c],
                (long long)boxes.category_id[c]);
    }
    fprintf(out, "  %-9s %lld, of which %lld around crowds and %lld without area\n", "labels",
            (long long)boxes.boxes, (long long)count.crowds, (long long)count.without_area);
    fprintf(out, "  %-9s at most %lld boxes; %lld pictures have none\n", "picture",
            (long long)count.boxes_max, (long long)count.empty_pictures);
    mem_free(&count.of_class);
    data_boxes_free(&boxes);
}

/* Prints the length of a list and its first NAMES_MAX names, such as "columns 2: age, hours". */
static void names_text(const DataSet *set, const char *list, int64_t count, FILE *out)
{
    enum { NAMES_MAX = 64 };
    ClassNames names;
    bool named = class_names_read_list(&names, set->path, list) == OK && names.count > 0;
    fprintf(out, "  %-9s %lld", list, (long long)count);
    for (int64_t i = 0; named && i < names.count && i < NAMES_MAX; ++i)
        fprintf(out, "%s%s", i ? ", " : ": ", names.name[i]);
    fputs(named && names.count > NAMES_MAX ? ", ...\n" : "\n", out);
    class_names_free(&names);
}

static void table_text(const DataSet *set, FILE *out)
{
    names_text(set, "columns", set->channels, out);
    if (set->fields == 0) return;
    array_text("ids", &set->ids, out);
    if (set->id_first.ndim) array_text("", &set->id_first, out);
    names_text(set, "fields", set->fields, out);
    fprintf(out, "  %-9s at most %lld a sample, ", "", (long long)set->ids_per_sample_max);
    if (set->id_limit)
        fprintf(out, "below %llu (id_rows)\n", (unsigned long long)set->id_limit);
    else
        fputs("any of 64 bits\n", out);
}

static void print_text(const DataSet *set, const ClassNames *names, FILE *out)
{
    fprintf(out, "%s: %s data set, %lld samples\n", set->path, data_kind(set)->name,
            (long long)set->samples);
    array_text(data_has_tokens(set) ? "tokens" : "x", &set->x, out);
    if (data_has_tokens(set)) {
        fprintf(out, "  %-9s %lld tokens and the next (model.context)\n", "sample",
                (long long)set->context);
        fprintf(out, "  %-9s %lld\n", "vocab", (long long)set->vocab);
        if (!set->tokenizer_hash[0] || strcmp(set->tokenizer_hash, TOKENIZER_OF_BYTES) == 0)
            fprintf(out, "  %-9s %s\n", "tokenizer", set->tokenizer_hash[0] ? "bytes" : "unknown");
        else
            fprintf(out, "  %-9s %s, hash %s\n", "tokenizer", set->tokenizer, set->tokenizer_hash);
        return;
    }
    if (!data_has_boxes(set)) array_text("y", &set->y, out);
    if (set->file_count)
        fprintf(out, "  %-9s %d, joined to one set; the path above is that of the first file\n",
                "files", set->file_count);
    if (set->encoded && set->height == 0)
        fprintf(out, "  %-9s picture files, decoded and resampled when read\n", "sample");
    else if (data_has_images(set))
        fprintf(out, "  %-9s %lld channel%s, %lld x %lld pixels, %s\n", "sample",
                (long long)set->channels, set->channels == 1 ? "" : "s", (long long)set->height,
                (long long)set->width, set->channels_last ? "NHWC" : "NCHW");
    else
        table_text(set, out);
    fprintf(out, "  %-9s raw * %.6g\n", "scale", (double)set->scale);
    for (int i = 0; set->has_stats && i < set->stats_count; ++i)
        fprintf(out, "  %-9s mean %.6g, deviation %.6g\n", i ? "" : "normalise",
                (double)set->mean[i], (double)set->std[i]);
    if (data_has_boxes(set))
        boxes_text(set, names, out);
    else
        labels_text(set, names, out);
}

Status data_set_print(const DataSet *set, FILE *out, bool json)
{
    ClassNames names = {0};
    if (set->classes > 0 && !data_has_tokens(set)) TRY(data_set_class_names(set, &names));
    if (json)
        print_json(set, &names, out);
    else if (data_has_fields(set))
        field_print_text(set, out);
    else
        print_text(set, &names, out);
    class_names_free(&names);
    return OK;
}

/* Checks that all values of x are finite. */
static Status check_x(const DataSet *set, Reader *reader)
{
    int64_t values = set->x.sample_bytes / (int64_t)element_bytes(set->x.type);
    int64_t rows = set->x.sample_bytes < BUFFER_BYTES ? BUFFER_BYTES / set->x.sample_bytes : 1;
    uint8_t *raw = mem_new((size_t)(rows * set->x.sample_bytes));
    Status st = OK;
    for (int64_t at = 0; st == OK && at < set->samples; at += rows) {
        int64_t n = set->samples - at < rows ? set->samples - at : rows;
        st = reader_get_rows(reader, at, n, raw);
        if (st != OK) break;
        int64_t bad = element_find_not_finite(set->x.type, raw, n * values);
        if (bad >= 0)
            st = fail(ERR_DATA, "%s: sample %lld: value %lld of %s is not %s; correct the data set",
                      set->path, (long long)(at + bad / values), (long long)(bad % values),
                      set->x.name, element_finite_text(set->x.type));
    }
    mem_free(&raw);
    return st;
}

/* Checks that all labels have classes, or that all targets are finite. */
static Status check_y(const DataSet *set, Reader *reader)
{
    int32_t label;
    float *target = mem_new((size_t)(set->target_width + 1) * sizeof *target);
    Status st = OK;
    for (int64_t i = 0; st == OK && i < set->samples; ++i) {
        if (set->target_width == 0) {
            st = reader_get(reader, i, NULL, &label, NULL);
            continue;
        }
        st = reader_get(reader, i, NULL, NULL, target);
        if (st == OK && element_find_not_finite(ELEM_F32, target, set->target_width) >= 0)
            st = fail(ERR_DATA,
                      "%s: sample %lld: a target in %s is not a finite number; correct the data "
                      "set",
                      set->path, (long long)i, set->y.name);
    }
    mem_free(&target);
    return st;
}

Status data_set_check(const DataSet *set, int64_t classes)
{
    Reader *reader;
    DataSet checked = *set;
    if (classes > 0) checked.classes = classes;
    if (data_has_fields(set)) return field_check(set);
    if (data_has_tokens(set)) return tokens_check(&checked);
    const bool has_boxes = data_has_boxes(set);
    DataBoxes boxes = {0};
    if (has_boxes) TRY(boxes_check(set, &boxes));
    Status st = reader_new(&reader, &checked);
    if (st == OK)
        st = set->encoded ? encoded_check(&checked, reader, boxes.size) : check_x(&checked, reader);
    data_boxes_free(&boxes);
    if (st == OK && !has_boxes) st = check_y(&checked, reader);
    if (st == OK) st = ids_check(&checked, reader);
    reader_free(&reader);
    return st;
}
