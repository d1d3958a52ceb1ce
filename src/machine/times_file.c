/* The file of a machine's times: a mapping in YAML with one line for each operation. Every key but
 * `message` and `sums` is required; unknown keys are errors. */
#include "config/yaml.h"
#include "machine/times.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { VERSION = 1, RANKS_MAX = 1 << 20 };
static const size_t FILE_BYTES = 64 << 20;
static const double TIME_MAX_S = 1e6;

/* ---- reading ---- */

/* A machine that is read from a file. */
typedef struct Reader {
    Machine *machine;
    const char *path;
} Reader;

static Status fail_at(const Reader *r, const Node *at, const char *what)
{
    return fail(ERR_CONFIG, "%s:%d:%d: %s", r->path, at->line, at->column, what);
}

static Status read_real(const Reader *r, const Node *n, double *value)
{
    char *end = NULL;
    if (n->kind == NODE_SCALAR && !n->quoted) *value = strtod(n->text, &end);
    if (!end || end == n->text || *end || !(*value >= 0 && *value <= TIME_MAX_S))
        return fail_at(r, n, "expected a number of seconds from 0 to 1e6");
    return OK;
}

static Status read_count(const Reader *r, const Node *n, int *value)
{
    double real;
    TRY(read_real(r, n, &real));
    if (real != floor(real) || real < 1 || real > RANKS_MAX)
        return fail_at(r, n, "expected a number from 1 to 1048576");
    *value = (int)real;
    return OK;
}

static Status read_text(const Reader *r, const Node *n, char **text)
{
    if (n->kind != NODE_SCALAR) return fail_at(r, n, "expected a text");
    mem_free(text);
    *text = mem_text(n->text);
    return OK;
}

static Status read_range(const Reader *r, const Node *n, TimeRange *range)
{
    double *value[] = {&range->low, &range->median, &range->high};
    if (n->kind != NODE_LIST || n->count != 3)
        return fail_at(r, n, "expected a list of three times: low, median, high");
    for (int i = 0; i < 3; ++i) TRY(read_real(r, n->item[i], value[i]));
    if (range->low > range->median || range->median > range->high)
        return fail_at(r, n, "the three times must ascend");
    return OK;
}

/* Returns the index of a mapping's key among `count` words. */
static Status read_key(const Reader *r, const Node *key, const char *const *words, int count,
                       int *index)
{
    for (*index = 0; *index < count; ++*index)
        if (strcmp(key->text, words[*index]) == 0) return OK;
    return fail_at(r, key, "unknown key");
}

static Status read_link(const Reader *r, const Node *n, int *ranks, Link *link)
{
    static const char *const words[] = {"latency_s", "byte_s", "ranks"};
    int index, count = ranks ? 3 : 2;
    if (n->kind != NODE_MAP || n->count != count)
        return fail_at(r, n,
                       ranks ? "expected {ranks: N, latency_s: S, byte_s: S}"
                             : "expected {latency_s: S, byte_s: S}");
    for (int i = 0; i < n->count; ++i) {
        TRY(read_key(r, n->key[i], words, count, &index));
        if (index == 2)
            TRY(read_count(r, n->item[i], ranks));
        else
            TRY(read_real(r, n->item[i], index == 0 ? &link->latency_s : &link->byte_s));
    }
    return OK;
}

static Status read_sums(const Reader *r, const Node *n)
{
    Machine *m = r->machine;
    if (n->kind != NODE_LIST) return fail_at(r, n, "expected a list");
    m->sum = mem_resize(m->sum, ((size_t)n->count + 1) * sizeof *m->sum);
    m->sum_count = n->count;
    for (int i = 0; i < n->count; ++i)
        TRY(read_link(r, n->item[i], &m->sum[i].ranks, &m->sum[i].link));
    return OK;
}

static Status read_operation(const Reader *r, const Node *n)
{
    OperationTime time = {0};
    int part;
    if (n->kind != NODE_MAP) return fail_at(r, n, "expected {key: TEXT, forward: [...], ...}");
    for (int i = 0; i < n->count; ++i) {
        if (strcmp(n->key[i]->text, "key") == 0) {
            if (n->item[i]->kind != NODE_SCALAR) return fail_at(r, n->item[i], "expected a text");
            time.key = n->item[i]->text;
            continue;
        }
        TRY(read_key(r, n->key[i], operation_part_names, OPERATION_PART_COUNT, &part));
        TRY(read_range(r, n->item[i], &time.part[part]));
        time.has[part] = true;
    }
    if (!time.key) return fail_at(r, n, "`key` is missing");
    if (machine_find(r->machine, time.key)) return fail_at(r, n, "this operation is there twice");
    machine_add(r->machine, &time);
    return OK;
}

static Status read_operations(const Reader *r, const Node *n)
{
    if (n->kind != NODE_LIST) return fail_at(r, n, "expected a list");
    for (int i = 0; i < n->count; ++i) TRY(read_operation(r, n->item[i]));
    return OK;
}

#define FILE_KEYS(W)                                                                               \
    W(KEY_VERSION, "weft_machine")                                                                 \
    W(KEY_HOST, "host")                                                                            \
    W(KEY_CPU, "cpu")                                                                              \
    W(KEY_MEASURED, "measured")                                                                    \
    W(KEY_SETUP, "setup")                                                                          \
    W(KEY_RANKS, "ranks")                                                                          \
    W(KEY_THREADS, "threads")                                                                      \
    W(KEY_MOVE, "move_byte_s")                                                                     \
    W(KEY_ACTION, "action_s")                                                                      \
    W(KEY_UPDATE, "update_s")                                                                      \
    W(KEY_REST, "rest_s")                                                                          \
    W(KEY_OPERATIONS, "operations")                                                                \
    W(KEY_MESSAGE, "message")                                                                      \
    W(KEY_SUMS, "sums")
enum { FILE_KEYS(LIST_CONSTANT) KEY_COUNT, KEYS_REQUIRED = KEY_MESSAGE };
static const char *const key_names[KEY_COUNT] = {FILE_KEYS(LIST_NAME)};

static Status read_version(const Reader *r, const Node *n)
{
    int version;
    TRY(read_count(r, n, &version));
    return version == VERSION ? OK : fail_at(r, n, "this weft reads version 1");
}

static Status read_value(const Reader *r, int key, const Node *n)
{
    Machine *m = r->machine;
    switch (key) {
    case KEY_VERSION:
        return read_version(r, n);
    case KEY_HOST:
        return read_text(r, n, &m->host);
    case KEY_CPU:
        return read_text(r, n, &m->cpu);
    case KEY_MEASURED:
        return read_text(r, n, &m->measured);
    case KEY_SETUP:
        return read_text(r, n, &m->setup);
    case KEY_RANKS:
        return read_count(r, n, &m->ranks);
    case KEY_THREADS:
        return read_count(r, n, &m->threads);
    case KEY_MOVE:
        return read_real(r, n, &m->move_byte_s);
    case KEY_ACTION:
        return read_real(r, n, &m->action_s);
    case KEY_UPDATE:
        return read_range(r, n, &m->update_s);
    case KEY_REST:
        return read_range(r, n, &m->rest_s);
    case KEY_OPERATIONS:
        return read_operations(r, n);
    case KEY_MESSAGE:
        m->has_message = true;
        return read_link(r, n, NULL, &m->message);
    default:
        return read_sums(r, n);
    }
}

static Status read_root(const Reader *r, const Node *root)
{
    bool there[KEY_COUNT] = {false};
    int key;
    if (root->kind != NODE_MAP) return fail_at(r, root, "expected a mapping of keys");
    for (int i = 0; i < root->count; ++i) {
        TRY(read_key(r, root->key[i], key_names, KEY_COUNT, &key));
        if (there[key]) return fail_at(r, root->key[i], "this key is there twice");
        there[key] = true;
        TRY(read_value(r, key, root->item[i]));
    }
    for (int i = 0; i < KEYS_REQUIRED; ++i)
        if (!there[i]) return fail(ERR_CONFIG, "%s: key `%s` is missing", r->path, key_names[i]);
    return OK;
}

Status machine_read(Machine *machine, const char *path)
{
    char *text;
    size_t bytes;
    Node *root = NULL;
    *machine = (Machine){0};
    TRY(file_text(path, FILE_BYTES, &text, &bytes));
    Status st = yaml_parse(&root, path, text, bytes);
    mem_free(&text);
    if (st == OK) st = read_root(&(Reader){machine, path}, root);
    node_free(&root);
    if (st != OK) machine_fini(machine);
    return st;
}

/* ---- writing ---- */

static void put_text(FILE *out, int key, const char *text)
{
    fprintf(out, "%s: ", key_names[key]);
    text_quote(out, text);
    fputc('\n', out);
}

static void put_range(FILE *out, const char *name, TimeRange range)
{
    fprintf(out, "%s: [%.4g, %.4g, %.4g]", name, range.low, range.median, range.high);
}

static void put_operation(FILE *out, const OperationTime *time)
{
    fputs("  - {key: ", out);
    text_quote(out, time->key);
    for (int p = 0; p < OPERATION_PART_COUNT; ++p) {
        if (!time->has[p]) continue;
        fputs(", ", out);
        put_range(out, operation_part_names[p], time->part[p]);
    }
    fputs("}\n", out);
}

static void put_machine(FILE *out, const Machine *m)
{
    fprintf(out,
            "# Times in seconds, measured by weft bench machine; ranges: a tenth of the times is "
            "below the first number,\n# half below the second, nine tenths below the third.\n");
    fprintf(out, "%s: %d\n", key_names[KEY_VERSION], VERSION);
    put_text(out, KEY_HOST, m->host);
    put_text(out, KEY_CPU, m->cpu);
    put_text(out, KEY_MEASURED, m->measured);
    put_text(out, KEY_SETUP, m->setup);
    fprintf(out, "%s: %d\n%s: %d\n", key_names[KEY_RANKS], m->ranks, key_names[KEY_THREADS],
            m->threads);
    fprintf(out, "%s: %.4g\n%s: %.4g\n", key_names[KEY_MOVE], m->move_byte_s, key_names[KEY_ACTION],
            m->action_s);
    put_range(out, key_names[KEY_UPDATE], m->update_s);
    fputc('\n', out);
    put_range(out, key_names[KEY_REST], m->rest_s);
    fputc('\n', out);
    if (m->has_message)
        fprintf(out, "%s: {latency_s: %.4g, byte_s: %.4g}\n", key_names[KEY_MESSAGE],
                m->message.latency_s, m->message.byte_s);
    if (m->sum_count > 0) fprintf(out, "%s:\n", key_names[KEY_SUMS]);
    for (int i = 0; i < m->sum_count; ++i)
        fprintf(out, "  - {ranks: %d, latency_s: %.4g, byte_s: %.4g}\n", m->sum[i].ranks,
                m->sum[i].link.latency_s, m->sum[i].link.byte_s);
    fprintf(out, "%s:%s\n", key_names[KEY_OPERATIONS], m->operation_count ? "" : " []");
    for (int i = 0; i < m->operation_count; ++i) put_operation(out, &m->operation[i]);
}

Status machine_write(const Machine *machine, const char *path)
{
    FILE *out = file_create_stream(path);
    if (!out) return fail(ERR_IO, "%s: cannot be written: %s", path, file_error(errno));
    put_machine(out, machine);
    bool good = !ferror(out);
    if (fclose(out) != 0 || !good)
        return fail(ERR_IO, "%s: writing failed: %s", path, strerror(errno));
    return OK;
}
