/* The operations' interface to oneDNN. Behind it are dnnl.c, dnnl_format.c, dnnl_kernel.c and
 * dnnl_own.c, which include oneDNN's header, and dnnl_api.c, which hides which of its two C APIs
 * (2.x, 3.x) it was built against. A Format describes how a tensor lies in memory; `any` leaves
 * that to the kernel. A Kernel is one primitive: planned (formats and scratch size known; cheap),
 * built (code generated, memory objects made), then run with pointers only. If oneDNN has no kernel
 * as fast for the processor, a Kernel runs weft's own code (dnnl_own.c). Kernels name their tensors
 * by role, the same in all three directions: X, W, B and Y are values in forward, and gradients
 * where a direction reads or writes gradients. */
#ifndef WEFT_TENSOR_CPU_DNNL_H
#define WEFT_TENSOR_CPU_DNNL_H

#include "tensor.h"

enum { FORMAT_DIMS = 5 };
typedef struct Format Format;
typedef struct Kernel Kernel;
/* oneDNN's engine and stream */
typedef struct Dnnl Dnnl;

Status dnnl_new(Dnnl **dnnl);
void dnnl_free(Dnnl **dnnl);
/* the CPU backend's; borrowed */
Dnnl *cpu_dnnl(const Backend *backend);
void dnnl_versions(FILE *out);
/* "oneDNN 3.1.1 (64f6bcbcbab6)", the library that runs. */
void dnnl_version_text(char *out, size_t room);
/* Instruction sets that oneDNN uses, one bit each; fp32: only those that its fp32 kernels use. */
unsigned int dnnl_isa(bool fp32);
/* OK if oneDNN has fast bf16 kernels for this CPU; else ERR_CONFIG with the CPU's name. */
Status dnnl_bf16_check(void);
/* Floats in a vector register: 16 or 8 on x86 with AVX, 0 elsewhere. */
int dnnl_vector_floats(void);

/* The caller owns every Format. dim is in oneDNN's logical order: N C H W, O I H W, G O I H W.
 * type: DTYPE_F32 or DTYPE_BF16. */
Format *format_any(int ndim, const int64_t *dim, DType type);
Format *format_plain(int ndim, const int64_t *dim, DType type);
/* A 4-d activation with Desc's block: 1 plain, 8 and 16 blocked, C channels-last. If C itself is 8
 * or 16, both describe the same memory, and channels_last chooses that description. */
Format *format_image(Shape shape, int block, bool channels_last, DType type);
Format *format_copy(const Format *format);
void format_free(Format **format);
bool format_equal(const Format *a, const Format *b);
/* Whether the format is a permutation with zero padding, not a transform (Winograd). */
bool format_elementwise(const Format *format);
/* Copies format's elements to `plain` in the order of their indices; fp32, at most FORMAT_DIMS
 * dimensions. */
void format_unpack(const Format *format, const float *stored, float *plain);
/* Elements in memory, padding included. */
int64_t format_elements(const Format *format);
size_t format_bytes(const Format *format);
DType format_type(const Format *format);
/* Desc.block of a 4-d activation; 0 if Desc cannot express the format. */
int format_block(const Format *format, Shape shape);

typedef enum KernelKind {
    KERNEL_CONV_FORWARD,
    KERNEL_CONV_DATA,
    KERNEL_CONV_WEIGHT,
    KERNEL_DENSE_FORWARD,
    KERNEL_DENSE_DATA,
    KERNEL_DENSE_WEIGHT,
    /* copies X to Y */
    KERNEL_REORDER,
    KERNEL_KINDS
} KernelKind;
/* Channels per block of weft's own fp32 convolutions if they use oneDNN's vector width; 0: there
 * are none for this processor. */
int own_lanes(void);
typedef enum KernelRole { ROLE_X, ROLE_W, ROLE_B, ROLE_Y, ROLES } KernelRole;

typedef struct KernelSpec {
    KernelKind kind;
    /* formats by role, borrowed for the call; NULL: the kernel has no such tensor */
    const Format *role[ROLES];
    int stride[2], pad[2];
    /* convolutions: use Winograd kernels (winograd.h), which need x and y in blocks of a vector */
    bool winograd;
    /* convolutions: use the direct kernel that fits the shape (first_conv.h, depthwise.h) */
    bool direct;
    /* dense: use weft's own products; all formats are plain (dense_product.h) */
    bool product;
    /* forward: y = max(y, 0) */
    bool relu;
    /* backward: the forward kernel; borrowed for the call */
    const Kernel *hint;
} KernelSpec;

/* ERR_CONFIG if oneDNN has no such kernel. Owner: the caller. */
Status kernel_plan(Kernel **kernel, Dnnl *dnnl, const KernelSpec *spec);
/* borrowed from kernel */
const Format *kernel_format(const Kernel *kernel, KernelRole role);
/* oneDNN's name for the implementation; "own:..." for weft's own */
const char *kernel_name(const Kernel *kernel);
size_t kernel_scratch_bytes(const Kernel *kernel);
Status kernel_build(Kernel *kernel);
/* data[role]: pointers to the tensors; scratch: kernel_scratch_bytes. Dies if oneDNN fails. */
void kernel_run(Kernel *kernel, void *const data[ROLES], void *scratch);
void kernel_free(Kernel **kernel);

#endif
