/* Rates of a node's memory and files, for weft bench machine. All ranks measure at the same time,
 * so the rates are those of busy nodes. */
#include "bench.h"

#include "machine/measure.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* FILE_BYTES: bytes that the ranks of a node read or write together. SMALL_BYTES: files with fewer
 * bytes are not read, because a rate would be the time of a single call. LIMIT_S: time limit of
 * writing, of reading back, and of reading. */
static const double FILE_BYTES = 64e6, SMALL_BYTES = 16e6, LIMIT_S = 1.2;

/* Measures reading this rank's part of a file, of which all ranks read different parts.
 * *bytes_per_s: the rate; 0 if the file is small. Returns 0 or errno. */
static int read_rate(const World *world, const Machine *machine, const char *path,
                     double *bytes_per_s)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return errno;
    double size = (double)lseek(file, 0, SEEK_END);
    double part = floor(fmin(FILE_BYTES, size / machine->nodes) / machine->ranks);
    int error = 0;
    *bytes_per_s = 0;
    if (size >= SMALL_BYTES)
        error = file_read_rate(file, part * world->rank, part, LIMIT_S, bytes_per_s);
    close(file);
    return error;
}

/* Measures writing a file, syncing it and reading it back, as a save does, but with a file for each
 * rank. The file is in the folder, or in the nearest existing folder above it, and has no name.
 * *bytes_per_s: rate of all three; *read_back: rate of reading. Returns 0 or errno. */
static int save_rate(const World *world, const char *folder, double *bytes_per_s, double *read_back)
{
    bool above;
    double bytes, write;
    char *existing = file_nearest_folder(folder, &above);
    char *path = mem_format("%s/.weft-machine-XXXXXX", existing);
    int file = mkostemp(path, O_CLOEXEC);
    int error = file < 0 ? errno : 0;
    if (file >= 0) unlink(path);
    if (!error)
        error = file_write_rate(file, world->size, FILE_BYTES / world->node_size, LIMIT_S, &bytes,
                                &write);
    if (!error) error = file_read_rate(file, 0, bytes, LIMIT_S, read_back);
    if (!error) *bytes_per_s = 1 / (1 / write + 1 / *read_back);
    if (file >= 0) close(file);
    mem_free(&path);
    mem_free(&existing);
    return error;
}

/* True if no rank got an error; otherwise the log names one. Collective. */
static bool measured(const World *world, const char *what, const char *path, int error)
{
    int worst = (int)bench_max_ranks(world, error);
    if (worst && world->rank == 0)
        log_warn("%s: %s cannot be measured: %s; the file will have no rates of files", path, what,
                 strerror(worst));
    return !worst;
}

/* Returns the mean over the nodes of the sum of a node's rates. Collective. */
static double node_rate(const World *world, const Machine *machine, double mine)
{
    return bench_sum_ranks(world, mine) / machine->nodes;
}

static void measure_files(const World *world, const char *set, const char *folder, Machine *machine)
{
    double read = 0, save = 0, read_back = 0;
    if (!measured(world, "saving", folder, save_rate(world, folder, &save, &read_back))) return;
    int error = set ? read_rate(world, machine, set, &read) : 0;
    if (!measured(world, "reading", set ? set : "", error)) return;
    double set_rate = node_rate(world, machine, read);
    machine->save_bytes_per_s = node_rate(world, machine, save);
    machine->read_bytes_per_s = set_rate > 0 ? set_rate : node_rate(world, machine, read_back);
}

void bench_measure_rates(const World *world, const char *set, const char *folder, Machine *machine)
{
    double memory = memory_rate(world, machine->threads, machine->memory_bytes);
    machine->memory_bytes_per_s = node_rate(world, machine, memory);
    /* the measured steps had no copies between operations */
    if (machine->move_s_per_byte == 0)
        machine->move_s_per_byte = machine->ranks / machine->memory_bytes_per_s;
    world_barrier(world);
    measure_files(world, set, folder, machine);
}
