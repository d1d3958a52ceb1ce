/* The main function of weft, a trainer of neural networks for clusters. All other code is in the
 * modules; src/cli has the verbs of the command line. */
#include "cli/cli.h"

#include <hdf5.h>
#include <malloc.h>

/* HDF5 would close open files at the exit of the program. This is turned off: the code that writes
 * a file also closes it, and HDF5 crashes on a file that could not be written and closed for lack
 * of space. */
int main(int argc, char **argv)
{
    H5dont_atexit();
    /* All threads allocate from malloc's first arena, because it returns its free memory to the
     * system. The free memory of other arenas would stay with the process, in addition to the
     * planned memory. */
    mallopt(M_ARENA_MAX, 1);
    return cli_main(argc, argv);
}
