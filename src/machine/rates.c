/* Computes times of operations that were not measured, from the rates in the machine's file. */
#include "private.h"

#include <math.h>

/* Returns the bytes that a part of an operation reads and writes. */
static double part_bytes(const Op *op, OperationPart part)
{
    const OpSpec *s = &op->spec;
    double y = (double)desc_bytes(s->y), x = 0, dx = 0, w = 0;
    for (int k = 0; k < s->x_count; ++k) {
        double bytes = (double)desc_bytes(s->x[k]);
        x += part == PART_FORWARD || op->needs_x[k] ? bytes : 0;
        dx += s->need_dx[k] && !op->dx_is_dy[k] ? bytes : 0;
    }
    for (int k = 0; k < s->w_count; ++k) w += (double)op->w_elements[k] * (double)sizeof(float);
    if (part == PART_FORWARD) return op->y_is_x ? 0 : x + w + y;
    if (part == PART_WEIGHT) return s->w_count > 0 && !s->frozen ? x + y + w : 0;
    return dx > 0 ? y + (op->needs_y ? y : 0) + x + w + dx : 0;
}

/* Returns the floating-point operations of a part. If backward computes gradients both of inputs
 * and of weights, each part has half of backward's operations. */
static double part_flops(const Op *op, OperationPart part)
{
    const OpSpec *s = &op->spec;
    bool has_weight = s->w_count > 0 && !s->frozen, has_data = false;
    for (int k = 0; k < s->x_count; ++k) has_data = has_data || s->need_dx[k];
    if (part == PART_FORWARD) return op->flops_forward;
    if (part == PART_WEIGHT ? !has_weight : !has_data) return 0;
    return has_weight && has_data ? op->flops_backward / 2 : op->flops_backward;
}

/* Computes the time of an exchange of x in a tensor-parallel group: the time of an all-reduce in a
 * ring or, for a gather or a scatter, half of it. An exchange that is made only in forward or only
 * in backward takes no time in the other pass. */
static Status exchange_time(const Machine *m, const ForecastInput *input, const OpSpec *s,
                            OperationPart part, double *seconds)
{
    const Slices divided = exchange_slices(s);
    double ranks = divided.ranks, halves = 2;
    bool forward = part == PART_FORWARD;
    *seconds = 0;
    if (part == PART_WEIGHT || ranks == 1) return OK;
    if (s->exchange == EXCHANGE_ENTER && forward) return OK;
    if (s->exchange == EXCHANGE_LEAVE && !forward) return OK;
    if (s->exchange != EXCHANGE_ENTER && s->exchange != EXCHANGE_LEAVE) halves = 1;
    const double element =
        fmax((double)dtype_bytes(s->x[0].dtype), (double)dtype_bytes(s->y.dtype));
    const double whole = (double)(divided.ranges * divided.items * divided.item_elements) * element;
    Link link;
    TRY(link_in_tensor_group(m, input, &link));
    *seconds = halves * (ranks - 1) * (link.latency_s + whole / ranks * link.s_per_byte);
    return OK;
}

Status rates_operation_s(const Machine *m, const ForecastInput *input, const Op *op,
                         OperationPart part, double *seconds)
{
    const Rates *rates = &m->rates;
    if (op_info(op->spec.kind)->communication == COMMUNICATES_ALWAYS)
        return exchange_time(m, input, &op->spec, part, seconds);
    double bytes = part_bytes(op, part), flops = part_flops(op, part);
    *seconds = bytes == 0 && flops == 0
                   ? 0
                   : rates->call_s + fmax(flops / rates->flops_per_s, bytes / rates->bytes_per_s);
    return OK;
}
