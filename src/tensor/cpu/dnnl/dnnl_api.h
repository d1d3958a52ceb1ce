/* The private header of dnnl*.c and of dense/dnnl_slices*.c: oneDNN's objects, and functions for
 * the calls that differ between its two C APIs (2.x, 3.x). Only these files include it, those of
 * dense/ through dense/dnnl_slices.h, because it includes oneDNN's header. */
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
    /* true: oneDNN may divide sums among threads (BackendOptions.same_threads) */
    bool same_threads;
};
struct Format {
    /* 2.x: a struct; 3.x: an owned handle */
    dnnl_memory_desc_t md;
};
/* maximum number of a primitive's arguments: a tensor of each role, and the scratch memory */
enum { KERNEL_ARGS = ROLES + 1 };
/* The functions of one of weft's own kernels, or of a kernel of oneDNN that is computed in parts.
 * Their argument impl is the kernel's plan, Kernel.own_impl. */
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
    /* functions of one of weft's own kernels, or of a kernel in parts; NULL: the kernel is one
     * primitive of oneDNN */
    const OwnTable *table;
    /* plan of such a kernel, owned; NULL without a table */
    void *own_impl;
    /* oneDNN's kernel that is computed in parts, borrowed from own_impl; NULL: no parts */
    const Kernel *inner;
    /* oneDNN's objects, owned; NULL if `table` is set */
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive;
    /* format of each role's tensor; owned */
    Format *role[ROLES];
    /* format of the primitive's scratch memory; owned */
    Format *scratch;
    /* number of the primitive's arguments */
    int arg_count;
    /* role of each argument; ROLES: the scratch memory */
    int arg_role[KERNEL_ARGS];
    dnnl_exec_arg_t arg[KERNEL_ARGS];
    /* address that each argument's memory object has now */
    void *data[KERNEL_ARGS];
};

/* Returns the text of an error of oneDNN. */
const char *onednn_text(dnnl_status_t status);
/* Unless status is success, ends the job with the text of the error. call: name of oneDNN's
 * function. */
void onednn_must(dnnl_status_t status, const char *call);
/* Returns oneDNN's description, borrowed; NULL if format is NULL. */
MemoryDesc onednn_desc(const Format *format);
/* Make a format from a description, which is copied, or from a tag of oneDNN. Owner: the caller. */
Format *format_clone(MemoryDesc desc);
Format *format_tagged(int ndim, const int64_t *dim, DType type, dnnl_format_tag_t tag);
/* Writes a format's logical dimensions to dim[FORMAT_DIMS]; returns how many there are. */
int onednn_dims(const Format *format, int64_t *dim);
/* Describes the memory order of a format. A format has blocks, each with a length and a dimension,
 * which are written to length and dim, the outermost block first. stride[d]: elements from one
 * block of dimension d to the next, or from one index to the next if dimension d has no blocks.
 * Returns the number of blocks. */
int onednn_blocks(const Format *format, int64_t *stride, int64_t *length, int64_t *dim);
/* Make the description of a primitive. Owner of *pd: the caller. */
dnnl_status_t onednn_conv2d(dnnl_primitive_desc_t *pd, const Dnnl *dnnl, const KernelSpec *spec,
                            const_dnnl_primitive_attr_t attr);
dnnl_status_t onednn_dense(dnnl_primitive_desc_t *pd, const Dnnl *dnnl, const KernelSpec *spec,
                           const_dnnl_primitive_attr_t attr);
/* Returns the format of the first `count` elements of a tensor along its first dimension, which
 * must be the outermost in memory. NULL if oneDNN cannot describe them (3.x, if they are not
 * complete blocks). Owner: the caller. */
Format *format_part(const Format *format, int64_t count);
/* Plans a kernel that is one primitive of oneDNN, for the number of threads of the calling
 * thread. */
Status kernel_plan_onednn(Kernel **kernel, Dnnl *dnnl, const KernelSpec *spec);
/* Plans a kernel that adds in the same order with any number of threads. If oneDNN's kernel does
 * not, it is computed in parts (dnnl_parts.c). *kernel must be NULL on entry. */
Status parts_plan(Kernel **kernel, Dnnl *dnnl, const KernelSpec *spec);
/* If spec selects one of weft's kernels, or is a convolution with CPU_PORTABLE, plans *kernel as
 * weft's kernel and returns true. Otherwise returns false. */
bool own_kernel_plan(Kernel **kernel, Dnnl *dnnl, const KernelSpec *spec);
/* Appends y = max(y, 0) to the post-operations of a primitive. */
dnnl_status_t onednn_relu(dnnl_post_ops_t ops);

#endif
