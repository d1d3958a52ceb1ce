/* Shared by the files behind dnnl.h: oneDNN's objects, and functions for the calls in which its two
 * C APIs (2.x, 3.x) differ. Only dnnl*.c include this, and with it oneDNN's header. */
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
/* the tensors of each role, and the scratchpad */
enum { KERNEL_ARGS = ROLES + 1 };
/* The functions of one of weft's kernels; impl is its plan. */
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
    /* NULL if oneDNN computes; else oneDNN's fields are empty. own_impl: owned */
    const OwnTable *table;
    void *own_impl;
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive;
    Format *role[ROLES], *scratch;
    /* role of each argument; ROLES is the scratchpad */
    int arg_count, arg_role[KERNEL_ARGS];
    dnnl_exec_arg_t arg[KERNEL_ARGS];
    /* addresses that the memory objects have now */
    void *data[KERNEL_ARGS];
};

const char *onednn_text(dnnl_status_t status);
/* Dies with oneDNN's error text unless status is success. */
void onednn_must(dnnl_status_t status, const char *call);
/* borrowed; NULL if format is NULL */
MemoryDesc onednn_desc(const Format *format);
/* Owner: the caller. */
Format *format_clone(MemoryDesc desc);
Format *format_tagged(int ndim, const int64_t *dim, DType type, dnnl_format_tag_t tag);
/* Writes a format's logical dimensions to dim[FORMAT_DIMS]; returns how many there are. */
int onednn_dims(const Format *format, int64_t *dim);
/* Describes the memory order of a format: the stride of each dimension, counted in blocks, and the
 * blocks, outermost first, each with its length and its dimension. Returns the number of blocks. */
int onednn_blocks(const Format *format, int64_t *stride, int64_t *length, int64_t *dim);
/* Make the primitive's description; the caller owns *pd. */
dnnl_status_t onednn_conv2d(dnnl_primitive_desc_t *pd, const Dnnl *dnnl, const KernelSpec *spec,
                            const_dnnl_primitive_attr_t attr);
dnnl_status_t onednn_dense(dnnl_primitive_desc_t *pd, const Dnnl *dnnl, const KernelSpec *spec,
                           const_dnnl_primitive_attr_t attr);
/* Plans *kernel with weft's own code if spec asks for that; else returns false. */
bool own_kernel_plan(Kernel **kernel, Dnnl *dnnl, const KernelSpec *spec);
/* Adds y = max(y, 0) after the primitive. */
dnnl_status_t onednn_relu(dnnl_post_ops_t ops);

#endif
