/* Reads the meaning of a table's columns from YAML:
 *
 *     separator: ","      header: true       comment: "|"      quotes: true      trim: false
 *     missing: ["", "?"]  others: ignore     hash: 1000001
 *     columns:
 *       income: {type: label, one: ">50K", zero: "<=50K"}
 *       age:    {type: number, fill: 0, transform: log, scale: standard}
 *       job:    {type: category, ids: sorted, least: 10}
 *       fnlwgt: ignore
 *
 * Unknown keys and repeated names are errors; messages name line and column. */
#include "csv.h"

#include "config/yaml.h"
#include "../set/name_index.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

enum { SCHEMA_BYTES = 16 << 20 };

/* ---- texts ---- */

static void texts_add(CsvTexts *t, const char *text)
{
    t->text = mem_resize(t->text, (size_t)(t->count + 1) * sizeof *t->text);
    t->length = mem_resize(t->length, (size_t)(t->count + 1) * sizeof *t->length);
    t->text[t->count] = mem_text(text);
    t->length[t->count++] = strlen(text);
}

bool csv_texts_have(const CsvTexts *t, const char *text, size_t length)
{
    for (int i = 0; i < t->count; ++i)
        if (t->length[i] == length && memcmp(t->text[i], text, length) == 0) return true;
    return false;
}

static void texts_fini(CsvTexts *t)
{
    for (int i = 0; i < t->count; ++i) mem_free(&t->text[i]);
    mem_free(&t->text);
    mem_free(&t->length);
    t->count = 0;
}

/* State while columns are read. */
typedef struct ColumnReading {
    CsvSchema *schema;
    NameIndex names;
    /* owned: 1 + the column at a place, 0: none; of each column, its last view or itself */
    int *at_place, *last_view;
    /* the place after the last column that is not a view */
    int next_place;
} ColumnReading;

static CsvColumn *column_add(CsvSchema *s, const char *name, CsvType type)
{
    s->column = mem_resize(s->column, (size_t)(s->count + 1) * sizeof *s->column);
    CsvColumn *c = &s->column[s->count++];
    *c = (CsvColumn){.name = mem_text(name), .type = type, .place = -1, .of = -1, .also = -1};
    c->range = 1;
    c->least = 1;
    return c;
}

/* Completes the schema after the last column: slots, seeds, and the first bytes of missing
 * values. */
static void number_columns(CsvSchema *s)
{
    s->numbers = s->categories = s->real = 0;
    for (int i = 0; i < s->missing.count; ++i) {
        if (s->missing.length[i])
            s->missing_begins[(uint8_t)s->missing.text[i][0]] = true;
        else
            s->missing_empty = true;
    }
    for (int i = 0; i < s->count; ++i) {
        CsvColumn *c = &s->column[i];
        s->real += c->of < 0;
        if (c->type == CSV_NUMBER) c->slot = s->numbers++;
        if (c->type == CSV_CATEGORY) c->slot = s->categories++;
        c->seed = XXH3_64bits(c->name, strlen(c->name));
    }
}

void csv_schema_fini(CsvSchema *s)
{
    for (int i = 0; i < s->count; ++i) {
        mem_free(&s->column[i].name);
        texts_fini(&s->column[i].value[0]);
        texts_fini(&s->column[i].value[1]);
    }
    mem_free(&s->column);
    mem_free(&s->comment);
    mem_free(&s->path);
    mem_free(&s->text);
    texts_fini(&s->missing);
    *s = (CsvSchema){0};
}

/* ---- YAML ---- */

static Status node_fail(const CsvSchema *s, const Node *n, const char *what, const char *word)
{
    return fail(ERR_CONFIG, "%s:%d:%d: %s%s", s->path, n->line, n->column, what, word);
}

static Status read_texts(const CsvSchema *s, const Node *n, CsvTexts *texts)
{
    texts_fini(texts);
    if (n->kind == NODE_SCALAR) {
        texts_add(texts, n->text);
        return OK;
    }
    if (n->kind != NODE_LIST) return node_fail(s, n, "expected a text, or a list of texts", "");
    for (int i = 0; i < n->count; ++i) {
        if (n->item[i]->kind != NODE_SCALAR) return node_fail(s, n->item[i], "expected a text", "");
        texts_add(texts, n->item[i]->text);
    }
    return OK;
}

static Status read_bool(const CsvSchema *s, const Node *n, bool *value)
{
    bool scalar = n->kind == NODE_SCALAR && !n->quoted;
    *value = scalar && strcmp(n->text, "true") == 0;
    if (*value || (scalar && strcmp(n->text, "false") == 0)) return OK;
    return node_fail(s, n, "expected true or false", "");
}

static Status read_real(const CsvSchema *s, const Node *n, double *value)
{
    CsvValue v = {n->text, n->kind == NODE_SCALAR ? strlen(n->text) : 0};
    if (!v.length || !csv_number(&v, value)) return node_fail(s, n, "expected a number", "");
    return isfinite(*value) ? OK : node_fail(s, n, "the number is out of range: ", n->text);
}

#define WHOLE_MOST ((int64_t)1 << 53)
static Status read_whole(const CsvSchema *s, const Node *n, int64_t lo, int64_t hi, int64_t *value)
{
    double real;
    TRY(read_real(s, n, &real));
    if (real < (double)lo || real > (double)hi || real != floor(real))
        return fail(ERR_CONFIG, "%s:%d:%d: expected a whole number from %lld to %lld", s->path,
                    n->line, n->column, (long long)lo, (long long)hi);
    *value = (int64_t)real;
    return OK;
}

/* Returns in *which the index of the word. */
static Status read_word(const CsvSchema *s, const Node *n, const char *const *word, int *which)
{
    for (*which = 0; word[*which]; ++*which)
        if (n->kind == NODE_SCALAR && strcmp(n->text, word[*which]) == 0) return OK;
    char all[128] = "";
    for (int i = 0; word[i]; ++i)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "", word[i]);
    return node_fail(s, n, "expected one of: ", all);
}

/* Returns in *which the index of a key. Unknown and repeated keys are errors. */
static Status read_key(const CsvSchema *s, const Node *map, int i, const char *const *key,
                       int *which)
{
    const Node *n = map->key[i];
    for (int k = 0; k < i; ++k)
        if (strcmp(map->key[k]->text, n->text) == 0)
            return node_fail(s, n, "this key comes twice: ", n->text);
    for (*which = 0; key[*which]; ++*which)
        if (strcmp(n->text, key[*which]) == 0) return OK;
    const char *near = text_nearest(n->text, key, *which);
    if (!near) return node_fail(s, n, "unknown key: ", n->text);
    return fail(ERR_CONFIG, "%s:%d:%d: unknown key: %s; did you mean %s?", s->path, n->line,
                n->column, n->text, near);
}

static Status read_scale(const CsvSchema *s, const Node *n, CsvColumn *c)
{
    static const char *const word[] = {"none", "standard", NULL};
    int which;
    if (n->kind != NODE_LIST) {
        TRY(read_word(s, n, word, &which));
        c->standard = which == 1;
        return OK;
    }
    if (n->count != 2) return node_fail(s, n, "expected [min, range], standard or none", "");
    c->scaled = true;
    TRY(read_real(s, n->item[0], &c->min));
    TRY(read_real(s, n->item[1], &c->range));
    return c->range != 0 ? OK : node_fail(s, n->item[1], "a range of 0", "");
}

static Status read_ids(const CsvSchema *s, const Node *n, CsvColumn *c)
{
    static const char *const word[] = {"first", "sorted", "hex", NULL};
    static const CsvIds ids[] = {CSV_FIRST, CSV_SORTED, CSV_HEX};
    int which;
    TRY(read_word(s, n, word, &which));
    c->ids = ids[which];
    return OK;
}

/* Finds the column that this one is another view of. */
static Status read_of(const ColumnReading *r, const Node *n, CsvColumn *c)
{
    const CsvSchema *s = r->schema;
    int64_t of = -1;
    if (n->kind == NODE_SCALAR) of = name_index_find(&r->names, n->text, strlen(n->text));
    if (of >= 0 && &s->column[of] != c && s->column[of].of < 0) {
        c->of = (int)of;
        return OK;
    }
    return node_fail(s, n, "no column above this one, but for views, is called ",
                     n->kind == NODE_SCALAR ? n->text : "so");
}

static Status read_attribute(const ColumnReading *r, const Node *map, int i, CsvColumn *c)
{
    const CsvSchema *s = r->schema;
    enum { TYPE, AT, OF, ONE, ZERO, FILL, TRANSFORM, SCALE, IDS, HASH, LEAST };
    static const char *const key[] = {"type",      "at",    "of",  "one",  "zero",  "fill",
                                      "transform", "scale", "ids", "hash", "least", NULL};
    static const CsvType of[] = {CSV_IGNORE,   CSV_IGNORE,   CSV_IGNORE,  CSV_LABEL,
                                 CSV_LABEL,    CSV_NUMBER,   CSV_NUMBER,  CSV_NUMBER,
                                 CSV_CATEGORY, CSV_CATEGORY, CSV_CATEGORY};
    static const char *const transform[] = {"none", "log", NULL};
    const Node *n = map->item[i];
    int which, word;
    int64_t whole = 0;
    TRY(read_key(s, map, i, key, &which));
    if (of[which] != CSV_IGNORE && of[which] != c->type)
        return node_fail(s, map->key[i], "columns of this type have no key ", map->key[i]->text);
    switch (which) {
    case AT:
        TRY(read_whole(s, n, 1, CSV_COLUMNS_MOST, &whole));
        c->place = (int)whole - 1;
        return OK;
    case OF:
        return read_of(r, n, c);
    case ONE:
    case ZERO:
        return read_texts(s, n, &c->value[which == ONE]);
    case FILL:
        c->has_fill = true;
        return read_real(s, n, &c->fill);
    case TRANSFORM:
        TRY(read_word(s, n, transform, &word));
        c->log = word == 1;
        return OK;
    case SCALE:
        return read_scale(s, n, c);
    case IDS:
        return read_ids(s, n, c);
    case HASH:
        c->ids = CSV_HASH;
        TRY(read_whole(s, n, 2, WHOLE_MOST, &whole));
        c->rows = (uint64_t)whole;
        return OK;
    case LEAST:
        return read_whole(s, n, 1, WHOLE_MOST, &c->least);
    default:
        return OK;
    }
}

/* Reads the type of a column: "ignore", or the key `type` of a mapping. */
static Status read_type(const CsvSchema *s, const Node *n, CsvType *type)
{
    static const char *const word[] = {"ignore", "label", "number", "category", NULL};
    int which = 0;
    const Node *at = n;
    for (int i = 0; n->kind == NODE_MAP && i < n->count; ++i)
        if (strcmp(n->key[i]->text, "type") == 0) at = n->item[i];
    if (at->kind != NODE_SCALAR)
        return node_fail(s, n, "expected {type: label|number|category|ignore, ...}", "");
    TRY(read_word(s, at, word, &which));
    *type = (CsvType)which;
    return OK;
}

static bool name_good(const char *name)
{
    for (const char *c = name; *c; ++c)
        if (*c == '/' || (unsigned char)*c < ' ' || *c == 127) return false;
    return *name && strcmp(name, ".") != 0 && strlen(name) < 200;
}

static const Node *key_of(const Node *map, const char *key)
{
    for (int i = 0; map->kind == NODE_MAP && i < map->count; ++i)
        if (strcmp(map->key[i]->text, key) == 0) return map->key[i];
    return NULL;
}

/* Checks that a category has only one rule for ids, and `least` only with a vocabulary. */
static Status settle_ids(const CsvSchema *s, const Node *n, CsvColumn *c)
{
    if (c->type != CSV_CATEGORY) return OK;
    const Node *ids = key_of(n, "ids"), *hash = key_of(n, "hash"), *least = key_of(n, "least");
    if (s->hash_rows && (ids || hash))
        return node_fail(s, n, "ids of all fields are by `hash` above; remove it, or ids here", "");
    if (ids && hash)
        return node_fail(s, n, "`ids` and `hash` each say what ids are; remove one of them", "");
    if (least && (s->hash_rows || !csv_has_words(c)))
        return node_fail(s, least,
                         "`least` is for vocabularies, and with `hash` or `ids: hex` there is "
                         "none; remove one of them",
                         "");
    if (s->hash_rows) c->ids = CSV_HASH_ALL;
    return OK;
}

static Status view_add(ColumnReading *r, const Node *n, CsvColumn *c)
{
    const CsvSchema *s = r->schema;
    if (c->type != CSV_NUMBER && c->type != CSV_CATEGORY)
        return node_fail(s, n, "only numbers and categories can be `of` another column", "");
    if (c->place >= 0) return node_fail(s, n, "it has the place of the column that it is `of`", "");
    s->column[r->last_view[c->of]].also = (int)(c - s->column);
    r->last_view[c->of] = (int)(c - s->column);
    return settle_ids(s, n, c);
}

static Status read_column(ColumnReading *r, const Node *map, int i)
{
    CsvSchema *s = r->schema;
    CsvType type = CSV_IGNORE;
    const Node *n = map->item[i];
    const char *name = map->key[i]->text;
    if (!name_good(name))
        return node_fail(s, map->key[i], "no name of a column (nothing, / or longer): ", name);
    if (!name_index_add(&r->names, name, strlen(name), s->count))
        return node_fail(s, map->key[i], "this column comes twice: ", name);
    TRY(read_type(s, n, &type));
    CsvColumn *c = column_add(s, name, type);
    for (int a = 0; n->kind == NODE_MAP && a < n->count; ++a) TRY(read_attribute(r, n, a, c));
    r->last_view[i] = i;
    if (c->of >= 0) return view_add(r, n, c);
    if (c->place >= 0 && s->header)
        return node_fail(s, n, "`at` is for files without a header; this one has its name in it",
                         "");
    if (c->place >= 0)
        s->placed = true;
    else if (!s->header)
        c->place = r->next_place;
    r->next_place = c->place + 1;
    if (!s->header && r->at_place[c->place])
        return node_fail(
            s, n, "another column has this place: ", s->column[r->at_place[c->place] - 1].name);
    if (!s->header) r->at_place[c->place] = i + 1;
    if (c->type == CSV_LABEL && c->value[1].count == 0) texts_add(&c->value[1], "1");
    if (c->type == CSV_LABEL && c->value[0].count == 0) texts_add(&c->value[0], "0");
    for (int k = 0; k < c->value[0].count; ++k)
        if (csv_texts_have(&c->value[1], c->value[0].text[k], c->value[0].length[k]))
            return node_fail(s, n, "one and zero are the same text: ", c->value[0].text[k]);
    return settle_ids(s, n, c);
}

static Status read_columns(CsvSchema *s, const Node *n)
{
    if (n->kind != NODE_MAP || n->count == 0)
        return node_fail(s, n, "expected columns, each as NAME: {type: ...}", "");
    if (n->count > CSV_COLUMNS_MOST) return node_fail(s, n, "too many columns", "");
    int labels = 0;
    /* places follow the largest that `at` can say */
    ColumnReading r = {.schema = s,
                       .at_place = mem_new(2 * CSV_COLUMNS_MOST * sizeof *r.at_place),
                       .last_view = mem_new((size_t)n->count * sizeof *r.last_view)};
    Status st = OK;
    for (int i = 0; st == OK && i < n->count; ++i) {
        st = read_column(&r, n, i);
        labels += st == OK && s->column[i].type == CSV_LABEL;
    }
    name_index_fini(&r.names);
    mem_free(&r.at_place);
    mem_free(&r.last_view);
    TRY(st);
    number_columns(s);
    return labels == 1 ? OK : node_fail(s, n, "one column, and not more, must be the label", "");
}

static Status read_separator(CsvSchema *s, const Node *n)
{
    const char *text = n->kind == NODE_SCALAR ? n->text : "";
    if (strcmp(text, "tab") == 0) text = "\t";
    if (strlen(text) != 1 || *text == '\n' || *text == '\r' || *text == '"')
        return node_fail(s, n, "expected one byte, as \",\" or tab", "");
    s->separator = *text;
    return OK;
}

static Status read_comment(CsvSchema *s, const Node *n)
{
    if (n->kind != NODE_SCALAR || !n->text[0])
        return node_fail(s, n, "expected the text that lines of comment begin with", "");
    s->comment = mem_text(n->text);
    return OK;
}

static Status read_top(CsvSchema *s, const Node *map, int i, const Node **columns)
{
    enum { SEPARATOR, HEADER, COMMENT, QUOTES, TRIM, MISSING, OTHERS, HASH, COLUMNS };
    static const char *const key[] = {"separator", "header", "comment", "quotes",  "trim",
                                      "missing",   "others", "hash",    "columns", NULL};
    static const char *const ignore[] = {"ignore", NULL};
    const Node *n = map->item[i];
    int which, word;
    int64_t whole;
    TRY(read_key(s, map, i, key, &which));
    switch (which) {
    case SEPARATOR:
        return read_separator(s, n);
    case HEADER:
        return read_bool(s, n, &s->header);
    case COMMENT:
        return read_comment(s, n);
    case QUOTES:
        return read_bool(s, n, &s->quotes);
    case TRIM:
        return read_bool(s, n, &s->trim);
    case MISSING:
        return read_texts(s, n, &s->missing);
    case OTHERS:
        s->others_ignored = true;
        return read_word(s, n, ignore, &word);
    case HASH:
        TRY(read_whole(s, n, 2, WHOLE_MOST, &whole));
        s->hash_rows = (uint64_t)whole;
        return OK;
    default:
        *columns = n;
        return OK;
    }
}

static Status read_root(CsvSchema *s, const Node *root)
{
    const Node *columns = NULL;
    if (root->kind != NODE_MAP) return node_fail(s, root, "expected keys; columns is needed", "");
    for (int i = 0; i < root->count; ++i) TRY(read_top(s, root, i, &columns));
    if (!columns) return node_fail(s, root, "key columns is missing", "");
    return read_columns(s, columns);
}

Status csv_schema_take(CsvSchema *s, const char *path, char *text, size_t bytes)
{
    Node *root = NULL;
    *s = (CsvSchema){
        .path = mem_text(path), .text = text, .separator = ',', .header = true, .quotes = true};
    texts_add(&s->missing, "");
    TRY(yaml_parse(&root, path, text, bytes));
    Status st = read_root(s, root);
    node_free(&root);
    return st;
}

Status csv_schema_read(CsvSchema *s, const char *path)
{
    char *text;
    size_t bytes;
    *s = (CsvSchema){0};
    TRY(file_text(path, SCHEMA_BYTES, &text, &bytes));
    return csv_schema_take(s, path, text, bytes);
}

void csv_schema_pass_label(CsvSchema *s)
{
    for (int i = 0; i < s->count; ++i) {
        CsvColumn *c = &s->column[i];
        if (c->type != CSV_LABEL) continue;
        c->type = CSV_IGNORE;
        c->optional = c->also < 0;
    }
}

bool csv_schema_looks(const CsvSchema *s)
{
    for (int i = 0; i < s->count; ++i)
        if (csv_has_words(&s->column[i]) || s->column[i].standard) return true;
    return false;
}

int csv_schema_put(const CsvSchema *s, int64_t file)
{
    int64_t offset;
    hsize_t one = 1;
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, strlen(s->text) + 1);
    H5Tset_cset(type, H5T_CSET_UTF8);
    herr_t rc = h5_put_array(file, "/schema", type, 1, &one, &offset);
    if (rc >= 0) rc = h5_fill_array(file, "/schema", type, s->text);
    H5Tclose(type);
    return rc;
}
