/* weft trains neural networks on clusters. All code is in the modules; the command-line verbs are
 * in src/cli. */
#include "cli/cli.h"

#include <hdf5.h>
#include <malloc.h>

/* Every HDF5 file is closed by the code that wrote it. HDF5's own clean-up at exit is turned off
 * because it crashes on a file that could not be written and closed for lack of space. */
int main(int argc, char **argv)
{
    H5dont_atexit();
    /* All threads allocate from one arena, whose free memory goes back to the system; what is free
     * at the end of other arenas stays with the process, beyond the planned memory. */
    mallopt(M_ARENA_MAX, 1);
    return cli_main(argc, argv);
}
