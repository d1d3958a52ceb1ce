/* `weft bench io`: argv holds what follows `io`. */
#ifndef WEFT_BENCH_IO_H
#define WEFT_BENCH_IO_H

#include "base.h"

Status bench_io(int argc, char **argv);

#endif
