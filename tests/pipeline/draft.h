/* Makes random graphs of layers, as the text of a configuration. The graphs have branches, sums,
 * concatenations, several readers of the data, aliases of aliases, and in-place operations in every
 * order. Each graph is determined by its number. */
#ifndef WEFT_TESTS_PIPELINE_DRAFT_H
#define WEFT_TESTS_PIPELINE_DRAFT_H

#include "pipeline/fixture.h"

enum { SIDE = 6, NODES = 40, TEXT = 8192 };

/* The output of a node. Node 0 is the data. */
typedef struct Shaped {
    /* channels, and height and width, of an image; side 0: a vector of `channels` elements */
    int channels, side;
    /* number of nodes that read the output */
    int readers;
} Shaped;

/* A graph that is being made. */
typedef struct Draft {
    /* key of the random numbers */
    RngKey key;
    /* number of random numbers drawn so far */
    uint64_t drawn;
    /* [count] */
    Shaped node[NODES];
    int count;
    /* true: the graph has only vectors of one width, and many sums of them */
    bool alike;
    /* text of the configuration so far */
    char text[TEXT];
} Draft;

/* Draws a number from 0 to n - 1. */
static inline int pick(Draft *d, int n)
{
    return (int)(rng_u32(d->key, d->drawn++) % (uint32_t)n);
}

static inline const char *name_of(int node, char out[16])
{
    snprintf(out, 16, node == 0 ? "data" : "n%d", node);
    return out;
}

/* Appends a layer that reads node a and, if b is not negative, node b. attrs: further attributes,
 * "" or ", key: value". shape: shape of the layer's output. Returns the number of the new node. */
static inline int add_layer(Draft *d, const char *kind, const char *attrs, int a, int b,
                            Shaped shape)
{
    char na[16], nb[16];
    size_t used = strlen(d->text);
    name_of(a, na);
    if (b < 0)
        snprintf(d->text + used, TEXT - used, "%s%s: {name: n%d, input: %s%s}",
                 d->count > 1 ? ", " : "", kind, d->count, na, attrs);
    else
        snprintf(d->text + used, TEXT - used, "%s%s: {name: n%d, input: [%s, %s]%s}",
                 d->count > 1 ? ", " : "", kind, d->count, na, name_of(b, nb), attrs);
    d->node[a].readers++;
    if (b >= 0) d->node[b].readers++;
    shape.readers = 0;
    d->node[d->count] = shape;
    return d->count++;
}

/* Returns another node, at random, that can be added to node a or, if `join` is true, concatenated
 * with it. Returns a if it finds none. */
static inline int partner(Draft *d, int a, bool join)
{
    for (int tries = 0; tries < 12; ++tries) {
        int b = pick(d, d->count);
        bool fits = (d->node[b].side == d->node[a].side) &&
                    (join || d->node[b].channels == d->node[a].channels);
        if (fits && b != a) return b;
    }
    return a;
}

/* Appends a random layer, or none if the drawn kind of layer does not fit. */
static inline void add_any(Draft *d)
{
    static const char *const pointwise[] = {"relu", "relu6", "gelu", "silu"};
    static const int widths[] = {5, 8, 16, 20}, alike[] = {0, 3, 4, 4, 5, 5, 5, 5, 9, 9};
    /* a is the input. In two of three cases it is the node that was added last, so that chains
     * grow; otherwise it is any node. */
    int most = d->count - 1,
        a = pick(d, 3) ? most
            : d->alike ? 2 + pick(d, most - 1)
                       : pick(d, d->count),
        b;
    Shaped s = d->node[a], to = s;
    char attrs[64];
    switch (d->alike ? alike[pick(d, 10)] : pick(d, 10)) {
    case 0:
    case 1:
    case 2:
        add_layer(d, pointwise[pick(d, 4)], "", a, -1, s);
        break;
    case 3:
        add_layer(d, "dropout", ", p: 0.3", a, -1, s);
        break;
    case 4:
        add_layer(d, s.side == 0 && pick(d, 2) ? "layer_norm" : "batch_norm", "", a, -1, s);
        break;
    case 5:
        b = partner(d, a, false);
        add_layer(d, "add", "", a, b, s);
        break;
    case 6:
        b = partner(d, a, true);
        to.channels += d->node[b].channels;
        if (to.channels <= 800) add_layer(d, "concat", "", a, b, to);
        break;
    case 7:
        to = (Shaped){.channels = s.channels * (s.side ? s.side * s.side : 1)};
        if (to.channels <= 800) add_layer(d, "flatten", "", a, -1, to);
        break;
    case 8:
        if (s.side < 2) break;
        to.side = s.side / 2;
        add_layer(d, pick(d, 2) ? "max_pool" : "avg_pool", ", kernel: 2", a, -1, to);
        break;
    default:
        to.channels = d->alike ? s.channels : widths[pick(d, 4)];
        if (s.side)
            snprintf(attrs, sizeof attrs, ", channels: %d, kernel: 3, pad: 1", to.channels);
        else
            snprintf(attrs, sizeof attrs, ", width: %d", to.channels);
        add_layer(d, s.side ? "conv2d" : "dense", attrs, a, -1, to);
    }
}

/* Appends layers that make a vector of the output of node a, unless it is a vector already. Returns
 * the number of the vector's node. */
static inline int to_vector(Draft *d, int a)
{
    Shaped s = d->node[a];
    if (s.side == 0) return a;
    if (s.channels * s.side * s.side > 800) {
        a = add_layer(d, "global_pool", "", a, -1, (Shaped){.channels = s.channels, .side = 1});
        s.side = 1;
    }
    return add_layer(d, "flatten", "", a, -1, (Shaped){.channels = s.channels * s.side * s.side});
}

/* Begins a graph of vectors of one width: adds the first vector, which is computed from the
 * data. */
static inline void begin_alike(Draft *d)
{
    Shaped all = {.channels = 3 * SIDE * SIDE};
    int a = add_layer(d, "flatten", "", 0, -1, all);
    add_layer(d, "dense", ", width: 16", a, -1, (Shaped){.channels = 16});
    d->alike = true;
}

/* Joins all nodes that no node reads, and adds the logits: a dense layer, sometimes followed by
 * in-place operations or aliases. */
static inline void finish(Draft *d)
{
    char attrs[32];
    int all = -1;
    for (int i = 1, end = d->count; i < end; ++i) {
        if (d->node[i].readers) continue;
        int v = to_vector(d, i);
        if (all < 0) {
            all = v;
            continue;
        }
        int sum = d->node[all].channels + d->node[v].channels;
        if (sum <= 2000 && pick(d, 2)) {
            all = add_layer(d, "concat", "", all, v, (Shaped){.channels = sum});
            continue;
        }
        snprintf(attrs, sizeof attrs, ", width: %d", d->node[all].channels);
        v = add_layer(d, "dense", attrs, v, -1, d->node[all]);
        all = pick(d, 2) ? add_layer(d, "add", "", all, v, d->node[all])
                         : add_layer(d, "add", "", v, all, d->node[all]);
    }
    static const char *const last[] = {"flatten", "relu", "dropout", "batch_norm"};
    snprintf(attrs, sizeof attrs, ", width: %d", CLASSES);
    all = add_layer(d, "dense", attrs, all, -1, (Shaped){.channels = CLASSES});
    for (int k = pick(d, 3); k > 0; --k)
        all = add_layer(d, last[pick(d, 4)], "", all, -1, d->node[all]);
}

/* Makes random graph `number`. */
static inline void draft(Draft *d, int number)
{
    *d = (Draft){.key = rng_key(5, RNG_TEST, (uint64_t)number, 0), .count = 1};
    d->node[0] = (Shaped){.channels = 3, .side = SIDE};
    snprintf(d->text, TEXT, "model: {layers: [");
    if (number % 4 == 3) begin_alike(d);
    for (int tries = 3 + pick(d, 10) + 6 * d->alike; tries > 0 || d->count == 1; --tries)
        add_any(d);
    finish(d);
    snprintf(d->text + strlen(d->text), TEXT - strlen(d->text), "]}\n");
}

#endif
