/* Estimates the cost of a sum by messages, and chooses the cheaper of all to all and halving.
 * Counts pieces as src/parallel/mpi moves them; calls no MPI. */
#include "halving.h"
#include "parallel/sums.h"

/* PIECE: approximate upper limit for the floats of a piece per rail (SumShape). Several pieces of
 * this size fit into memory, so that they can overlap. PIECE_LEAST: lower limit for the same
 * number. In a smaller piece the cost of messages exceeds the gain from overlap. LINE_FLOATS:
 * floats of a cache line. */
enum { PIECE = 1 << 19, PIECE_LEAST = 1 << 16, LINE_FLOATS = 16 };

int sum_pieces_in_flight(int width, int64_t arena_elements)
{
    int64_t pieces = arena_elements / ((int64_t)PIECE_LEAST * width);
    return pieces < 1 ? 1 : pieces > SUM_PIECES_IN_FLIGHT ? SUM_PIECES_IN_FLIGHT : (int)pieces;
}

/* Adds one cache line, because the bounds of slices are rounded up to cache lines. */
int64_t sum_slice_elements(int ranks, int width, int64_t arena_elements)
{
    int64_t most = (int64_t)PIECE * width;
    int64_t piece = arena_elements / sum_pieces_in_flight(width, arena_elements);
    if (piece > most) piece = most;
    return (piece + ranks - 1) / ranks + LINE_FLOATS;
}

int64_t sum_piece_elements(int ranks, int width, int64_t arena_elements)
{
    int64_t slice = sum_slice_elements(ranks, width, arena_elements);
    /* a slice exceeds an even share by at most one cache line */
    return (slice > LINE_FLOATS + 1 ? slice - LINE_FLOATS : 1) * ranks;
}

/* Returns whether halving differs from all to all. They are the same on a rail of one or two ranks
 * and, for a push, on a rail with an odd number of ranks. */
static bool can_halve(const SumShape *shape)
{
    int rail = shape->ranks / shape->width;
    return rail > 2 && (!shape->is_push || halving_group(rail) > 1);
}

/* Messages and rounds of the ranks of a rail in one phase of a piece. */
typedef struct Load {
    /* messages of the busiest rank */
    int most;
    /* rounds that follow each other */
    int rounds;
    /* mean number of messages per rank */
    double mean;
} Load;

static Load load_of(SumAlgorithm algorithm, int rail, bool push)
{
    int group = halving_group(rail), other_groups = rail / group - 1;
    if (algorithm == COMM_ALL_TO_ALL) return (Load){rail - 1, 1, rail - 1};
    if (push) {
        int rounds = halving_rounds(group), messages = rounds + other_groups;
        return (Load){messages, rounds + (other_groups > 0), messages};
    }
    return (Load){halving_most_sends(rail), halving_rounds(rail),
                  (double)halving_all_sends(rail) / rail};
}

/* Returns the waiting time of one phase, in thirds of a link's latency. */
static double waits_of(Load load, double pieces)
{
    return 2 * load.rounds + pieces * (load.most + load.mean) / 2;
}

int64_t sum_range_elements(int ranks, int width, int64_t arena_elements)
{
    return sum_piece_elements(ranks, width, arena_elements) / width;
}

static int64_t divide_up(int64_t all, int64_t part)
{
    return (all + part - 1) / part;
}

/* Returns the number of pieces if each piece is a slice of every shard (sum_by_slices). */
static int64_t count_slice_pieces(const SumShape *s)
{
    return divide_up(s->longest, sum_slice_elements(s->ranks, s->width, s->arena_elements));
}

/* Returns the number of pieces if each piece is a consecutive range. */
static int64_t count_range_pieces(const SumShape *s)
{
    return divide_up(s->elements, sum_range_elements(s->ranks, s->width, s->arena_elements));
}

bool sum_by_slices(const SumShape *shape, SumAlgorithm algorithm)
{
    if (shape->longest == 0) return false;
    int rail = shape->ranks / shape->width;
    bool exchanges = algorithm == COMM_ALL_TO_ALL || (shape->is_push && halving_group(rail) < rail);
    return exchanges || count_slice_pieces(shape) < count_range_pieces(shape);
}

int64_t sum_pieces(const SumShape *shape, SumAlgorithm algorithm)
{
    if (shape->longest > 0)
        return sum_by_slices(shape, algorithm) ? count_slice_pieces(shape)
                                               : count_range_pieces(shape);
    return divide_up(shape->elements,
                     sum_piece_elements(shape->ranks, shape->width, shape->arena_elements));
}

SumCost sum_cost(const SumShape *shape, SumAlgorithm algorithm, Link link)
{
    int rail = shape->ranks / shape->width, phases = shape->collect + shape->spread;
    int64_t pieces = sum_pieces(shape, algorithm);
    Load load = load_of(algorithm, rail, shape->is_push);
    double bytes = (double)shape->elements / shape->width * sizeof(float) * (rail - 1) / rail;
    int64_t most = algorithm == COMM_ALL_TO_ALL || shape->is_push
                       ? phases * load.most
                       : halving_most_sent(rail, shape->collect, shape->spread);
    double phase_s = link.latency_s / 3 * waits_of(load, (double)pieces) + bytes * link.s_per_byte;
    return (SumCost){.pieces = pieces,
                     .messages = pieces * most,
                     .mean_messages = (double)(phases * pieces) * load.mean,
                     .partners = load.most,
                     .rounds = phases * load.rounds,
                     .bytes = phases * bytes,
                     .seconds = phases * phase_s};
}

int64_t sum_halving_from(int rail)
{
    Load halving = load_of(COMM_HALVING, rail, false), all = load_of(COMM_ALL_TO_ALL, rail, false);
    /* Both waiting times are linear functions of the number of pieces. saved: time that halving
     * saves per piece; more: time that halving adds whatever the number of pieces. Both times are
     * equal at more / saved pieces. */
    double saved =
        (waits_of(all, 1) - waits_of(all, 0)) - (waits_of(halving, 1) - waits_of(halving, 0));
    double more = waits_of(halving, 0) - waits_of(all, 0);
    return saved > 1e-9 ? (int64_t)(more / saved) + 1 : INT64_MAX;
}

/* Returns waits_of one phase of the operation, with its number of pieces. */
static double waits_by(const SumShape *shape, SumAlgorithm algorithm)
{
    Load load = load_of(algorithm, shape->ranks / shape->width, shape->is_push);
    return waits_of(load, (double)sum_pieces(shape, algorithm));
}

SumAlgorithm sum_algorithm(const SumShape *shape, SumAlgorithm requested)
{
    if (!can_halve(shape)) return COMM_ALL_TO_ALL;
    if (requested != COMM_BY_RULE) return requested;
    bool halves = waits_by(shape, COMM_HALVING) < waits_by(shape, COMM_ALL_TO_ALL);
    return halves ? COMM_HALVING : COMM_ALL_TO_ALL;
}
