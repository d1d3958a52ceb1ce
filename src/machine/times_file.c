/* Reads the file of a machine's times: a mapping in YAML with one line for each operation. Unknown
 * keys are errors. A file with `rates` describes a machine and need not have measured times. */
#include "times_file.h"

#include "config/yaml.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS_MAX = 1 << 20 };
static const size_t FILE_BYTES = 64 << 20;
static const double TIME_MAX_S = 1e6, RATE_MAX = 1e18;
/* bytes that an update with two floats of state reads and writes for each parameter: it reads 4
 * floats and writes 3 */
static const double UPDATE_BYTES = 28;

/* ---- reading ---- */

/* A machine that is being read from a file. */
typedef struct Reader {
    Machine *machine;
    const char *path;
} Reader;

static Status fail_at(const Reader *r, const YamlNode *at, const char *what)
{
    return fail(ERR_CONFIG, "%s:%d:%d: %s", r->path, at->line, at->column, what);
}

static bool real_of(const YamlNode *n, double *value)
{
    char *end = NULL;
    if (n->kind == YAML_SCALAR && !n->quoted) *value = strtod(n->text, &end);
    return end && end != n->text && !*end;
}

static Status read_real(const Reader *r, const YamlNode *n, double *value)
{
    if (!real_of(n, value) || !(*value >= 0 && *value <= TIME_MAX_S))
        return fail_at(r, n, "expected a number of seconds from 0 to 1e6");
    return OK;
}

/* Reads a rate or a number of bytes. */
static Status read_rate(const Reader *r, const YamlNode *n, double *value)
{
    if (!real_of(n, value) || !(*value >= 1 && *value <= RATE_MAX))
        return fail_at(r, n, "expected a number from 1 to 1e18");
    return OK;
}

static Status read_count(const Reader *r, const YamlNode *n, int *value)
{
    double real;
    if (!real_of(n, &real) || !(real >= 1 && real <= RANKS_MAX) || real != floor(real))
        return fail_at(r, n, "expected a whole number from 1 to 1048576");
    *value = (int)real;
    return OK;
}

static Status read_text(const Reader *r, const YamlNode *n, char **text)
{
    if (n->kind != YAML_SCALAR) return fail_at(r, n, "expected a text");
    mem_free(text);
    *text = mem_text(n->text);
    return OK;
}

static Status read_range(const Reader *r, const YamlNode *n, TimeRange *range)
{
    double *value[] = {&range->low, &range->median, &range->high};
    if (n->kind != YAML_LIST || n->count != 3)
        return fail_at(r, n, "expected a list of three times: low, median, high");
    for (int i = 0; i < 3; ++i) TRY(read_real(r, n->item[i], value[i]));
    if (range->low > range->median || range->median > range->high)
        return fail_at(r, n, "the three times must ascend");
    return OK;
}

/* Sets *index to the index of a mapping's key among `count` words; fails if it is none of them. */
static Status read_key(const Reader *r, const YamlNode *key, const char *const *words, int count,
                       int *index)
{
    *index = 0;
    for (int i = 0; i < count; ++i) {
        if (strcmp(key->text, words[i]) != 0) continue;
        *index = i;
        return OK;
    }
    return fail_at(r, key, "unknown key");
}

/* Reads {latency_s: S, byte_s: S}; if `ranks` is not NULL, reads {ranks: N, latency_s: S, byte_s:
 * S}. */
static Status read_link(const Reader *r, const YamlNode *n, int *ranks, Link *link)
{
    static const char *const words[] = {"latency_s", "byte_s", "ranks"};
    int index, count = ranks ? 3 : 2;
    if (n->kind != YAML_MAP || n->count != count)
        return fail_at(r, n,
                       ranks ? "expected {ranks: N, latency_s: S, byte_s: S}"
                             : "expected {latency_s: S, byte_s: S}");
    for (int i = 0; i < n->count; ++i) {
        TRY(read_key(r, n->key[i], words, count, &index));
        if (index == 2)
            TRY(read_count(r, n->item[i], ranks));
        else
            TRY(read_real(r, n->item[i], index == 0 ? &link->latency_s : &link->s_per_byte));
    }
    return OK;
}

/* Reads {compute: F}. */
static Status read_overlap(const Reader *r, const YamlNode *n, double *factor)
{
    int index;
    if (n->kind != YAML_MAP || n->count != 1) return fail_at(r, n, "expected {compute: F}");
    TRY(read_key(r, n->key[0], (const char *const[]){"compute"}, 1, &index));
    if (!real_of(n->item[0], factor) || !(*factor >= 1 && *factor <= OVERLAP_MAX))
        return fail_at(r, n->item[0], "expected a factor from 1 to 100");
    return OK;
}

/* Reads a mapping with exactly these `count` keys. The values of the first `rates` keys are rates,
 * the values of the other keys are seconds. expected: the mapping, for messages. */
static Status read_numbers(const Reader *r, const YamlNode *n, const char *expected,
                           const char *const *words, int count, int rates, double *const *value)
{
    int index;
    if (n->kind != YAML_MAP || n->count != count) return fail_at(r, n, expected);
    for (int i = 0; i < count; ++i) {
        TRY(read_key(r, n->key[i], words, count, &index));
        TRY(index < rates ? read_rate(r, n->item[i], value[index])
                          : read_real(r, n->item[i], value[index]));
    }
    return OK;
}

static Status read_rates(const Reader *r, const YamlNode *n)
{
    static const char *const words[] = {"flops_s", "bytes_s", "call_s"};
    Rates *rates = &r->machine->rates;
    double *const value[] = {&rates->flops_per_s, &rates->bytes_per_s, &rates->call_s};
    r->machine->has_rates = true;
    return read_numbers(r, n, "expected {flops_s: F, bytes_s: B, call_s: S}", words, 3, 2, value);
}

static Status read_memory_rate(const Reader *r, const YamlNode *n)
{
    static const char *const words[] = {"bytes_s"};
    double *const value[] = {&r->machine->memory_bytes_per_s};
    return read_numbers(r, n, "expected {bytes_s: B}", words, 1, 1, value);
}

static Status read_file_rates(const Reader *r, const YamlNode *n)
{
    static const char *const words[] = {"read_bytes_s", "save_bytes_s"};
    double *const value[] = {&r->machine->read_bytes_per_s, &r->machine->save_bytes_per_s};
    return read_numbers(r, n, "expected {read_bytes_s: B, save_bytes_s: B}", words, 2, 2, value);
}

static Status read_sums(const Reader *r, const YamlNode *n)
{
    Machine *m = r->machine;
    if (n->kind != YAML_LIST) return fail_at(r, n, "expected a list");
    m->sum_time = mem_resize(m->sum_time, ((size_t)n->count + 1) * sizeof *m->sum_time);
    m->sum_count = n->count;
    for (int i = 0; i < n->count; ++i)
        TRY(read_link(r, n->item[i], &m->sum_time[i].ranks, &m->sum_time[i].link));
    return OK;
}

static Status read_operation(const Reader *r, const YamlNode *n)
{
    OperationTime time = {0};
    int part;
    if (n->kind != YAML_MAP) return fail_at(r, n, "expected {key: TEXT, forward: [...], ...}");
    for (int i = 0; i < n->count; ++i) {
        if (strcmp(n->key[i]->text, "key") == 0) {
            if (n->item[i]->kind != YAML_SCALAR) return fail_at(r, n->item[i], "expected a text");
            time.key = n->item[i]->text;
            continue;
        }
        TRY(read_key(r, n->key[i], operation_part_names, OPERATION_PART_COUNT, &part));
        TRY(read_range(r, n->item[i], &time.part[part]));
        time.has[part] = true;
    }
    if (!time.key) return fail_at(r, n, "`key` is missing");
    if (machine_find(r->machine, time.key)) return fail_at(r, n, "this operation is listed twice");
    machine_add(r->machine, &time);
    return OK;
}

static Status read_operations(const Reader *r, const YamlNode *n)
{
    if (n->kind != YAML_LIST) return fail_at(r, n, "expected a list");
    for (int i = 0; i < n->count; ++i) TRY(read_operation(r, n->item[i]));
    return OK;
}

const char *const machine_keys[KEY_COUNT] = {FILE_KEYS(LIST_NAME)};

static Status read_version(const Reader *r, const YamlNode *n)
{
    int version;
    TRY(read_count(r, n, &version));
    return version == MACHINE_VERSION ? OK : fail_at(r, n, "this weft reads version 1");
}

static Status read_value(const Reader *r, int key, const YamlNode *n)
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
        return read_real(r, n, &m->move_s_per_byte);
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
        return read_link(r, n, NULL, &m->message_link);
    case KEY_SUMS:
        return read_sums(r, n);
    case KEY_NODES:
        return read_count(r, n, &m->nodes);
    case KEY_MEMORY:
        return read_rate(r, n, &m->memory_bytes);
    case KEY_MEMORY_RATE:
        return read_memory_rate(r, n);
    case KEY_FILES:
        return read_file_rates(r, n);
    case KEY_NETWORK:
        m->has_network = true;
        return read_link(r, n, NULL, &m->network_link);
    case KEY_OVERLAP:
        return read_overlap(r, n, &m->overlap_compute);
    default:
        return read_rates(r, n);
    }
}

/* Computes the times of copies and of updates from the rates if the file does not have them.
 * there[key]: true if the file has the key. */
static void take_rates(Machine *m, const bool there[KEY_COUNT])
{
    double update_s = UPDATE_BYTES / m->rates.bytes_per_s;
    if (!there[KEY_MOVE]) m->move_s_per_byte = 1 / m->rates.bytes_per_s;
    if (!there[KEY_UPDATE]) m->update_s = rates_range(update_s);
}

static Status read_root(const Reader *r, const YamlNode *root)
{
    bool there[KEY_COUNT] = {false};
    int key;
    if (root->kind != YAML_MAP) return fail_at(r, root, "expected a mapping of keys");
    for (int i = 0; i < root->count; ++i) {
        TRY(read_key(r, root->key[i], machine_keys, KEY_COUNT, &key));
        there[key] = true;
        TRY(read_value(r, key, root->item[i]));
    }
    int required = r->machine->has_rates ? REQUIRED_WITH_RATES : REQUIRED_WITHOUT_RATES;
    for (int i = 0; i < required; ++i)
        if (!there[i]) return fail(ERR_CONFIG, "%s: key `%s` is missing", r->path, machine_keys[i]);
    if (r->machine->has_rates) take_rates(r->machine, there);
    return OK;
}

Status machine_read(Machine *machine, const char *path)
{
    char *text;
    size_t bytes;
    YamlNode *root = NULL;
    *machine = (Machine){.nodes = 1, .overlap_compute = 1};
    TRY(file_text(path, FILE_BYTES, &text, &bytes));
    Status st = yaml_parse(&root, path, text, bytes);
    mem_free(&text);
    if (st == OK) st = read_root(&(Reader){machine, path}, root);
    yaml_node_free(&root);
    if (st != OK) machine_fini(machine);
    return st;
}
