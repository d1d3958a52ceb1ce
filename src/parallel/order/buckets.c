/* Divides the gradient arena into buckets, ranges that are each summed as a unit. Buckets are
 * filled with tensors from the last to the first, the order in which backward finishes them; a
 * tensor is never cut. Elements after the last tensor belong to the first bucket, elements before
 * the first tensor to the last bucket. */
#include "parallel.h"

/* Returns whether a bucket is complete without the next tensor: it has `want` bytes, or it is
 * closer to this size without the tensor than with it. have: bytes of the bucket so far; more:
 * bytes of the next tensor. */
static bool full_enough(size_t have, size_t more, size_t want)
{
    if (have >= want) return true;
    return have > 0 && have + more > want && have + more - want > want - have;
}

static void push(Buckets *buckets, int64_t begin, int64_t end, int tensor)
{
    int b = buckets->count++;
    buckets->offset[b] = begin;
    buckets->elements[b] = end - begin;
    buckets->first_tensor[b] = tensor;
}

void buckets_init(Buckets *buckets, const int64_t *tensor_offset, int tensors, int64_t elements,
                  size_t bucket_bytes)
{
    size_t capacity = tensors > 0 ? (size_t)tensors : 1;
    *buckets = (Buckets){.offset = mem_new(capacity * sizeof(int64_t)),
                         .elements = mem_new(capacity * sizeof(int64_t)),
                         .first_tensor = mem_new(capacity * sizeof(int))};
    int64_t end = elements;
    for (int t = tensors - 1; t > 0; --t) {
        size_t have = (size_t)(end - tensor_offset[t]) * sizeof(float);
        int64_t below = t == 1 ? 0 : tensor_offset[t - 1];
        size_t more = (size_t)(tensor_offset[t] - below) * sizeof(float);
        if (have == 0 || !full_enough(have, more, bucket_bytes)) continue;
        push(buckets, tensor_offset[t], end, t);
        end = tensor_offset[t];
    }
    if (end > 0) push(buckets, 0, end, 0);
}

void buckets_fini(Buckets *buckets)
{
    mem_free(&buckets->offset);
    mem_free(&buckets->elements);
    mem_free(&buckets->first_tensor);
    *buckets = (Buckets){0};
}
