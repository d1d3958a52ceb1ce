/* weft: trains neural networks on clusters. Everything is in the modules; the verbs are in
 * src/cli. */
#include "cli/cli.h"

int main(int argc, char **argv)
{
    return cli_main(argc, argv);
}
