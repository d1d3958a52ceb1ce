/* Deals the micro-batches of the global batch to the replicas. With DEAL_SUBTREES each run
 * (MicroRun) of 2^j micro-batches is a subtree of the tree over all micro-batches, because each
 * longer run before it has a multiple of 2^(j + 1) micro-batches. The runs of one size are
 * consecutive, and the runs of the next smaller size follow them. Two replicas with 7 micro-batches
 * each have runs of 4, 2 and 1:
 *
 *     replica      0        1         0     1      0  1
 *     micro-batch  0 to 3 | 4 to 7 || 8 9 | 10 11 || 12 | 13
 */
#include "parallel.h"

MicroRun deal_micro_run(Deal deal, int micro, int micro_batches)
{
    if (deal == DEAL_BLOCKS) return (MicroRun){0, micro_batches};
    if (deal == DEAL_TURNS) return (MicroRun){micro, 1};
    /* micro < micro_batches, so the highest bit in which the two numbers differ is set in
     * micro_batches; the value of this bit is the number of micro-batches in the run */
    int count = 1 << (31 - __builtin_clz((unsigned)(micro ^ micro_batches)));
    return (MicroRun){micro & ~(count - 1), count};
}

int deal_runs(Deal deal, int micro_batches)
{
    if (deal == DEAL_BLOCKS) return 1;
    return deal == DEAL_TURNS ? micro_batches : __builtin_popcount((unsigned)micro_batches);
}

int deal_number(Deal deal, int micro, int micro_batches, int rank, int dp)
{
    MicroRun run = deal_micro_run(deal, micro, micro_batches);
    return run.first * dp + rank * run.count + micro - run.first;
}

int deal_levels(Deal deal, int micro_batches, int dp)
{
    int levels = 1;
    for (int end = 0; end < micro_batches;) {
        int parts = __builtin_popcount((unsigned)end * (unsigned)dp);
        MicroRun run = deal_micro_run(deal, end, micro_batches);
        levels = parts > levels ? parts : levels;
        end = run.first + run.count;
    }
    return levels;
}
