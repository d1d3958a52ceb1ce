/* Computes the order in which a rank adds its micro-batches, by a binary counter of partial sums.
 * The sums of complete subtrees of 2^j micro-batches are on a stack, the largest subtree at the
 * bottom. A new sum is added to the sum below it as long as both subtrees have the same size. After
 * the last micro-batch the remaining sums are added from the top of the stack down. This is the
 * tree in which neighbours 2i and 2i+1 are added, and a last summand without a neighbour moves up a
 * level. */
#include "parallel.h"

int tree_levels(int micro_batches)
{
    int levels = 1;
    for (int64_t full = 1; full < micro_batches; full *= 2) ++levels;
    return levels;
}

TreeStep tree_step(int micro, int micro_batches)
{
    TreeStep step = {.write = __builtin_popcount((unsigned)micro)};
    /* number of additions: the trailing ones of `micro`, which are the carries of the counter;
     * after the last micro-batch, all additions down to arena 0 */
    int joins = micro == micro_batches - 1 ? step.write : __builtin_ctz(~(unsigned)micro);
    for (int top = step.write; step.join_count < joins; --top) step.to[step.join_count++] = top - 1;
    return step;
}

int micro_batches_a_replica(int micro_batches_global, int dp)
{
    return (micro_batches_global - 1) / dp + 1;
}
