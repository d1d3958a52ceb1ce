/* Files: a topology as JSON, which is read as YAML, of which it is a part; and a map of places. */
#include "config/yaml.h"
#include "topo.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { VERSION = 1, RANKS_MAX = 4096 };
static const size_t FILE_BYTES = (size_t)1 << 30;

/* ---- reading ---- */

static Status fail_at(const char *path, const Node *at, const char *what)
{
    return fail(ERR_CONFIG, "%s:%d:%d: %s", path, at->line, at->column, what);
}

static Status read_number(const char *path, const Node *n, double least, double most, double *value)
{
    char *end = NULL;
    if (n->kind == NODE_SCALAR && !n->quoted) *value = strtod(n->text, &end);
    if (!end || end == n->text || *end || !(*value >= least && *value <= most)) {
        char what[80];
        snprintf(what, sizeof what, "expected a number from %g to %g", least, most);
        return fail_at(path, n, what);
    }
    return OK;
}

static Status read_whole(const char *path, const Node *n, int least, int most, int *value)
{
    double real;
    TRY(read_number(path, n, least, most, &real));
    if (real != floor(real)) return fail_at(path, n, "expected a whole number");
    *value = (int)real;
    return OK;
}

/* Reads a list of `count` texts. */
static Status read_texts(const char *path, const Node *n, int count, char **text)
{
    if (n->kind != NODE_LIST || n->count != count) return fail_at(path, n, "wrong number of texts");
    for (int i = 0; i < count; ++i) {
        if (n->item[i]->kind != NODE_SCALAR) return fail_at(path, n->item[i], "expected a text");
        text[i] = mem_text(n->item[i]->text);
    }
    return OK;
}

/* Reads a symmetric matrix. least: smallest value off the diagonal. */
static Status read_matrix(const char *path, const Node *n, int ranks, double least, double *matrix)
{
    if (n->kind != NODE_LIST || n->count != ranks)
        return fail_at(path, n, "expected a row for each rank");
    for (int a = 0; a < ranks; ++a) {
        const Node *row = n->item[a];
        if (row->kind != NODE_LIST || row->count != ranks)
            return fail_at(path, row, "expected a number for each rank");
        for (int b = 0; b < ranks; ++b) {
            double *to = &matrix[(int64_t)a * ranks + b];
            TRY(read_number(path, row->item[b], a == b ? 0 : least, a == b ? 0 : 1e30, to));
            if (b < a && *to != matrix[(int64_t)b * ranks + a])
                return fail_at(path, row->item[b], "the matrix is not symmetric");
        }
    }
    return OK;
}

#define FILE_KEYS(W)                                                                               \
    W(KEY_VERSION, "weft_topology")                                                                \
    W(KEY_HOSTS, "hosts")                                                                          \
    W(KEY_NODE, "node")                                                                            \
    W(KEY_CPUS, "cpus")                                                                            \
    W(KEY_LATENCY, "latency_s")                                                                    \
    W(KEY_RATE, "bytes_s")                                                                         \
    W(KEY_TOGETHER, "together_bytes_s")
enum { FILE_KEYS(LIST_CONSTANT) KEY_COUNT };
static const char *const key_names[KEY_COUNT] = {FILE_KEYS(LIST_NAME)};

/* Finds the values of all keys in a mapping. */
static Status find_keys(const char *path, const Node *root, const Node *value[KEY_COUNT])
{
    if (root->kind != NODE_MAP) return fail_at(path, root, "expected a mapping of keys");
    for (int i = 0; i < root->count; ++i) {
        int key = 0;
        while (key < KEY_COUNT && strcmp(root->key[i]->text, key_names[key]) != 0) ++key;
        if (key == KEY_COUNT) return fail_at(path, root->key[i], "unknown key");
        value[key] = root->item[i];
    }
    for (int key = 0; key < KEY_COUNT; ++key)
        if (!value[key]) return fail(ERR_CONFIG, "%s: key `%s` is missing", path, key_names[key]);
    return OK;
}

static Status read_nodes(Topology *t, const char *path, const Node *n)
{
    for (int r = 0; r < t->ranks; ++r)
        TRY(read_whole(path, n->item[r], 0, t->nodes - 1, &t->node[r]));
    if (t->node[0] != 0) return fail_at(path, n->item[0], "rank 0 must be on node 0");
    for (int i = 0; i < t->nodes; ++i) {
        int r = 0;
        while (r < t->ranks && t->node[r] != i) ++r;
        if (r == t->ranks) return fail_at(path, n, "a node has no rank");
    }
    return OK;
}

static Status read_root(Topology *t, const char *path, const Node *root)
{
    const Node *value[KEY_COUNT] = {NULL};
    int version;
    TRY(find_keys(path, root, value));
    TRY(read_whole(path, value[KEY_VERSION], VERSION, VERSION, &version));
    const Node *hosts = value[KEY_HOSTS], *node = value[KEY_NODE];
    if (node->kind != NODE_LIST || node->count < 1 || node->count > RANKS_MAX)
        return fail_at(path, node, "expected a list with the node of each of 1 to 4096 ranks");
    t->ranks = node->count;
    t->nodes = hosts->count;
    size_t ranks = (size_t)t->ranks;
    t->host = mem_new(((size_t)t->nodes + 1) * sizeof *t->host);
    t->cpus = mem_new(ranks * sizeof *t->cpus);
    t->node = mem_new(ranks * sizeof *t->node);
    t->latency_s = mem_new(ranks * ranks * sizeof *t->latency_s);
    t->bytes_s = mem_new(ranks * ranks * sizeof *t->bytes_s);
    t->together_bytes_s = mem_new(ranks * ranks * sizeof *t->together_bytes_s);
    TRY(read_texts(path, hosts, t->nodes, t->host));
    TRY(read_nodes(t, path, node));
    TRY(read_texts(path, value[KEY_CPUS], t->ranks, t->cpus));
    TRY(read_matrix(path, value[KEY_LATENCY], t->ranks, 0, t->latency_s));
    TRY(read_matrix(path, value[KEY_RATE], t->ranks, 1, t->bytes_s));
    return read_matrix(path, value[KEY_TOGETHER], t->ranks, 1, t->together_bytes_s);
}

static Status read_file(const char *path, Node **root)
{
    char *text;
    size_t bytes;
    TRY(file_text(path, FILE_BYTES, &text, &bytes));
    Status st = yaml_parse(root, path, text, bytes);
    mem_free(&text);
    return st;
}

Status topo_read(Topology *t, const char *path)
{
    Node *root = NULL;
    *t = (Topology){0};
    Status st = read_file(path, &root);
    if (st == OK) st = read_root(t, path, root);
    node_free(&root);
    if (st != OK) topo_fini(t);
    return st;
}

static Status read_places(int *map, int ranks, const char *path, const Node *root)
{
    if (root->kind != NODE_LIST || root->count != ranks) {
        char what[80];
        snprintf(what, sizeof what, "expected a list with a process for each of %d ranks", ranks);
        return fail_at(path, root, what);
    }
    for (int r = 0; r < ranks; ++r) {
        TRY(read_whole(path, root->item[r], 0, ranks - 1, &map[r]));
        for (int k = 0; k < r; ++k)
            if (map[k] == map[r])
                return fail_at(path, root->item[r], "this process is there twice");
    }
    return map[0] == 0 ? OK : fail_at(path, root->item[0], "process 0 must play rank 0");
}

Status places_read(int **map, int ranks, const char *path)
{
    Node *root = NULL;
    *map = NULL;
    TRY(read_file(path, &root));
    int *read = mem_new((size_t)ranks * sizeof *read);
    Status st = read_places(read, ranks, path, root);
    node_free(&root);
    if (st == OK)
        *map = read;
    else
        mem_free(&read);
    return st;
}

/* ---- writing ---- */

static Status close_file(FILE *out, const char *path)
{
    bool good = !ferror(out);
    if (fclose(out) != 0 || !good)
        return fail(ERR_IO, "%s: writing failed: %s", path, strerror(errno));
    return OK;
}

static void put_matrix(Json *json, int key, int ranks, const double *matrix)
{
    json_lines(json, key_names[key]);
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
    put_matrix(&json, KEY_LATENCY, t->ranks, t->latency_s);
    put_matrix(&json, KEY_RATE, t->ranks, t->bytes_s);
    put_matrix(&json, KEY_TOGETHER, t->ranks, t->together_bytes_s);
    json_end(&json);
}

Status topo_write(const Topology *t, const char *path)
{
    FILE *out = file_create_stream(path);
    if (!out) return fail(ERR_IO, "%s: cannot be written: %s", path, file_error(errno));
    topo_print(t, out);
    return close_file(out, path);
}

Status places_write(const int *map, int ranks, const char *path)
{
    FILE *out = file_create_stream(path);
    if (!out) return fail(ERR_IO, "%s: cannot be written: %s", path, file_error(errno));
    fputs("# process that plays rank 0, 1, ... (grid.rank_map)\n[", out);
    for (int r = 0; r < ranks; ++r) fprintf(out, "%s%d", r ? ", " : "", map[r]);
    fputs("]\n", out);
    return close_file(out, path);
}
