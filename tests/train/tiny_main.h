/* The main function of tests that train under mpirun. It makes a folder for their files, and
 * removes the folder at the end. */
#ifndef WEFT_TESTS_TINY_MAIN_H
#define WEFT_TESTS_TINY_MAIN_H

#include "harness.h"
#include "tiny.h"
#include "train.h"

#include <ftw.h>

static char tiny_folder[] = "/tmp/weft-tiny-XXXXXX";
static int tiny_rank;

static int tiny_sum_ranks(int value)
{
    int sum;
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

static int tiny_remove(const char *path, const struct stat *about, int type, struct FTW *walk)
{
    (void)about, (void)type, (void)walk;
    return remove(path);
}

/* Runs the tests, [count], on all ranks. prepare: called on every rank when the folder has been
 * made; it makes the data on rank 0. Returns the exit code. */
static int tiny_main(int argc, char **argv, const char *suite, void (*prepare)(void),
                     const HarnessTest *test, int count)
{
    World world;
    if (world_init(&world, &argc, &argv) != OK) return 2;
    tiny_rank = world.rank;
    train_use_words();
    log_init(false);
    if (world.rank == 0 && !mkdtemp(tiny_folder)) return 2;
    world_bcast(&world, tiny_folder, sizeof tiny_folder, 0);
    prepare();
    world_barrier(&world);
    int bad = harness_run(suite, test, count, world.rank, tiny_sum_ranks);
    world_barrier(&world);
    if (world.rank == 0) nftw(tiny_folder, tiny_remove, 16, FTW_DEPTH | FTW_PHYS);
    world_fini(&world);
    return bad;
}

#define TINY_MAIN(suite, prepare, ...)                                                             \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        static const HarnessTest tests[] = {__VA_ARGS__};                                          \
        return tiny_main(argc, argv, suite, prepare, tests,                                        \
                         (int)(sizeof tests / sizeof tests[0]));                                   \
    }

#endif
