/* The operations' interface to oneDNN, implemented by the files dnnl*.c of this folder. Only they
 * and dense/dnnl_slices*.c include oneDNN's header, and only dnnl_api.h and dnnl_api.c depend on
 * whether weft was built against oneDNN's C API 2.x or 3.x.
 *
 * A Format is a memory layout; if it is made by format_any, the kernel chooses the layout. A
 * Kernel computes one direction of a layer, or a reorder. It is a primitive of oneDNN, or several
 * primitives on parts of the tensors (dnnl_parts.c), or weft's own kernel (dnnl_own.c): weft's if
 * its KernelSpec selects it (winograd, direct, product), and for all convolutions with
 * CPU_PORTABLE. kernel_plan decides the formats and the size of the scratch memory, and is cheap.
 * kernel_build generates code and makes memory objects. After that, kernel_run needs only the
 * addresses of the tensors and of the scratch memory.
 *
 * A tensor has the same role (X, W, B or Y) in all three directions of a layer. The pointer of a
 * role is the tensor itself or, where a direction reads or writes the tensor's gradient, that
 * gradient. */
#ifndef WEFT_TENSOR_CPU_DNNL_H
#define WEFT_TENSOR_CPU_DNNL_H

#include "tensor.h"
#include "../simd/dense.h"

enum { FORMAT_DIMS = 5 };
typedef struct Format Format;
typedef struct Kernel Kernel;
/* oneDNN's engine and stream */
typedef struct Dnnl Dnnl;

/* Makes the engine and the stream. ERR_CONFIG if oneDNN cannot. same_threads: true: oneDNN may
 * divide sums among the threads, so that their bits depend on the number of threads
 * (BackendOptions). Owner: the caller. */
Status dnnl_new(Dnnl **dnnl, bool same_threads);
void dnnl_free(Dnnl **dnnl);
/* Returns the CPU backend's engine and stream; borrowed. */
Dnnl *cpu_dnnl(const Backend *backend);
/* Prints two versions of oneDNN: of the library that is loaded, and of the one that weft was built
 * against. */
void dnnl_versions(FILE *out);
/* Writes the version of the library that is loaded, such as "oneDNN 3.1.1 (64f6bcbcbab6)". */
void dnnl_version_text(char *out, size_t room);
/* Returns the instruction sets that oneDNN uses, as bits of dnnl_cpu_isa_t; 0 on processors other
 * than x86-64. fp32: true: only the sets that its fp32 kernels use. */
unsigned int dnnl_isa(bool fp32);
/* Fails with ERR_CONFIG if train.cpu excludes bf16, or if oneDNN has no fast bf16 kernels for this
 * CPU. */
Status dnnl_bf16_check(void);
/* Returns the number of floats in a vector register of oneDNN's kernels: 16 or 8 on x86 with AVX,
 * else 0. */
int dnnl_vector_floats(void);

/* Make a format whose layout the kernel chooses, and a format in plain order. dim: sizes in
 * oneDNN's order of dimensions: N C H W, O I H W, or G O I H W. type: DTYPE_F32 or DTYPE_BF16.
 * Owner: the caller. */
Format *format_any(int ndim, const int64_t *dim, DType type);
Format *format_plain(int ndim, const int64_t *dim, DType type);
/* Returns the format of a 4-d activation with this Desc.block: 1 is plain, 8 and 16 are blocked, C
 * is channels-last. If C is 8 or 16, one block of C channels and channels-last are the same memory,
 * and channels_last selects which of the two the format describes. Owner: the caller. */
Format *format_image(Shape shape, int block, bool channels_last, DType type);
Format *format_copy(const Format *format);
void format_free(Format **format);
bool format_equal(const Format *a, const Format *b);
/* Returns whether the format only permutes the elements and pads them with zeros. Formats of
 * transformed weights, such as Winograd's, do not. */
bool format_elementwise(const Format *format);
/* Copies the elements of `stored`, which has this format, to `plain` in plain order; fp32, at most
 * FORMAT_DIMS dimensions. */
void format_unpack(const Format *format, const float *stored, float *plain);
/* Returns the number of elements in memory, padding included. */
int64_t format_elements(const Format *format);
size_t format_bytes(const Format *format);
DType format_type(const Format *format);
/* Returns Desc.block of a 4-d activation with the format; 0 if Desc cannot express it. */
int format_block(const Format *format, Shape shape);

typedef enum KernelKind {
    KERNEL_CONV_FORWARD,
    /* gradient of x */
    KERNEL_CONV_DATA,
    /* gradients of the weight and the bias */
    KERNEL_CONV_WEIGHT,
    KERNEL_DENSE_FORWARD,
    KERNEL_DENSE_DATA,
    KERNEL_DENSE_WEIGHT,
    /* copies X to Y */
    KERNEL_REORDER,
    KERNEL_KINDS
} KernelKind;
/* Returns the number of channels in a block for weft's own fp32 convolutions, which is the number
 * of floats in a vector. 0: weft has no such kernels for this processor, or oneDNN's vectors have
 * another width (this does not matter with CPU_PORTABLE). */
int own_block_channels(void);
typedef enum KernelRole { ROLE_X, ROLE_W, ROLE_B, ROLE_Y, ROLES } KernelRole;

/* dnnl_product computes a part of p->out with oneDNN; it ignores bias, relu and slices. adds: true:
 * the product is added to p->out. Inside a parallel region, dnnl_product runs on the calling thread
 * alone.
 *
 * dnnl_product_prepare makes oneDNN generate the code for dnnl_product now. The code takes 4 MB; a
 * step must not allocate memory, and the plan must know all memory. Without this call, oneDNN would
 * generate most of the code when the first product of more than one row runs, and the rest when a
 * factor is transposed for the first time. */
void dnnl_product_prepare(void);
void dnnl_product(const DenseProduct *p, const DensePart *part, bool adds);

typedef struct KernelSpec {
    KernelKind kind;
    /* format of each role's tensor, borrowed for the call; NULL: the kernel has no such tensor */
    const Format *role[ROLES];
    int stride[2], pad[2];
    /* true (convolutions): use weft's Winograd kernels (conv/winograd.h); x and y are in blocks of
     * own_block_channels() channels */
    bool winograd;
    /* true (convolutions): use weft's direct kernel for the shape (conv/first_conv.h,
     * conv/depthwise.h, conv/conv_weight.h) */
    bool direct;
    /* true (dense): use dense/dense_product.h; all formats are fp32, and y is plain */
    bool product;
    /* dense with `product`: OpSpec.slices */
    SumSlices slices;
    /* true: the sums over inputs in forward are cut into slices; false: the sums over outputs in
     * dx */
    bool slices_inputs;
    /* true: forward applies relu to y */
    bool relu;
    /* backward directions: the forward kernel, borrowed for the call */
    const Kernel *hint;
} KernelSpec;

/* Plans a kernel. ERR_CONFIG if neither oneDNN nor weft has one for the spec. Owner: the caller. */
Status kernel_plan(Kernel **kernel, Dnnl *dnnl, const KernelSpec *spec);
/* Returns the format of a role's tensor, borrowed from the kernel. */
const Format *kernel_format(const Kernel *kernel, KernelRole role);
/* Returns the name of the implementation: oneDNN's name, or "own:..." for weft's. */
const char *kernel_name(const Kernel *kernel);
size_t kernel_scratch_bytes(const Kernel *kernel);
Status kernel_build(Kernel *kernel);
/* Runs a kernel that has been built. data[role]: pointer to the tensor of each role. A forward
 * kernel writes Y from X, W and B. A data kernel writes X (dx) from Y (dy) and W. A weight kernel
 * writes W (dw) and B (db) from X and Y (dy). A reorder writes Y from X. B is NULL without a bias.
 * scratch: kernel_scratch_bytes. Ends the job if oneDNN fails. */
void kernel_run(Kernel *kernel, void *const data[ROLES], void *scratch);
void kernel_free(Kernel **kernel);

#endif
