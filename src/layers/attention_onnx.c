/* Adds attention as several ONNX nodes, because ONNX has an Attention operator only from opset 23
 * on. In shapes, N is the number of samples, T the number of tokens, K the number of heads of keys
 * and of values, and W the width of a head. Tables of cosines and sines have a row for each
 * position of the model's context; the first T rows are used. */
#include "kinds.h"

#include <math.h>

/* Returns the mask, (T,T): element (q, k) is true if query q attends to key k. Layers with the same
 * window and length share a mask. */
static OnnxValue causal_mask(const OnnxLayer *l)
{
    const int window = l->spec->window;
    const int64_t length = onnx_fixed_length(l);
    char key[64] = "causal";
    int used = 6;
    if (window > 0) used += snprintf(key + used, sizeof key - (size_t)used, "/%d", window);
    if (length > 0)
        snprintf(key + used, sizeof key - (size_t)used, "/length %lld", (long long)length);
    OnnxValue known = onnx_find_shared(l, key);
    if (known != ONNX_NONE) return known;
    const OnnxLayer shared = onnx_shared_layer(l, key);
    OnnxValue zero = onnx_int64s(l, 0, (const int64_t[]){0});
    OnnxValue one = onnx_int64s(l, 0, (const int64_t[]){1});
    OnnxValue count =
        onnx_add(&shared, "Squeeze", "length", onnx_sequence_length(l), onnx_vector(l, 0));
    OnnxValue key_position = onnx_add(&shared, "Range", "places", zero, count, one);
    OnnxValue query = onnx_add(&shared, "Unsqueeze", "queries", key_position, onnx_vector(l, 1));
    if (window == 0)
        return onnx_share(l, key, onnx_add(&shared, "GreaterOrEqual", NULL, query, key_position));
    OnnxValue past = onnx_add(&shared, "GreaterOrEqual", "past", query, key_position);
    OnnxValue far = onnx_int64s(l, 0, (const int64_t[]){window});
    OnnxValue near = onnx_add(&shared, "Sub", "distance", query, key_position);
    near = onnx_add(&shared, "Less", "near", near, far);
    return onnx_share(l, key, onnx_add(&shared, "And", NULL, past, near));
}

/* Returns the table, (T,W), of cosines or sines of the rotary angles. Each value occurs twice in
 * its row, once for each half of a head. function: cos or sin; name: "cos" or "sin"; width: W. */
static OnnxValue angle_table(const OnnxLayer *l, const char *name, double (*function)(double),
                             int64_t width)
{
    const int64_t context = l->spec->x[0].shape.dim[1];
    const double base = attention_rotary_base(l->spec);
    double *speed = mem_new((size_t)(width / 2) * sizeof *speed);
    const double gain = rotary_speeds(l->spec, width, context, speed);
    const uint64_t hash = hash_bytes(speed, (size_t)(width / 2) * sizeof *speed);
    const int64_t length = onnx_fixed_length(l);
    char key[120], rows[136];
    int used = snprintf(key, sizeof key, "rotary/%s/%lld/%.9g", name, (long long)width, base);
    if (l->spec->rotary_scaling.type != ROTARY_DEFAULT)
        used += snprintf(key + used, sizeof key - (size_t)used, "/%.9g/%016llx", gain,
                         (unsigned long long)hash);
    if (length > 0)
        snprintf(key + used, sizeof key - (size_t)used, "/length %lld", (long long)length);
    snprintf(rows, sizeof rows, "%s/rows", key);
    OnnxValue known = onnx_find_shared(l, rows);
    if (known != ONNX_NONE) {
        mem_free(&speed);
        return known;
    }
    float *value = mem_new((size_t)(context * width) * sizeof *value);
    for (int64_t t = 0; t < context; ++t)
        for (int64_t i = 0; i < width; ++i)
            value[t * width + i] = (float)(gain * function((double)t * speed[i % (width / 2)]));
    mem_free(&speed);
    const OnnxLayer shared = onnx_shared_layer(l, key);
    OnnxValue table = onnx_table(l, key, context, width, value), zero = onnx_vector(l, 0);
    return onnx_share(
        l, rows, onnx_add(&shared, "Slice", "rows", table, zero, onnx_sequence_length(l), zero));
}

/* Returns x with each head rotated: x cos + y sin, where the first half of y is minus the second
 * half of x, and the second half of y is the first half of x. */
static OnnxValue rotate(const OnnxLayer *l, OnnxValue x, int64_t width)
{
    OnnxValue cosine = angle_table(l, "cos", cos, width);
    OnnxValue sine = angle_table(l, "sin", sin, width);
    OnnxValue first = onnx_add(l, "Split", "first", x);
    onnx_attr_int(l, "axis", -1);
    OnnxValue second = onnx_add(l, "Neg", "negative", onnx_add_output(l, "second"));
    OnnxValue swapped = onnx_add(l, "Concat", "quarter", second, first);
    onnx_attr_int(l, "axis", -1);
    swapped = onnx_add(l, "Mul", "sine", swapped, sine);
    return onnx_add(l, "Add", "turned", onnx_add(l, "Mul", "cosine", x, cosine), swapped);
}

/* Returns x, (N,T,heads*W), as (N,heads,T,W). */
static OnnxValue split_heads(const OnnxLayer *l, OnnxValue x, int64_t heads, int64_t width)
{
    x = onnx_add(l, "Reshape", "apart", x, onnx_vector(l, 0, 0, heads, width));
    x = onnx_add(l, "Transpose", "heads", x);
    onnx_attr_ints(l, "perm", 4, (const int64_t[]){0, 2, 1, 3});
    return x;
}

OnnxValue attention_onnx(const OnnxLayer *l)
{
    const int64_t heads = l->spec->heads, kv_heads = attention_kv_heads(l->spec);
    const int64_t width = l->spec->y.shape.dim[2] / heads, group = heads / kv_heads;
    OnnxValue sizes = onnx_vector(l, heads * width, kv_heads * width, kv_heads * width);
    OnnxValue query = onnx_add(l, "Split", "queries", l->x[0], sizes);
    onnx_attr_int(l, "axis", -1);
    OnnxValue key = onnx_add_output(l, "keys"), value = onnx_add_output(l, "values");
    query = split_heads(l, query, heads, width);
    key = split_heads(l, key, kv_heads, width);
    value = split_heads(l, value, kv_heads, width);
    if (l->spec->rotary) {
        query = rotate(l, query, width);
        key = rotate(l, key, width);
    }
    query = onnx_add(l, "Mul", "scaled", query, onnx_float(l, (float)(1 / sqrt((double)width))));
    /* keys become (N,K,W,T) */
    key = onnx_add(l, "Transpose", "keys_turned", key);
    onnx_attr_ints(l, "perm", 4, (const int64_t[]){0, 1, 3, 2});
    if (group > 1) {
        query =
            onnx_add(l, "Reshape", "groups", query, onnx_vector(l, 0, kv_heads, group, -1, width));
        key = onnx_add(l, "Unsqueeze", "keys_shared", key, onnx_vector(l, 2));
        value = onnx_add(l, "Unsqueeze", "values_shared", value, onnx_vector(l, 2));
    }
    OnnxValue score = onnx_add(l, "MatMul", "scores", query, key);
    if (!l->spec->bidirectional)
        score = onnx_add(l, "Where", "seen", causal_mask(l), score, onnx_float(l, -INFINITY));
    score = onnx_add(l, "Softmax", "weights", score);
    onnx_attr_int(l, "axis", -1);
    OnnxValue y = onnx_add(l, "MatMul", "mixed", score, value);
    if (group > 1) y = onnx_add(l, "Reshape", "ungrouped", y, onnx_vector(l, 0, heads, -1, width));
    y = onnx_add(l, "Transpose", "tokens", y);
    onnx_attr_ints(l, "perm", 4, (const int64_t[]){0, 2, 1, 3});
    return onnx_add(l, "Reshape", NULL, y, onnx_vector(l, 0, 0, heads * width));
}
