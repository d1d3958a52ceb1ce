/* Reads and writes files of topologies. They are JSON, which the reader of YAML reads. hwloc's XML
 * can be read, too; it is not written. */
#include "hardware_file.h"
#include "value.h"
#include "topo.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { VERSION = 1 };
static const size_t FILE_BYTES = (size_t)1 << 30;

/* ---- reading ---- */

#define FILE_KEYS(W)                                                                               \
    W(KEY_VERSION, "weft_topology")                                                                \
    W(KEY_HOSTS, "hosts")                                                                          \
    W(KEY_NODE, "node")                                                                            \
    W(KEY_CPUS, "cpus")                                                                            \
    W(KEY_LATENCY, "latency_s")                                                                    \
    W(KEY_RATE, "bytes_s")                                                                         \
    W(KEY_TOGETHER, "together_bytes_s")                                                            \
    W(KEY_SWITCHES, "switches")                                                                    \
    W(KEY_KIND, "hardware_of")                                                                     \
    W(KEY_HARDWARE, "hardware")
enum { FILE_KEYS(LIST_CONSTANT) KEY_COUNT, KEYS_REQUIRED = KEY_LATENCY };
static const char *const key_names[KEY_COUNT] = {FILE_KEYS(LIST_NAME)};

/* Fails unless the matrix of `key`, or a row of it, is a list with an item for each rank. */
static Status check_length(const char *path, const YamlNode *n, int key, const char *item,
                           int ranks)
{
    if (n->kind != YAML_LIST)
        return value_fail(path, n, "%s: expected a list with a %s for each rank, not %s",
                          key_names[key], item, yaml_node_kind_name(n));
    if (n->count == ranks) return OK;
    return value_fail(path, n, "%s: expected a %s for each of %d ranks, not %d", key_names[key],
                      item, ranks, n->count);
}

/* Reads the symmetric matrix of `key`. least: smallest allowed value off the diagonal. */
static Status read_matrix(const char *path, const YamlNode *n, int key, int ranks, double least,
                          double *matrix)
{
    TRY(check_length(path, n, key, "row", ranks));
    for (int a = 0; a < ranks; ++a) {
        const YamlNode *row = n->item[a];
        TRY(check_length(path, row, key, "number", ranks));
        for (int b = 0; b < ranks; ++b) {
            double *to = &matrix[(int64_t)a * ranks + b];
            TRY(value_number(path, row->item[b], a == b ? 0 : least, a == b ? 0 : 1e30, to));
            double mirrored = b < a ? matrix[(int64_t)b * ranks + a] : *to;
            if (*to != mirrored)
                return value_fail(path, row->item[b],
                                  "%s is not symmetric: %g from rank %d to %d, but %g back",
                                  key_names[key], *to, a, b, mirrored);
        }
    }
    return OK;
}

static Status read_nodes(Topology *t, const char *path, const YamlNode *n)
{
    for (int r = 0; r < t->ranks; ++r)
        TRY(value_whole(path, n->item[r], 0, t->nodes - 1, &t->node[r]));
    if (t->ranks == 0) return OK;
    if (t->node[0] != 0) return value_fail(path, n->item[0], "rank 0 must be on node 0");
    for (int i = 0; i < t->nodes; ++i) {
        int r = 0;
        while (r < t->ranks && t->node[r] != i) ++r;
        if (r == t->ranks) return value_fail(path, n, "node %d, %.80s, has no rank", i, t->host[i]);
    }
    return OK;
}

/* Reads the three matrices; a file has all or none of them. */
static Status read_matrices(Topology *t, const char *path, const YamlNode *root,
                            const YamlNode *const *value)
{
    size_t bytes = (size_t)t->ranks * (size_t)t->ranks * sizeof(double);
    if (!value[KEY_LATENCY] && !value[KEY_RATE] && !value[KEY_TOGETHER]) return OK;
    for (int key = KEY_LATENCY; key <= KEY_TOGETHER; ++key)
        if (!value[key])
            return value_fail(path, root,
                              "key `%s` is missing: latency_s, bytes_s and "
                              "together_bytes_s go together",
                              key_names[key]);
    t->latency_s = mem_new(bytes + 1);
    t->bytes_per_s = mem_new(bytes + 1);
    t->together_bytes_per_s = mem_new(bytes + 1);
    TRY(read_matrix(path, value[KEY_LATENCY], KEY_LATENCY, t->ranks, 0, t->latency_s));
    TRY(read_matrix(path, value[KEY_RATE], KEY_RATE, t->ranks, 1, t->bytes_per_s));
    return read_matrix(path, value[KEY_TOGETHER], KEY_TOGETHER, t->ranks, 1,
                       t->together_bytes_per_s);
}

/* Reads the kinds of hardware, and the kind of each node. */
static Status read_hardware(Topology *t, const char *path, const YamlNode *root,
                            const YamlNode *const *value)
{
    const YamlNode *kinds = value[KEY_HARDWARE], *kind_of = value[KEY_KIND];
    if (!kinds && !kind_of) return OK;
    if (!kinds || !kind_of)
        return value_fail(path, root, "key `%s` is missing: hardware and hardware_of go together",
                          key_names[kinds ? KEY_KIND : KEY_HARDWARE]);
    if (kinds->kind != YAML_LIST || kinds->count > t->nodes)
        return value_fail(path, kinds, "expected a list of at most one kind for each node");
    if (kind_of->kind != YAML_LIST || kind_of->count != t->nodes)
        return value_fail(path, kind_of, "expected a number for each node");
    t->hardware = mem_new(((size_t)kinds->count + 1) * sizeof *t->hardware);
    for (; t->hardware_count < kinds->count; ++t->hardware_count)
        TRY(hardware_from_yaml(&t->hardware[t->hardware_count], path,
                               kinds->item[t->hardware_count]));
    t->hardware_index = mem_new((size_t)t->nodes * sizeof *t->hardware_index);
    for (int n = 0; n < t->nodes; ++n)
        TRY(value_whole(path, kind_of->item[n], -1, t->hardware_count - 1, &t->hardware_index[n]));
    return OK;
}

static Status read_root(Topology *t, const char *path, const YamlNode *root)
{
    const YamlNode *value[KEY_COUNT];
    int version;
    TRY(value_keys(path, root, key_names, KEY_COUNT, KEYS_REQUIRED, value));
    TRY(value_whole(path, value[KEY_VERSION], 0, INT_MAX, &version));
    if (version != VERSION)
        return value_fail(path, value[KEY_VERSION], "this weft reads version %d, not %d", VERSION,
                          version);
    const YamlNode *hosts = value[KEY_HOSTS], *node = value[KEY_NODE];
    if (node->kind != YAML_LIST || node->count > TOPO_RANKS_MAX)
        return value_fail(path, node,
                          "expected a list with the node of each of at most 4096 ranks");
    if (hosts->kind != YAML_LIST || hosts->count < 1)
        return value_fail(path, hosts, "expected a list of names");
    t->ranks = node->count;
    t->nodes = hosts->count;
    size_t ranks = (size_t)t->ranks, nodes = (size_t)t->nodes;
    t->host = mem_new(nodes * sizeof *t->host);
    t->switches = mem_new(nodes * sizeof *t->switches);
    t->cpus = mem_new((ranks + 1) * sizeof *t->cpus);
    t->node = mem_new((ranks + 1) * sizeof *t->node);
    TRY(value_texts(path, hosts, "node", t->nodes, t->host));
    TRY(read_nodes(t, path, node));
    TRY(value_texts(path, value[KEY_CPUS], "rank", t->ranks, t->cpus));
    TRY(read_matrices(t, path, root, value));
    if (value[KEY_SWITCHES])
        TRY(value_texts(path, value[KEY_SWITCHES], "node", t->nodes, t->switches));
    else
        for (int n = 0; n < t->nodes; ++n) t->switches[n] = mem_text("");
    return read_hardware(t, path, root, value);
}

/* Makes a topology of one node without ranks from hwloc's XML. */
static Status read_xml(Topology *t, const char *path, const char *text, size_t bytes)
{
    Hardware *hardware = mem_new(sizeof *hardware);
    Status st = hardware_from_xml(hardware, path, text, bytes);
    if (st != OK) {
        mem_free(&hardware);
        return st;
    }
    t->nodes = t->hardware_count = 1;
    t->hardware = hardware;
    t->host = mem_new(sizeof *t->host);
    t->switches = mem_new(sizeof *t->switches);
    t->hardware_index = mem_new(sizeof *t->hardware_index);
    t->node = mem_new(sizeof *t->node);
    t->cpus = mem_new(sizeof *t->cpus);
    t->host[0] = mem_text(path);
    t->switches[0] = mem_text("");
    return OK;
}

static Status read_content(Topology *t, const char *path, const char *text, size_t bytes)
{
    YamlNode *root = NULL;
    if (text[strspn(text, " \t\r\n")] == '<') return read_xml(t, path, text, bytes);
    Status st = yaml_parse(&root, path, text, bytes);
    if (st == OK) st = read_root(t, path, root);
    yaml_node_free(&root);
    return st;
}

Status topo_read(Topology *t, const char *path)
{
    char *text;
    size_t bytes;
    *t = (Topology){0};
    TRY(file_text(path, FILE_BYTES, &text, &bytes));
    Status st = read_content(t, path, text, bytes);
    mem_free(&text);
    if (st != OK) topo_fini(t);
    return st;
}

/* ---- writing ---- */

static void put_matrix(Json *json, int key, int ranks, const double *matrix)
{
    json_array_by_line(json, key_names[key]);
    for (int a = 0; a < ranks; ++a) {
        json_array(json, NULL);
        for (int b = 0; b < ranks; ++b) json_real(json, NULL, matrix[(int64_t)a * ranks + b]);
        json_end(json);
    }
    json_end(json);
}

static void put_texts(Json *json, int key, int count, char *const *text)
{
    json_array(json, key_names[key]);
    for (int i = 0; i < count; ++i) json_text(json, NULL, text[i]);
    json_end(json);
}

static void put_hardware(Json *json, const Topology *t)
{
    json_array(json, key_names[KEY_KIND]);
    for (int n = 0; n < t->nodes; ++n) json_int(json, NULL, t->hardware_index[n]);
    json_end(json);
    json_array_by_line(json, key_names[KEY_HARDWARE]);
    for (int i = 0; i < t->hardware_count; ++i) hardware_print(json, &t->hardware[i]);
    json_end(json);
}

void topo_print(const Topology *t, FILE *out)
{
    Json json = json_to(out, true);
    json_object(&json, NULL);
    json_int(&json, key_names[KEY_VERSION], VERSION);
    put_texts(&json, KEY_HOSTS, t->nodes, t->host);
    json_array(&json, key_names[KEY_NODE]);
    for (int r = 0; r < t->ranks; ++r) json_int(&json, NULL, t->node[r]);
    json_end(&json);
    put_texts(&json, KEY_CPUS, t->ranks, t->cpus);
    if (t->bytes_per_s) {
        put_matrix(&json, KEY_LATENCY, t->ranks, t->latency_s);
        put_matrix(&json, KEY_RATE, t->ranks, t->bytes_per_s);
        put_matrix(&json, KEY_TOGETHER, t->ranks, t->together_bytes_per_s);
    }
    if (t->switches) put_texts(&json, KEY_SWITCHES, t->nodes, t->switches);
    if (t->hardware_index) put_hardware(&json, t);
    json_end(&json);
}

Status topo_write(const Topology *t, const char *path)
{
    FILE *out = file_create_stream(path);
    if (!out) return fail(ERR_IO, "%s: cannot be written: %s", path, file_error(errno));
    topo_print(t, out);
    return file_close_stream(out, path);
}
