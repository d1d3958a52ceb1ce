/* Compares the meaning of data for the model in a checkpoint with their meaning for this run. The
 * shapes of parameters do not show such differences, so each kind of difference is an entry of the
 * array `meanings`. */
#include "meaning.h"

#include "base/escape.h"

#include <string.h>

/* bytes of the text of a fact */
enum { FACT_TEXT = 256 };
/* Facts about the data on which a checkpoint's model was trained, or about this run's data. */
typedef struct Facts {
    /* configuration; NULL: not known; borrowed */
    const Config *config;
    /* hash of the tokenizer; borrowed */
    const char *tokenizer;
    /* file of this run's data; NULL: facts about a checkpoint; borrowed */
    const char *path;
    /* DataKind; -1: not known */
    int kind;
    /* shape of a sample as the model reads it; for data of kind table only `channels`, the number
     * of columns, is used */
    int64_t channels, height, width;
    DataColumns columns;
    /* true: samples have class labels; always true for a checkpoint, of which it is not known */
    bool has_labels;
    /* the other side of the comparison; borrowed */
    const struct Facts *other;
} Facts;
/* A fact that is compared. */
typedef struct Meaning {
    /* parts of the message "FILE: SUBJECT NOW, but THEN for the training of CHECKPOINT: ADVICE".
     * NOW is the fact of this run's data, THEN that of the checkpoint. */
    const char *subject, *advice;
    /* Returns the advice if it depends on the difference; `advice` is then NULL. */
    const char *(*find_advice)(const Facts *f);
    /* Writes the fact; "" if it is not known or does not matter. */
    void (*text)(const Facts *f, char text[FACT_TEXT]);
    /* Returns true if this difference is acceptable. The member is NULL if no difference is. */
    bool (*allowed)(const Facts *then, const Facts *now);
    /* true: a difference is also refused for model.init_from, if all parameters are read from the
     * file */
    bool refuses_init_from;
    /* true: a difference is only logged */
    bool warn_only;
} Meaning;

static void base_text(const Facts *f, char text[FACT_TEXT])
{
    if (f->config && f->has_labels)
        snprintf(text, FACT_TEXT, "%lld", (long long)f->config->data.label_base);
}

/* Writes the layout (data.layout) if channels, height and width are equal. If they are not, another
 * layout gives another shape, which shape_words compares. */
static void layout_text(const Facts *f, char text[FACT_TEXT])
{
    bool cube = f->channels > 1 && f->channels == f->height && f->height == f->width;
    if (f->config && cube)
        snprintf(text, FACT_TEXT, "%s", f->config->data.layout == LAYOUT_NHWC ? "nhwc" : "nchw");
}

static void shape_words(const Facts *f, char text[FACT_TEXT])
{
    const long long c = (long long)f->channels;
    if (f->kind < 0) return;
    const DataKindInfo *kind = data_kind_info((DataKind)f->kind);
    if (kind->x == X_FIELDS)
        snprintf(text, FACT_TEXT, "fields of %lldx%lldx%lld", c, (long long)f->height,
                 (long long)f->width);
    else if (kind->x == X_IMAGES)
        snprintf(text, FACT_TEXT, "pictures of %lldx%lldx%lld", c, (long long)f->height,
                 (long long)f->width);
    else if (kind->x == X_TOKENS)
        snprintf(text, FACT_TEXT, "tokens");
    else
        snprintf(text, FACT_TEXT, "rows of %lld columns", c);
}

/* Samples of the same kind with another number of values are acceptable, because models of pictures
 * may accept any size. The same number of values in another shape is not acceptable, because the
 * values are then in another order. */
static bool shape_allowed(const Facts *then, const Facts *now)
{
    return then->kind == now->kind &&
           then->channels * then->height * then->width != now->channels * now->height * now->width;
}

/* Returns the text of data.variables without what does not affect the channels: weights, and the
 * value of pixels without a label. The caller owns the text. */
static char *variables_text(const Config *config)
{
    Config plain = *config;
    ConfigVariables *list = &plain.data.variables;
    const size_t bytes = (size_t)list->count * sizeof *list->item;
    ConfigVariable *item = memcpy(mem_new(bytes), list->item, bytes);
    list->item = item;
    for (int i = 0; i < list->count; ++i) {
        item[i].weights = (ConfigList){0};
        item[i].has_ignore = false;
    }
    char *text = config_key_text(&plain, "data.variables");
    mem_free(&item);
    return text;
}

/* Writes the keys that define the channels of fields. Of a long text, writes the beginning and a
 * hash. */
static void channels_text(const Facts *f, char text[FACT_TEXT])
{
    enum { KEPT = 160 };
    if (!f->config || f->kind != DATA_FIELDS || f->config->data.variables.count == 0) return;
    char *variables = variables_text(f->config);
    char *window = config_key_text(f->config, "data.window");
    char *predict = config_key_text(f->config, "data.predict");
    char *all = mem_format("variables: %s, window: %s, predict: %s", variables, window, predict);
    const size_t length = strlen(all);
    if (length <= KEPT)
        snprintf(text, FACT_TEXT, "%s", all);
    else
        snprintf(text, FACT_TEXT, "%.*s... (hash %08x)", KEPT, all,
                 (unsigned)hash_bytes(all, length));
    mem_free(&variables);
    mem_free(&window);
    mem_free(&predict);
    mem_free(&all);
}

static void tokenizer_text(const Facts *f, char text[FACT_TEXT])
{
    char *words = tokenizer_describe(NULL, f->tokenizer);
    if (*f->tokenizer) snprintf(text, FACT_TEXT, "%s", words);
    mem_free(&words);
}

static bool tokenizer_allowed(const Facts *then, const Facts *now)
{
    return tokenizer_match(now->tokenizer, then->tokenizer) != TOKENIZERS_DIFFER;
}

/* Writes the name of the first column that differs. This column cannot be found if one side has
 * only the hash of the names. Then writes all names of this run or, for the checkpoint, that it has
 * others. */
static void names_text(const Facts *f, char text[FACT_TEXT])
{
    const char *a = f->columns.lines, *b = f->other->columns.lines;
    int at = 0;
    if (f->kind == DATA_FIELDS || !f->columns.names || f->columns.names == f->other->columns.names)
        return;
    for (size_t n; *a && *b; ++at, a += n + 1, b += n + 1) {
        n = strcspn(a, "\n");
        if (n != strcspn(b, "\n") || memcmp(a, b, n) != 0 || !a[n] || !b[n]) break;
    }
    const bool found = *a && *b && !!strncmp(a, b, strcspn(a, "\n") + 1);
    char *plain = mem_text(found ? a : f->columns.lines), *c;
    if (found) plain[strcspn(plain, "\n")] = 0;
    while ((c = strchr(plain, '\n'))) *c = c[1] ? ',' : 0;
    char *name = text_escape(plain, false);
    if (found)
        snprintf(text, FACT_TEXT, "'%.160s' as number %d", name, at);
    else if (f->path)
        snprintf(text, FACT_TEXT, "the names '%.160s'", name);
    else
        snprintf(text, FACT_TEXT, "others, or others in this order,");
    mem_free(&name);
    mem_free(&plain);
}

static bool fields_differ(const Facts *f, FieldDifference *difference)
{
    const Facts *now = f->path ? f : f->other, *then = f->path ? f->other : f;
    return f->kind == DATA_FIELDS &&
           data_fields_differ(&now->columns, &then->columns, false, difference);
}

/* Writes the first fact about the numbers of fields that differs. */
static void fields_text(const Facts *f, char text[FACT_TEXT])
{
    FieldDifference d;
    if (fields_differ(f, &d)) data_fields_difference_text(&d, f->path ? 0 : 1, text, FACT_TEXT);
}

static const char *fields_advice(const Facts *f)
{
    FieldDifference d;
    return fields_differ(f, &d) ? d.advice : "";
}

static void scaling_text(const Facts *f, char text[FACT_TEXT])
{
    const uint64_t scaling = f->columns.scaling;
    if (scaling && scaling != f->other->columns.scaling)
        snprintf(text, FACT_TEXT, "%s", f->path ? "its import" : "another import");
}

static const Meaning meanings[] = {
    {.subject = "its samples are",
     .advice = "name data with samples of the shape that it was trained on",
     .text = shape_words,
     .allowed = shape_allowed},
    {.subject = "its channels are those of",
     .advice = "give the keys of data the values of its training",
     .text = channels_text},
    {.subject = "its fields have", .find_advice = fields_advice, .text = fields_text},
    {.subject = "its labels count from",
     .advice = "set data.label_base to the value of its training",
     .text = base_text},
    {.subject = "its pixels are read in the order",
     .advice = "set data.layout to the value of its training",
     .text = layout_text},
    {.subject = "its columns and fields have, in their order,",
     .advice = "give it the columns of the training, in their order",
     .text = names_text},
    {.subject = "its columns were transformed, scaled or standardised by",
     .advice = "import the records by the same schema, in one call with those of the training "
               "(--test-files), or set data.train to the set of the training",
     .text = scaling_text,
     .warn_only = true},
    {.subject = "its tokens are",
     .advice = "name tokens of the tokenizer of its training",
     .text = tokenizer_text,
     .allowed = tokenizer_allowed,
     .refuses_init_from = true},
};

/* Sets the kind and the shape of a checkpoint's samples. For data of kind table only the
 * fingerprint of the data has the shape. */
static void find_shape(Facts *f, const CheckpointMeta *meta, int kind_now)
{
    long long rows = 0, columns = 0;
    int end = 0;
    const char *data = meta->data_train;
    f->height = f->width = 1;
    if (meta->input.channels > 0) {
        /* a checkpoint has the statistics of targets only if fields were normalised */
        f->kind =
            meta->input.target_count > 0 || kind_now == DATA_FIELDS ? DATA_FIELDS : DATA_IMAGE;
        f->channels = meta->input.channels;
        f->height = meta->input.height;
        f->width = meta->input.width;
    } else if (sscanf(data, "%lldx%lld%n", &rows, &columns, &end) == 2 && data[end] == ' ') {
        f->kind = DATA_TABLE;
        f->channels = columns;
    }
}

static Facts facts_now(const Trainer *t)
{
    const DataSet *set = &t->train_set, *test = &t->test_set;
    const DataSet *known = !*set->tokenizer_hash && *test->tokenizer_hash ? test : set;
    return (Facts){.config = t->config,
                   .tokenizer = known->tokenizer_hash,
                   .path = known->path,
                   .kind = (int)set->kind,
                   .channels = data_has_fields(set) ? set->field_set.step_inputs : set->channels,
                   .height = set->height,
                   .width = set->width,
                   .columns = set->columns,
                   .has_labels = set->classes > 0 && !data_has_tokens(set)};
}

/* Compares one fact. Returns ERR_DATA if it differs. With begins = true, or if m->warn_only is set,
 * logs the difference instead. begins: true if the run only begins with the file's parameters
 * (model.init_from), and this fact may then differ. */
static Status compare(const Meaning *m, const Facts *then, const Facts *now, const char *path,
                      bool begins)
{
    char old[FACT_TEXT] = "", new[FACT_TEXT] = "";
    m->text(then, old);
    m->text(now, new);
    if (!*old || !*new || strcmp(old, new) == 0) return OK;
    if (m->allowed && m->allowed(then, now)) return OK;
    Status st = fail(ERR_DATA, "%s: %s %s, but %s for the training of %s: %s", now->path,
                     m->subject, new, old, path, m->advice ? m->advice : m->find_advice(now));
    if (!begins && !m->warn_only) return st;
    log_warn("%s%s", begins ? "model.init_from: " : "", fail_message());
    return OK;
}

/* Logs that tokenizers cannot be compared. Logs nothing if a checkpoint of an earlier version was
 * trained on the same data. */
static void log_unknown_tokenizer(const Trainer *t, const Facts *then, const Facts *now,
                                  const CheckpointMeta *meta, const char *path)
{
    bool same = !*then->tokenizer && data_fingerprint_known(t->train_fingerprint) &&
                !strcmp(t->train_fingerprint, meta->data_train);
    if (same || tokenizer_match(now->tokenizer, then->tokenizer) != TOKENIZERS_UNKNOWN) return;
    char *a = tokenizer_describe(NULL, now->tokenizer);
    char *b = tokenizer_describe(NULL, then->tokenizer);
    char *other = mem_format("the training of %s", path);
    char *line = tokenizer_unknown_message(now->path, a, other, b);
    log_info("%s", line);
    mem_free(&line);
    mem_free(&other);
    mem_free(&a);
    mem_free(&b);
}

/* Logs that the names of columns are known on one side only, for data of kind table. Logs nothing
 * if the checkpoint was trained on the same data. */
static void log_unknown_columns(const Trainer *t, const Facts *then, const Facts *now,
                                const CheckpointMeta *meta, const char *path)
{
    char data[DATA_FINGERPRINT] = "";
    if (then->kind != DATA_TABLE || now->kind != DATA_TABLE) return;
    if (!then->columns.names == !now->columns.names) return;
    if (data_set_fingerprint(&t->train_set, data) == OK && !strcmp(data, meta->data_train)) return;
    log_info("%s: the names of its columns cannot be compared with those of the training of "
             "%s, since only %s has them: columns are taken in their order",
             now->path, path, now->columns.names ? "this set" : "the checkpoint");
}

/* Logs what is known about the numbers of fields on one side only. */
static void log_unknown_fields(const Facts *then, const Facts *now, const char *path)
{
    if (then->kind != DATA_FIELDS || now->kind != DATA_FIELDS) return;
    char *other = mem_format("the training of %s", path);
    data_fields_log_unknown(now->path, &now->columns, other, &then->columns);
    mem_free(&other);
}

/* Logs that only the set or only the checkpoint has the hash of the vocabularies of ids. Logs
 * nothing if the checkpoint was trained on the same data. */
static void log_unknown_ids(const Trainer *t, const CheckpointMeta *meta, const char *path)
{
    const DataSet *set = &t->train_set;
    char data[DATA_FINGERPRINT] = "";
    if (set->fields == 0 || !meta->data_ids.id_limit) return;
    if (!set->vocabulary_hash == !meta->data_ids.vocabulary_hash) return;
    if (data_set_fingerprint(set, data) == OK && !strcmp(data, meta->data_train)) return;
    log_info(
        "%s: cannot check that its ids have the vocabulary of the training of %s, since only "
        "%s has the vocabulary's hash (vocabulary_hash): equal ids are taken for the same word",
        set->path, path, set->vocabulary_hash ? "this set" : "the checkpoint");
}

Config *meaning_config(const CheckpointMeta *meta, const char *path)
{
    Config *config = NULL;
    if (meta->config && data_fingerprint_known(meta->data_train) &&
        config_parse(&config, path, meta->config, 0, NULL) != OK)
        config_free(&config);
    return config;
}

static Status compare_all(const Trainer *t, const CheckpointMeta *meta, const char *path,
                          bool begins, bool whole)
{
    Config *config = meaning_config(meta, path);
    Status st = OK;
    Facts now = facts_now(t), then = {.config = config,
                                      .tokenizer = meta->tokenizer_hash,
                                      .kind = -1,
                                      .columns = meta->columns,
                                      .has_labels = true};
    find_shape(&then, meta, now.kind);
    now.other = &then;
    then.other = &now;
    for (size_t i = 0; st == OK && i < sizeof meanings / sizeof *meanings; ++i)
        st = compare(&meanings[i], &then, &now, path,
                     begins && !(meanings[i].refuses_init_from && whole));
    if (st == OK) log_unknown_columns(t, &then, &now, meta, path);
    if (st == OK) log_unknown_fields(&then, &now, path);
    if (st == OK) log_unknown_ids(t, meta, path);
    if (st == OK) log_unknown_tokenizer(t, &then, &now, meta, path);
    config_free(&config);
    return st;
}

Status meaning_check(const Trainer *t, const CheckpointMeta *meta, const char *path)
{
    return compare_all(t, meta, path, false, false);
}

Status meaning_check_beginning(const Trainer *t, const CheckpointMeta *meta, const char *path,
                               bool whole)
{
    return compare_all(t, meta, path, true, whole);
}
