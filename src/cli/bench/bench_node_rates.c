/* Measures the rates of a node's memory and files, for weft bench machine. All ranks measure at the
 * same time, so the rates are those of busy nodes. */
#include "bench.h"

#include "machine/measure.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* FILE_BYTES: number of bytes that all ranks of a node together read or write. SMALL_BYTES: a file
 * with fewer bytes is not read, because the result would be the time of a single call. LIMIT_S:
 * time limit of each measurement: writing, reading back, and reading. */
static const double FILE_BYTES = 64e6, SMALL_BYTES = 16e6, LIMIT_S = 1.2;

/* Measures the rate of reading a file. The ranks read different parts of the file. *bytes_per_s:
 * rate of this rank; 0 if the file is small. Returns 0, or an errno value. */
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

/* Measures how long it takes to write a file, sync it and read it back, as a save does. Each rank
 * has its own file, which is unlinked as soon as it is open. The file is in the folder, or in the
 * nearest existing folder above it. *bytes_per_s: number of bytes, divided by the time of writing,
 * syncing and reading together. *read_back: rate of reading, in bytes per second. Returns 0, or an
 * errno value. */
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

/* Returns whether no rank has an error. If one has, logs a warning. error: errno of this rank's
 * measurement, or 0. Collective. */
static bool measured(const World *world, const char *what, const char *path, int error)
{
    int worst = (int)bench_max_ranks(world, error);
    if (worst && world->rank == 0)
        log_warn("%s: %s cannot be measured: %s; the file will have no rates of files", path, what,
                 strerror(worst));
    return !worst;
}

/* Returns the rate of a node: the sum over its ranks, as a mean over the nodes. mine: rate of this
 * rank. Collective. */
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
    /* 0: the measured steps had no copies between operations */
    if (machine->move_s_per_byte == 0)
        machine->move_s_per_byte = machine->ranks / machine->memory_bytes_per_s;
    world_barrier(world);
    measure_files(world, set, folder, machine);
}
