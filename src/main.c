/* weft: trains neural networks on clusters. Everything is in the modules; the verbs are in
 * src/cli. */
#include "cli/cli.h"

#include <hdf5.h>

/* Each file is closed where it has been written. What HDF5 could not write and close, for want of
 * space, it must not touch again at the program's end: it crashes there. */
int main(int argc, char **argv)
{
    H5dont_atexit();
    return cli_main(argc, argv);
}
