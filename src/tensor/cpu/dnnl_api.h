/* Private header of dnnl*.c: oneDNN's objects, and functions for the calls in which its two C APIs
 * (2.x, 3.x) differ. Only dnnl*.c include it, some through dnnl_slices.h, since it includes
 * oneDNN's header. */
#ifndef WEFT_TENSOR_CPU_DNNL_API_H
#define WEFT_TENSOR_CPU_DNNL_API_H

#include "dnnl.h"

#include <dnnl.h>

#define DNNL3 (DNNL_VERSION_MAJOR >= 3)

#if DNNL3
typedef const_dnnl_memory_desc_t MemoryDesc;
#else
typedef const dnnl_memory_desc_t *MemoryDesc;
#endif

struct Dnnl {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    /* oneDNN may divide sums among threads (BackendOptions.same_threads) */
    bool same_threads;
};
struct Format {
    /* 2.x: a struct; 3.x: an owned handle */
    dnnl_memory_desc_t md;
};
/* maximum number of tensors of a kernel: one of each role, and the scratchpad */
enum { KERNEL_ARGS = ROLES + 1 };
/* The functions of a kernel of weft, or of a kernel of oneDNN that is computed in parts. impl: the
 * kernel's plan. */
typedef struct OwnTable {
    /* NULL: the kernel has the name of Kernel.inner */
    const char *name;
    size_t (*scratch_bytes)(const void *impl);
    /* NULL: nothing to do */
    Status (*build)(void *impl);
    void (*run)(const void *impl, void *const data[ROLES], void *scratch);
    void (*free)(void **impl);
} OwnTable;

struct Kernel {
    KernelKind kind;
    /* borrowed from the backend */
    Dnnl *dnnl;
    /* functions and plan of a kernel of weft's or of a kernel in parts; own_impl is owned. NULL:
     * one primitive of oneDNN computes */
    const OwnTable *table;
    void *own_impl;
    /* oneDNN's kernel that is computed in parts, borrowed from own_impl; NULL: no parts */
    const Kernel *inner;
    /* oneDNN's objects, owned; unused if table is set */
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive;
    /* formats of the tensors and of the scratchpad; owned */
    Format *role[ROLES], *scratch;
    /* the primitive's arguments, and the role of each; ROLES is the scratchpad */
    int arg_count, arg_role[KERNEL_ARGS];
    dnnl_exec_arg_t arg[KERNEL_ARGS];
    /* addresses that the arguments' memory objects have now */
    void *data[KERNEL_ARGS];
};

/* Returns the text of an error. */
const char *onednn_text(dnnl_status_t status);
/* Ends the job with the text of the error unless status is success. */
void onednn_must(dnnl_status_t status, const char *call);
/* Returns oneDNN's description, borrowed; NULL if format is NULL. */
MemoryDesc onednn_desc(const Format *format);
/* Make a format, owned by the caller: from a description, which is copied, or from a tag. */
Format *format_clone(MemoryDesc desc);
Format *format_tagged(int ndim, const int64_t *dim, DType type, dnnl_format_tag_t tag);
/* Writes a format's logical dimensions to dim[FORMAT_DIMS]; returns how many there are. */
int onednn_dims(const Format *format, int64_t *dim);
/* Describes the memory order of a format: for each dimension the stride, in elements, from one of
 * its blocks to the next (from one index to the next if it has no blocks), and the blocks,
 * outermost first, each with its length and its dimension. Returns the number of blocks. */
int onednn_blocks(const Format *format, int64_t *stride, int64_t *length, int64_t *dim);
/* Make the primitive's description; the caller owns *pd. */
dnnl_status_t onednn_conv2d(dnnl_primitive_desc_t *pd, const Dnnl *dnnl, const KernelSpec *spec,
                            const_dnnl_primitive_attr_t attr);
dnnl_status_t onednn_dense(dnnl_primitive_desc_t *pd, const Dnnl *dnnl, const KernelSpec *spec,
                           const_dnnl_primitive_attr_t attr);
/* Returns the format of the first `count` elements of a tensor along its first dimension, which
 * must be the outermost in memory; NULL if oneDNN cannot describe them (3.x, if they are not whole
 * blocks). */
Format *format_part(const Format *format, int64_t count);
/* Plans a kernel that oneDNN computes with the calling thread's number of threads. */
Status kernel_plan_onednn(Kernel **kernel, Dnnl *dnnl, const KernelSpec *spec);
/* Plans a kernel that adds in the same order with any number of threads. If oneDNN's kernel does
 * not, it is computed in parts (dnnl_parts.c). *kernel must be NULL on entry. */
Status parts_plan(Kernel **kernel, Dnnl *dnnl, const KernelSpec *spec);
/* Plans *kernel as one of weft's kernels if spec selects one, or if it is a convolution with
 * CPU_PORTABLE; else returns false. */
bool own_kernel_plan(Kernel **kernel, Dnnl *dnnl, const KernelSpec *spec);
/* Appends y = max(y, 0) to the post-operations of a primitive. */
dnnl_status_t onednn_relu(dnnl_post_ops_t ops);

#endif
