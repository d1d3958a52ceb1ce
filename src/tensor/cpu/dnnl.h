/* What the operations on oneDNN need of it, in our own words. Behind it are dnnl.c, dnnl_format.c,
 * dnnl_kernel.c and dnnl_own.c, which include oneDNN's header, and dnnl_api.c, which knows which of
 * its two C APIs (2.x, 3.x) it was built against. A Format says how a tensor lies in memory; `any`
 * leaves that to the kernel it is given to. A Kernel is one primitive: planned (formats and scratch
 * known, cheap), built (code generated, memory objects made), then run with pointers only. Where
 * oneDNN has no kernel as good for the processor, a Kernel is our own (dnnl_own.c). Kernels name
 * their tensors by role, the same in all three directions: X, W, B and Y stand for the values in
 * forward and for the gradients where a direction writes or reads gradients. */
#ifndef WEFT_TENSOR_CPU_DNNL_H
#define WEFT_TENSOR_CPU_DNNL_H

#include "tensor.h"

enum { FORMAT_DIMS = 5 };
typedef struct Format Format;
typedef struct Kernel Kernel;
/* engine and stream */
typedef struct Dnnl Dnnl;

Status dnnl_new(Dnnl **dnnl);
void dnnl_free(Dnnl **dnnl);
/* of a CPU backend; borrowed */
Dnnl *cpu_dnnl(const Backend *backend);
void dnnl_versions(FILE *out);
/* "oneDNN 3.1.1 (64f6bcbcbab6)", of the library that runs. */
void dnnl_version_text(char *out, size_t room);
/* The instructions that oneDNN takes, a bit each; fp32: those that its kernels of fp32 know. */
unsigned int dnnl_isa(bool fp32);
/* OK where oneDNN has fast kernels for bf16 on this CPU; else ERR_CONFIG, naming it. */
Status dnnl_bf16_check(void);
int dnnl_vector_floats(
    void); /* floats in a vector register: 16 or 8 on x86 with AVX, 0 elsewhere */

/* Owner of every Format: the caller. dim is in oneDNN's logical order: N C H W, O I H W, G O I H W.
 * type: DTYPE_F32 or DTYPE_BF16. */
Format *format_any(int ndim, const int64_t *dim, DType type);
Format *format_plain(int ndim, const int64_t *dim, DType type);
/* A 4-d activation in Desc's sense: 1 plain, 8 and 16 blocked, C channels-last. channels_last
 * prefers that reading where C is 8 or 16 itself and both describe the same memory. */
Format *format_image(Shape shape, int block, bool channels_last, DType type);
Format *format_copy(const Format *format);
void format_free(Format **format);
bool format_equal(const Format *a, const Format *b);
bool format_elementwise(
    const Format *format); /* a permutation with zero padding, not a transform (Winograd) */
/* plain: format's numbers in the order of their indices; fp32, FORMAT_DIMS at most. */
void format_unpack(const Format *format, const float *stored, float *plain);
int64_t format_elements(const Format *format); /* in memory, padding included */
size_t format_bytes(const Format *format);
DType format_type(const Format *format);
/* Desc.block of a 4-d activation, 0 where Desc cannot say it. */
int format_block(const Format *format, Shape shape);

typedef enum KernelKind {
    KERNEL_CONV_FORWARD,
    KERNEL_CONV_DATA,
    KERNEL_CONV_WEIGHT,
    KERNEL_DENSE_FORWARD,
    KERNEL_DENSE_DATA,
    KERNEL_DENSE_WEIGHT,
    /* X -> Y */
    KERNEL_REORDER,
    KERNEL_KINDS
} KernelKind;
/* Channels of a block of our own fp32 convolutions, where they have oneDNN's width; 0: there are
 * none for this processor. */
int own_lanes(void);
typedef enum KernelRole { ROLE_X, ROLE_W, ROLE_B, ROLE_Y, ROLES } KernelRole;

typedef struct KernelSpec {
    KernelKind kind;
    /* borrowed for the call; NULL: the kernel has no such tensor */
    const Format *role[ROLES];
    int stride[2], pad[2];
    /* convolutions: by our own kernels (winograd.h), which take x and y in blocks of a vector */
    bool winograd;
    /* convolutions: a direct kernel of our own, which shape decides (first_conv.h,
     * depthwise.h) */
    bool direct;
    /* dense: by our own products, all plain (dense_product.h) */
    bool product;
    /* forward: y = max(y, 0) */
    bool relu;
    /* backward: the forward kernel; borrowed for the call */
    const Kernel *hint;
} KernelSpec;

/* ERR_CONFIG where oneDNN has no such kernel. Owner: the caller. */
Status kernel_plan(Kernel **kernel, Dnnl *dnnl, const KernelSpec *spec);
/* borrowed from kernel */
const Format *kernel_format(const Kernel *kernel, KernelRole role);
/* oneDNN's word for the implementation; "own:..." for ours */
const char *kernel_name(const Kernel *kernel);
size_t kernel_scratch_bytes(const Kernel *kernel);
Status kernel_build(Kernel *kernel);
/* data[role]: device pointers; scratch: kernel_scratch_bytes. Dies where oneDNN fails. */
void kernel_run(Kernel *kernel, void *const data[ROLES], void *scratch);
void kernel_free(Kernel **kernel);

#endif
