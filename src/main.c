/* The main function of weft, a trainer of neural networks for clusters. All other code is in the
 * modules; src/cli has the verbs of the command line. */
#include "cli/cli.h"

#include <hdf5.h>
#include <malloc.h>

/* By default HDF5 closes open files at the exit of the program. This is turned off, because the
 * code that writes a file also closes it. If it could not close the file for lack of space, HDF5
 * would crash at the exit. */
int main(int argc, char **argv)
{
    H5dont_atexit();
    /* All threads allocate from malloc's first arena, because free memory of this arena returns to
     * the system. Free memory of other arenas would stay with the process, in addition to the
     * planned memory. */
    mallopt(M_ARENA_MAX, 1);
    return cli_main(argc, argv);
}
