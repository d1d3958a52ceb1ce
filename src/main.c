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
    /* All threads allocate from malloc's first arena, because it returns its free memory to the
     * system. The free memory of other arenas would stay with the process, in addition to the
     * planned memory. */
    mallopt(M_ARENA_MAX, 1);
    return cli_main(argc, argv);
}
