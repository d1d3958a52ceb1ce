/* Reads a table's schema from YAML:
 *
 *     separator: ","      header: true       comment: "|"      quotes: true      trim: false
 *     missing: ["", "?"]  others: ignore     hash: 1000001
 *     columns:
 *       income: {type: label, one: ">50K", zero: "<=50K"}
 *       age:    {type: number, fill: 0, transform: log, scale: standard}
 *       job:    {type: category, ids: sorted, least: 10}
 *       fnlwgt: ignore
 *
 * Unknown keys and repeated names are errors; messages have line and column. */
#include "csv.h"

#include "config/yaml.h"
#include "../set/name_index.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

enum { SCHEMA_BYTES = 16 << 20 };

/* state while columns are read */
typedef struct ColumnParser {
    CsvSchema *schema;
    /* hash table of the columns read so far, by name */
    NameIndex names;
    /* owned: for each position 1 + the index of the column that has it; 0: no column has it */
    int *column_at;
    /* owned: for each column the index of its last view so far (a column with key `of`), or its
     * own index */
    int *last_view;
    /* position of the next column, if that is no view and has no key `at` */
    int next_position;
} ColumnParser;

static CsvColumn *column_add(CsvSchema *s, const char *name, CsvType type)
{
    s->column = mem_resize(s->column, (size_t)(s->count + 1) * sizeof *s->column);
    CsvColumn *c = &s->column[s->count++];
    *c = (CsvColumn){
        .name = mem_text(name), .type = type, .position = -1, .view_of = -1, .next_view = -1};
    c->range = 1;
    c->min_count = 1;
    return c;
}

/* Computes the members that follow from all columns and from the texts that mean "missing": counts
 * of columns, slots, seeds, missing_begins and missing_empty. */
static void complete_schema(CsvSchema *s)
{
    s->numbers = s->categories = s->file_columns = 0;
    for (int i = 0; i < s->missing.count; ++i) {
        if (s->missing.length[i])
            s->missing_begins[(uint8_t)s->missing.text[i][0]] = true;
        else
            s->missing_empty = true;
    }
    for (int i = 0; i < s->count; ++i) {
        CsvColumn *c = &s->column[i];
        s->file_columns += c->view_of < 0;
        if (c->type == CSV_NUMBER) c->slot = s->numbers++;
        if (c->type == CSV_CATEGORY) c->slot = s->categories++;
        c->seed = XXH3_64bits(c->name, strlen(c->name));
    }
}

void csv_schema_fini(CsvSchema *s)
{
    for (int i = 0; i < s->count; ++i) {
        mem_free(&s->column[i].name);
        csv_texts_fini(&s->column[i].label_text[0]);
        csv_texts_fini(&s->column[i].label_text[1]);
    }
    mem_free(&s->column);
    mem_free(&s->comment);
    mem_free(&s->path);
    mem_free(&s->text);
    csv_texts_fini(&s->missing);
    *s = (CsvSchema){0};
}

/* ---- nodes of the YAML tree ---- */

/* Fails with ERR_CONFIG and the position of a node. The message is `what` and then `word`. */
static Status node_fail(const CsvSchema *s, const YamlNode *n, const char *what, const char *word)
{
    return fail(ERR_CONFIG, "%s:%d:%d: %s%s", s->path, n->line, n->column, what, word);
}

static Status read_texts(const CsvSchema *s, const YamlNode *n, CsvTexts *texts)
{
    csv_texts_fini(texts);
    if (n->kind == YAML_SCALAR) {
        csv_texts_add(texts, n->text);
        return OK;
    }
    if (n->kind != YAML_LIST) return node_fail(s, n, "expected a text, or a list of texts", "");
    for (int i = 0; i < n->count; ++i) {
        if (n->item[i]->kind != YAML_SCALAR) return node_fail(s, n->item[i], "expected a text", "");
        csv_texts_add(texts, n->item[i]->text);
    }
    return OK;
}

static Status read_bool(const CsvSchema *s, const YamlNode *n, bool *value)
{
    bool scalar = n->kind == YAML_SCALAR && !n->quoted;
    *value = scalar && strcmp(n->text, "true") == 0;
    if (*value || (scalar && strcmp(n->text, "false") == 0)) return OK;
    return node_fail(s, n, "expected true or false", "");
}

static Status read_real(const CsvSchema *s, const YamlNode *n, double *value)
{
    CsvValue v = {n->text, n->kind == YAML_SCALAR ? strlen(n->text) : 0};
    if (!v.length || !csv_parse_number(&v, value)) return node_fail(s, n, "expected a number", "");
    return isfinite(*value) ? OK : node_fail(s, n, "the number is out of range: ", n->text);
}

/* largest n for which a double represents every whole number from 0 to n */
#define WHOLE_MAX ((int64_t)1 << 53)
static Status read_whole(const CsvSchema *s, const YamlNode *n, int64_t lo, int64_t hi,
                         int64_t *value)
{
    double real;
    TRY(read_real(s, n, &real));
    if (real < (double)lo || real > (double)hi || real != floor(real))
        return fail(ERR_CONFIG, "%s:%d:%d: expected a whole number from %lld to %lld", s->path,
                    n->line, n->column, (long long)lo, (long long)hi);
    *value = (int64_t)real;
    return OK;
}

/* Sets *which to the index of the node's text in `word`, a list that ends with NULL. */
static Status read_word(const CsvSchema *s, const YamlNode *n, const char *const *word, int *which)
{
    for (*which = 0; word[*which]; ++*which)
        if (n->kind == YAML_SCALAR && strcmp(n->text, word[*which]) == 0) return OK;
    char all[128] = "";
    for (int i = 0; word[i]; ++i)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "", word[i]);
    return node_fail(s, n, "expected one of: ", all);
}

/* Sets *which to the index of key i of `map` in `key`, a list that ends with NULL. A key that is
 * not in the list is an error. */
static Status read_key(const CsvSchema *s, const YamlNode *map, int i, const char *const *key,
                       int *which)
{
    const YamlNode *n = map->key[i];
    for (*which = 0; key[*which]; ++*which)
        if (strcmp(n->text, key[*which]) == 0) return OK;
    const char *near = text_nearest(n->text, key, *which);
    if (!near) return node_fail(s, n, "unknown key: ", n->text);
    return fail(ERR_CONFIG, "%s:%d:%d: unknown key: %s; did you mean %s?", s->path, n->line,
                n->column, n->text, near);
}

static Status read_scale(const CsvSchema *s, const YamlNode *n, CsvColumn *c)
{
    static const char *const word[] = {"none", "standard", NULL};
    int which;
    if (n->kind != YAML_LIST) {
        TRY(read_word(s, n, word, &which));
        c->standardised = which == 1;
        return OK;
    }
    if (n->count != 2) return node_fail(s, n, "expected [min, range], standard or none", "");
    c->scaled = true;
    TRY(read_real(s, n->item[0], &c->min));
    TRY(read_real(s, n->item[1], &c->range));
    return c->range != 0 ? OK : node_fail(s, n->item[1], "the range must not be 0", "");
}

static Status read_ids(const CsvSchema *s, const YamlNode *n, CsvColumn *c)
{
    static const char *const word[] = {"first", "sorted", "hex", NULL};
    static const CsvIdRule ids[] = {CSV_IDS_FIRST, CSV_IDS_SORTED, CSV_IDS_HEX};
    int which;
    TRY(read_word(s, n, word, &which));
    c->id_rule = ids[which];
    return OK;
}

/* Reads the value of key `of`: the name of the column whose values column c reads, too. */
static Status read_view_of(const ColumnParser *r, const YamlNode *n, CsvColumn *c)
{
    const CsvSchema *s = r->schema;
    int64_t target = -1;
    if (n->kind == YAML_SCALAR) target = name_index_find(&r->names, n->text, strlen(n->text));
    if (target >= 0 && &s->column[target] != c && s->column[target].view_of < 0) {
        c->view_of = (int)target;
        return OK;
    }
    if (n->kind != YAML_SCALAR) return node_fail(s, n, "expected the name of a column", "");
    return node_fail(s, n, "`of` must name an earlier column without `of`, not ", n->text);
}

static Status read_attribute(const ColumnParser *r, const YamlNode *map, int i, CsvColumn *c)
{
    const CsvSchema *s = r->schema;
    enum { TYPE, AT, OF, ONE, ZERO, FILL, TRANSFORM, SCALE, IDS, HASH, LEAST };
    static const char *const key[] = {"type",      "at",    "of",  "one",  "zero",  "fill",
                                      "transform", "scale", "ids", "hash", "least", NULL};
    /* the type of columns that may have each key; CSV_IGNORE: all types */
    static const CsvType type_of_key[] = {CSV_IGNORE,   CSV_IGNORE,   CSV_IGNORE,  CSV_LABEL,
                                          CSV_LABEL,    CSV_NUMBER,   CSV_NUMBER,  CSV_NUMBER,
                                          CSV_CATEGORY, CSV_CATEGORY, CSV_CATEGORY};
    static const char *const transform[] = {"none", "log", NULL};
    const YamlNode *n = map->item[i];
    int which, word;
    int64_t whole = 0;
    TRY(read_key(s, map, i, key, &which));
    if (type_of_key[which] != CSV_IGNORE && type_of_key[which] != c->type)
        return node_fail(s, map->key[i], "columns of this type have no key ", map->key[i]->text);
    switch (which) {
    case AT:
        TRY(read_whole(s, n, 1, CSV_COLUMNS_MAX, &whole));
        c->position = (int)whole - 1;
        return OK;
    case OF:
        return read_view_of(r, n, c);
    case ONE:
    case ZERO:
        return read_texts(s, n, &c->label_text[which == ONE]);
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
        c->id_rule = CSV_IDS_HASH;
        TRY(read_whole(s, n, 2, WHOLE_MAX, &whole));
        c->id_count = (uint64_t)whole;
        return OK;
    case LEAST:
        return read_whole(s, n, 1, WHOLE_MAX, &c->min_count);
    default:
        return OK;
    }
}

/* ---- columns ---- */

/* Reads the type of a column: a word, or the key `type` of a mapping. */
static Status read_type(const CsvSchema *s, const YamlNode *n, CsvType *type)
{
    static const char *const word[] = {"ignore", "label", "number", "category", NULL};
    int which = 0;
    const YamlNode *at = n;
    for (int i = 0; n->kind == YAML_MAP && i < n->count; ++i)
        if (strcmp(n->key[i]->text, "type") == 0) at = n->item[i];
    if (at->kind != YAML_SCALAR)
        return node_fail(s, n, "expected {type: label|number|category|ignore, ...}", "");
    TRY(read_word(s, at, word, &which));
    *type = (CsvType)which;
    return OK;
}

static bool is_column_name(const char *name)
{
    for (const char *c = name; *c; ++c)
        if (*c == '/' || (unsigned char)*c < ' ' || *c == 127) return false;
    return *name && strcmp(name, ".") != 0 && strlen(name) < 200;
}

/* Returns the node of a key; NULL: the map does not have it. */
static const YamlNode *find_key(const YamlNode *map, const char *key)
{
    for (int i = 0; map->kind == YAML_MAP && i < map->count; ++i)
        if (strcmp(map->key[i]->text, key) == 0) return map->key[i];
    return NULL;
}

/* Checks that a category has at most one rule for ids, and that it has a vocabulary if it has the
 * key `least`. Then applies the table's key `hash`. */
static Status finish_ids(const CsvSchema *s, const YamlNode *n, CsvColumn *c)
{
    if (c->type != CSV_CATEGORY) return OK;
    const YamlNode *ids = find_key(n, "ids"), *hash = find_key(n, "hash");
    const YamlNode *least = find_key(n, "least");
    if (s->shared_ids && (ids || hash))
        return node_fail(s, n,
                         "the table's `hash` sets the ids of all fields; remove it, or `ids` and "
                         "`hash` of this column",
                         "");
    if (ids && hash)
        return node_fail(s, n, "`ids` and `hash` contradict each other; remove one of them", "");
    if (least && (s->shared_ids || !csv_has_vocab(c)))
        return node_fail(s, least,
                         "`least` applies to vocabularies, and with `hash` or `ids: hex` there is "
                         "none; remove one of them",
                         "");
    if (s->shared_ids) c->id_rule = CSV_IDS_HASH_SHARED;
    return OK;
}

/* Checks a view and appends it to the views of its column. */
static Status add_view(ColumnParser *r, const YamlNode *n, CsvColumn *c)
{
    const CsvSchema *s = r->schema;
    if (c->type != CSV_NUMBER && c->type != CSV_CATEGORY)
        return node_fail(s, n, "only numbers and categories can be `of` another column", "");
    if (c->position >= 0) return node_fail(s, n, "a column with `of` cannot have `at`", "");
    s->column[r->last_view[c->view_of]].next_view = (int)(c - s->column);
    r->last_view[c->view_of] = (int)(c - s->column);
    return finish_ids(s, n, c);
}

static Status read_column(ColumnParser *r, const YamlNode *map, int i)
{
    CsvSchema *s = r->schema;
    CsvType type = CSV_IGNORE;
    const YamlNode *n = map->item[i];
    const char *name = map->key[i]->text;
    if (!is_column_name(name))
        return node_fail(
            s, map->key[i],
            "a column's name has 1 to 199 bytes, no '/' or control characters, and is not '.': ",
            name);
    if (!name_index_add(&r->names, name, strlen(name), s->count))
        return node_fail(s, map->key[i], "this column appears twice: ", name);
    TRY(read_type(s, n, &type));
    CsvColumn *c = column_add(s, name, type);
    for (int a = 0; n->kind == YAML_MAP && a < n->count; ++a) TRY(read_attribute(r, n, a, c));
    r->last_view[i] = i;
    if (c->view_of >= 0) return add_view(r, n, c);
    if (c->position >= 0 && s->header)
        return node_fail(s, n, "`at` is for files without a header; with one, names find columns",
                         "");
    if (c->position >= 0)
        s->has_positions = true;
    else if (!s->header)
        c->position = r->next_position;
    r->next_position = c->position + 1;
    if (!s->header && r->column_at[c->position])
        return node_fail(s, n, "another column has this position: ",
                         s->column[r->column_at[c->position] - 1].name);
    if (!s->header) r->column_at[c->position] = i + 1;
    if (c->type == CSV_LABEL && c->label_text[1].count == 0) csv_texts_add(&c->label_text[1], "1");
    if (c->type == CSV_LABEL && c->label_text[0].count == 0) csv_texts_add(&c->label_text[0], "0");
    for (int k = 0; k < c->label_text[0].count; ++k)
        if (csv_texts_contain(&c->label_text[1], c->label_text[0].text[k],
                              c->label_text[0].length[k]))
            return node_fail(s, n, "one and zero are the same text: ", c->label_text[0].text[k]);
    return finish_ids(s, n, c);
}

static Status read_columns(CsvSchema *s, const YamlNode *n)
{
    if (n->kind != YAML_MAP || n->count == 0)
        return node_fail(s, n, "expected columns, each as NAME: {type: ...}", "");
    if (n->count > CSV_COLUMNS_MAX) return node_fail(s, n, "too many columns", "");
    int labels = 0;
    /* twice CSV_COLUMNS_MAX positions: up to CSV_COLUMNS_MAX columns without `at` may follow the
     * largest position that `at` can give */
    ColumnParser r = {.schema = s,
                      .column_at = mem_new(2 * CSV_COLUMNS_MAX * sizeof *r.column_at),
                      .last_view = mem_new((size_t)n->count * sizeof *r.last_view)};
    Status st = OK;
    for (int i = 0; st == OK && i < n->count; ++i) {
        st = read_column(&r, n, i);
        labels += st == OK && s->column[i].type == CSV_LABEL;
    }
    name_index_fini(&r.names);
    mem_free(&r.column_at);
    mem_free(&r.last_view);
    TRY(st);
    complete_schema(s);
    return labels == 1 ? OK : node_fail(s, n, "exactly one column must be the label", "");
}

/* ---- the table ---- */

static Status read_separator(CsvSchema *s, const YamlNode *n)
{
    const char *text = n->kind == YAML_SCALAR ? n->text : "";
    if (strcmp(text, "tab") == 0) text = "\t";
    if (strlen(text) != 1 || *text == '\n' || *text == '\r' || *text == '"')
        return node_fail(s, n, "expected one byte, such as \",\", or tab", "");
    s->separator = *text;
    return OK;
}

static Status read_comment(CsvSchema *s, const YamlNode *n)
{
    if (n->kind != YAML_SCALAR || !n->text[0])
        return node_fail(s, n, "expected the text at the beginning of comment lines", "");
    s->comment = mem_text(n->text);
    return OK;
}

static Status read_top_key(CsvSchema *s, const YamlNode *map, int i, const YamlNode **columns)
{
    enum { SEPARATOR, HEADER, COMMENT, QUOTES, TRIM, MISSING, OTHERS, HASH, COLUMNS };
    static const char *const key[] = {"separator", "header", "comment", "quotes",  "trim",
                                      "missing",   "others", "hash",    "columns", NULL};
    static const char *const ignore[] = {"ignore", NULL};
    const YamlNode *n = map->item[i];
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
        s->ignore_others = true;
        return read_word(s, n, ignore, &word);
    case HASH:
        TRY(read_whole(s, n, 2, WHOLE_MAX, &whole));
        s->shared_ids = (uint64_t)whole;
        return OK;
    default:
        *columns = n;
        return OK;
    }
}

static Status read_root(CsvSchema *s, const YamlNode *root)
{
    const YamlNode *columns = NULL;
    if (root->kind != YAML_MAP)
        return node_fail(s, root, "expected a mapping of keys; `columns` is required", "");
    for (int i = 0; i < root->count; ++i) TRY(read_top_key(s, root, i, &columns));
    if (!columns) return node_fail(s, root, "key `columns` is missing", "");
    return read_columns(s, columns);
}

Status csv_schema_parse(CsvSchema *s, const char *path, char *text, size_t bytes)
{
    YamlNode *root = NULL;
    *s = (CsvSchema){
        .path = mem_text(path), .text = text, .separator = ',', .header = true, .quotes = true};
    csv_texts_add(&s->missing, "");
    TRY(yaml_parse(&root, path, text, bytes));
    Status st = read_root(s, root);
    yaml_node_free(&root);
    return st;
}

Status csv_schema_read(CsvSchema *s, const char *path)
{
    char *text;
    size_t bytes;
    *s = (CsvSchema){0};
    TRY(file_text(path, SCHEMA_BYTES, &text, &bytes));
    return csv_schema_parse(s, path, text, bytes);
}

void csv_schema_ignore_label(CsvSchema *s)
{
    for (int i = 0; i < s->count; ++i) {
        CsvColumn *c = &s->column[i];
        if (c->type != CSV_LABEL) continue;
        c->type = CSV_IGNORE;
        c->optional = c->next_view < 0;
    }
}

bool csv_schema_needs_statistics(const CsvSchema *s)
{
    for (int i = 0; i < s->count; ++i)
        if (csv_has_vocab(&s->column[i]) || s->column[i].standardised) return true;
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
