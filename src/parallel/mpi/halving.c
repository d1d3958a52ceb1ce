/* Who exchanges which slices with whom; no messages here. */
#include "halving.h"

int halving_rounds(int ranks)
{
    bool power = ranks > 0 && (ranks & (ranks - 1)) == 0;
    return power ? __builtin_ctz((unsigned)ranks) : 0;
}

int halving_mirrored(int i, int bits)
{
    int mirrored = 0;
    for (int b = 0; b < bits; ++b) mirrored |= (i >> b & 1) << (bits - 1 - b);
    return mirrored;
}

HalvingRound halving_round(int rank, int round, bool collect)
{
    int step = 2 << round, peer = rank ^ 1 << round, mine = rank & (step - 1),
        theirs = peer & (step - 1);
    return (HalvingRound){.peer = peer,
                          .sent = collect ? theirs : mine,
                          .received = collect ? mine : theirs,
                          .step = step};
}
