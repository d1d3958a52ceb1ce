/* What the files behind dnnl.h share: the objects as oneDNN has them, and what its two C APIs (2.x,
 * 3.x) say in other words. Only dnnl*.c include this, and so oneDNN's header. */
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
};
struct Format {
    /* 2.x: a struct; 3.x: an owned handle */
    dnnl_memory_desc_t md;
};
/* the roles and the scratchpad */
enum { KERNEL_ARGS = ROLES + 1 };
/* A kernel of our own: what it was planned to, `impl`, and how that is run. */
typedef struct OwnTable {
    const char *name;
    size_t (*scratch_bytes)(const void *impl);
    void (*run)(const void *impl, void *const data[ROLES], void *scratch);
    void (*free)(void **impl);
} OwnTable;

struct Kernel {
    KernelKind kind;
    /* borrowed from the backend */
    Dnnl *dnnl;
    /* NULL where oneDNN computes it; else what is oneDNN's is empty. own_impl: owned */
    const OwnTable *own;
    void *own_impl;
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive;
    Format *role[ROLES], *scratch;
    /* role of each argument; ROLES is the scratchpad */
    int arg_count, arg_role[KERNEL_ARGS];
    dnnl_exec_arg_t arg[KERNEL_ARGS];
    /* what the memory objects point to now */
    void *data[KERNEL_ARGS];
};

const char *onednn_text(dnnl_status_t status);
/* Dies with oneDNN's words for anything but success. */
void onednn_must(dnnl_status_t status, const char *call);
/* borrowed; NULL of NULL */
MemoryDesc onednn_desc(const Format *format);
/* Owner: the caller. */
Format *format_clone(MemoryDesc desc);
Format *format_tagged(int ndim, const int64_t *dim, DType type, dnnl_format_tag_t tag);
/* A format's logical dimensions, into dim of FORMAT_DIMS, and how many. */
int onednn_dims(const Format *format, int64_t *dim);
/* How a format's numbers lie: each dimension's stride in blocks, and the blocks, outermost first:
 * of which dimension and how long. Returns how many. */
int onednn_blocks(const Format *format, int64_t *stride, int64_t *length, int64_t *dim);
/* The primitive's description; *pd is the caller's. */
dnnl_status_t onednn_conv2d(dnnl_primitive_desc_t *pd, const Dnnl *dnnl, const KernelSpec *spec,
                            const_dnnl_primitive_attr_t attr);
dnnl_status_t onednn_dense(dnnl_primitive_desc_t *pd, const Dnnl *dnnl, const KernelSpec *spec,
                           const_dnnl_primitive_attr_t attr);
/* Plans *kernel if one of our own is asked for and this processor has it. */
bool own_kernel_plan(Kernel **kernel, Dnnl *dnnl, const KernelSpec *spec);
/* y = max(y, 0) after the primitive */
dnnl_status_t onednn_relu(dnnl_post_ops_t ops);

#endif
