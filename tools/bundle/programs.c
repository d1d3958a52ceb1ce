/* The one program of a bundle: weft, or the test program that its first word names. Kernels and
 * HDF5 are in the bundle once that way. programs.h is the list that make writes:
 * PROGRAM("tests/parallel/test_sum_np2", its main's name). */
#include "cli/cli.h"

#include <string.h>

typedef int ProgramMain(int argc, char **argv);
#define PROGRAM(name, function) ProgramMain function;
#include "programs.h"
#undef PROGRAM

static const struct {
    const char *name;
    ProgramMain *run;
} programs[] = {
#define PROGRAM(name, function) {name, function},
#include "programs.h"
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof programs / sizeof *programs; ++i)
        if (!strcmp(argv[1], programs[i].name)) return programs[i].run(argc - 1, argv + 1);
    return cli_main(argc, argv);
}
