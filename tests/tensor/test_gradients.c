/* Every operation that is not a matrix product, against a scalar reference in double: the output, and the gradients of
 * each input and parameter against finite differences of that reference. All layouts, instruction sets, thread counts,
 * in place where allowed, fewer rows than samples, odd sizes; padding must stay zero. */
#include "kernel_rig.h"
#include "tensor/cpu/simd/simd.h"

typedef struct Case Case;
typedef void (*Reference)(const Case *c, double *const x[], double *const w[], double *y);
struct Case {
    const char *name;
    OpSpec spec;
    Reference reference;
    int rows;
    double x_scale, tolerance;
};

