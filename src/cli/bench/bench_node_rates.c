/* Rates of a node's memory and files, for weft bench machine. All ranks measure at the same time,
 * so the rates are those of busy nodes. */
#include "bench.h"

#include "machine/measure.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* bytes that the ranks of a node read or write together; time limit of reading, and of writing */
static const double FILE_BYTES = 64e6, LIMIT_S = 1.2;

/* Measures reading this rank's part of a file. A file with fewer than FILE_BYTES bytes a node is
 * read from its beginning by each rank. Returns 0 or errno. */
static int read_rate(const World *world, const char *path, double *bytes_per_s)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return errno;
    double part = FILE_BYTES / world->node_size, size = (double)lseek(file, 0, SEEK_END);
    double begin = part * world->rank + part <= size ? part * world->rank : 0;
    int error = file_read_rate(file, begin, part, LIMIT_S, bytes_per_s);
    close(file);
    return error;
}

/* Measures writing a file, syncing it and reading it back, as a save does. The file is in the
 * folder, or in the nearest existing folder above it, and has no name. Returns 0 or errno. */
static int save_rate(const World *world, const char *folder, double *bytes_per_s)
{
    bool above;
    double bytes, write = 0, read = 0;
    char *existing = file_nearest_folder(folder, &above);
    char *path = mem_format("%s/.weft-machine-XXXXXX", existing);
    int file = mkostemp(path, O_CLOEXEC);
    int error = file < 0 ? errno : 0;
    if (file >= 0) unlink(path);
    if (!error)
        error = file_write_rate(file, FILE_BYTES / world->node_size, LIMIT_S, &bytes, &write);
    if (!error) error = file_read_rate(file, 0, bytes, LIMIT_S, &read);
    if (!error) *bytes_per_s = 1 / (1 / write + 1 / read);
    if (file >= 0) close(file);
    mem_free(&path);
    mem_free(&existing);
    return error;
}

/* Returns the mean over the nodes of their ranks' rates; 0 if a rank got an error, which the log
 * then names. Collective. */
static double node_rate(const World *world, const Machine *machine, const char *what,
                        const char *path, int error, double mine)
{
    int worst = (int)bench_max_ranks(world, error);
    double sum = bench_sum_ranks(world, mine);
    if (worst && world->rank == 0)
        log_warn("%s: %s cannot be measured: %s", path, what, strerror(worst));
    return worst ? 0 : sum / machine->nodes;
}

void bench_measure_rates(const World *world, const char *set, const char *folder, Machine *machine)
{
    double read = 0, save = 0;
    double memory = memory_rate(world, machine->threads, machine->memory_bytes);
    machine->memory_bytes_per_s = bench_sum_ranks(world, memory) / machine->nodes;
    /* the measured steps had no copies between operations */
    if (machine->move_s_per_byte == 0)
        machine->move_s_per_byte = machine->ranks / machine->memory_bytes_per_s;
    world_barrier(world);
    int error = read_rate(world, set, &read);
    machine->read_bytes_per_s = node_rate(world, machine, "reading", set, error, read);
    error = save_rate(world, folder, &save);
    machine->save_bytes_per_s = node_rate(world, machine, "writing", folder, error, save);
    if (machine->save_bytes_per_s == 0) machine->read_bytes_per_s = 0;
}
