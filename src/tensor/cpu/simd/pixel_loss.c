/* Losses of images with a class for each pixel. A pixel has a logit for each class; the logits of
 * neighbouring classes are `stride` elements apart. Loops run over neighbouring pixels, class by
 * class. Label -1 means that a pixel has no label. */
#include "vector.h"

void SIMD_NAME(pixel_softmax)(const PixelArgs *a, PixelStats *s)
{
    const Elem *x = a->x;
    const int64_t n = a->n;
    float total[PIXEL_PIECE];
    for (int64_t i = 0; i < n; ++i) {
        s->lse[i] = -INFINITY;
        s->label_logit[i] = s->sum[i] = s->label_rank[i] = s->argmax[i] = total[i] = 0;
    }
    for (int c = 0; c < a->classes; ++c, x += a->stride) {
        const float w = a->weight ? a->weight[c] : 1.0f;
#pragma omp simd
        for (int64_t i = 0; i < n; ++i) {
            const float v = value_of(x[i]);
            s->argmax[i] = v > s->lse[i] ? (float)c : s->argmax[i];
            s->lse[i] = v > s->lse[i] ? v : s->lse[i];
            s->label_logit[i] = a->label[i] == c ? v : s->label_logit[i];
            s->sum[i] += w * v;
        }
    }
    x = a->x;
    for (int c = 0; c < a->classes; ++c, x += a->stride)
#pragma omp simd
        for (int64_t i = 0; i < n; ++i) {
            const float v = value_of(x[i]), own = s->label_logit[i];
            const bool above = c < a->label[i] ? !(v < own) : !(v <= own);
            s->label_rank[i] += above && c != a->label[i] ? 1.0f : 0.0f;
            total[i] += exp_fast(v - s->lse[i]);
        }
    for (int64_t i = 0; i < n; ++i) s->lse[i] += logf(total[i]);
}

void SIMD_NAME(pixel_grad)(const PixelArgs *a, const PixelGrad *g, void *to)
{
    const Elem *x = a->x;
    Elem *dx = to;
    const int64_t n = a->n;
    for (int c = 0; c < a->classes; ++c, x += a->stride, dx += a->stride) {
        const float w = a->weight ? a->weight[c] : 1.0f;
        EACH(dx, g->factor[i] * exp_fast(value_of(x[i]) - g->lse[i]) - w * g->base[i] -
                     (a->label[i] == c ? g->hit[i] : 0.0f))
    }
}

void SIMD_NAME(region_sums)(const PixelArgs *a, const float *lse, RegionSums *sums)
{
    const Elem *x = a->x;
    const int64_t n = a->n;
    for (int c = 0; c < a->classes; ++c, x += a->stride) {
        float inside = 0.0f, all = 0.0f, labelled = 0.0f;
#pragma omp simd reduction(+ : inside, all, labelled)
        for (int64_t i = 0; i < n; ++i) {
            const float p = exp_fast(value_of(x[i]) - lse[i]);
            inside += a->label[i] == c ? p : 0.0f;
            all += a->label[i] < 0 ? 0.0f : p;
            labelled += a->label[i] == c ? 1.0f : 0.0f;
        }
        sums[c] = (RegionSums){inside, all, labelled};
    }
}

void SIMD_NAME(region_grad)(const PixelArgs *a, const RegionGrad *g, void *to)
{
    const Elem *x = a->x;
    Elem *dx = to;
    const int64_t n = a->n;
    float mean[PIXEL_PIECE] = {0};
    for (int c = 0; c < a->classes; ++c, x += a->stride) {
        const float all = g->all[c], inside = g->inside[c];
#pragma omp simd
        for (int64_t i = 0; i < n; ++i)
            mean[i] +=
                exp_fast(value_of(x[i]) - g->lse[i]) * (all + (a->label[i] == c ? inside : 0.0f));
    }
    x = a->x;
    for (int c = 0; c < a->classes; ++c, x += a->stride, dx += a->stride) {
        const float all = g->all[c], inside = g->inside[c];
        EACH(dx, (a->label[i] < 0 ? 0.0f : g->scale * exp_fast(value_of(x[i]) - g->lse[i])) *
                     (all + (a->label[i] == c ? inside : 0.0f) - mean[i]))
    }
}
