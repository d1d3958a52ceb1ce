/* oneDNN's engine and versions, and the instruction sets that it uses on this processor. */
#include "dnnl_api.h"

#include <string.h>

/* Limits oneDNN to the instruction set of train.cpu. oneDNN accepts a limit only once, before its
 * first kernel. With CPU_PORTABLE no limit is set, because oneDNN then only copies memory. */
static Status limit_isa(void)
{
#if defined(__x86_64__)
    static const dnnl_cpu_isa_t isa[] = {[CPU_BASE] = dnnl_cpu_isa_sse41,
                                         [CPU_AVX2] = dnnl_cpu_isa_avx2,
                                         [CPU_AVX512] = dnnl_cpu_isa_avx512_core_bf16};
    static InstructionSet limited = CPU_AUTO;
    InstructionSet limit = cpu_limit();
    if (limit == limited || limit == CPU_AUTO || limit == CPU_PORTABLE) return OK;
    dnnl_status_t status = dnnl_set_max_cpu_isa(isa[limit]);
    if (status != dnnl_success)
        return fail(ERR_CONFIG, "train.cpu: %s: oneDNN already uses other instructions",
                    cpu_name(limit));
    limited = limit;
#endif
    return OK;
}

Status dnnl_new(Dnnl **dnnl, bool same_threads)
{
    TRY(limit_isa());
    *dnnl = mem_new(sizeof **dnnl);
    (*dnnl)->same_threads = same_threads;
    dnnl_status_t status = dnnl_engine_create(&(*dnnl)->engine, dnnl_cpu, 0);
    if (status == dnnl_success)
        status = dnnl_stream_create(&(*dnnl)->stream, (*dnnl)->engine, dnnl_stream_default_flags);
    if (status == dnnl_success) return OK;
    dnnl_free(dnnl);
    return fail(ERR_CONFIG, "oneDNN cannot create a CPU engine: %s", onednn_text(status));
}

void dnnl_free(Dnnl **dnnl)
{
    if (!*dnnl) return;
    if ((*dnnl)->stream) onednn_must(dnnl_stream_destroy((*dnnl)->stream), "dnnl_stream_destroy");
    if ((*dnnl)->engine) onednn_must(dnnl_engine_destroy((*dnnl)->engine), "dnnl_engine_destroy");
    mem_free(dnnl);
}

void dnnl_versions(FILE *out)
{
    const dnnl_version_t *v = dnnl_version();
    fprintf(out, "oneDNN %d.%d.%d (built against %d.%d.%d)\n", v->major, v->minor, v->patch,
            DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR, DNNL_VERSION_PATCH);
}

void dnnl_version_text(char *out, size_t room)
{
    const dnnl_version_t *v = dnnl_version();
    snprintf(out, room, "oneDNN %d.%d.%d (%.12s)", v->major, v->minor, v->patch, v->hash);
}

unsigned int dnnl_isa(bool fp32)
{
#if defined(__x86_64__)
    unsigned int all = (unsigned int)dnnl_get_effective_cpu_isa();
    return fp32 ? all & (unsigned int)dnnl_cpu_isa_avx512_core : all;
#else
    (void)fp32;
    return 0;
#endif
}

int dnnl_vector_floats(void)
{
#if defined(__x86_64__)
    dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
    if (isa & dnnl_cpu_isa_avx512_core & ~dnnl_cpu_isa_avx2) return 16;
    if (isa & dnnl_cpu_isa_avx & ~dnnl_cpu_isa_sse41) return 8;
#endif
    return 0;
}

Status dnnl_bf16_check(void)
{
    char name[CPU_MODEL];
    TRY(limit_isa());
    InstructionSet limit = cpu_limit();
    if (limit == CPU_PORTABLE)
        return fail(ERR_CONFIG,
                    "train.precision: bf16 has no portable kernels, and train.cpu or WEFT_CPU asks "
                    "for portable: use train.precision=fp32, or another value of train.cpu");
    if (limit != CPU_AUTO && limit < CPU_AVX512)
        return fail(ERR_CONFIG,
                    "train.precision: bf16 needs AVX512_BF16 or AMX, but train.cpu or WEFT_CPU "
                    "limits instructions to %s",
                    cpu_name(limit));
#if defined(__x86_64__)
    const int wanted = dnnl_cpu_isa_avx512_core_bf16;
    if (((int)dnnl_get_effective_cpu_isa() & wanted) == wanted) return OK;
#endif
    return fail(
        ERR_CONFIG,
        "train.precision: bf16 needs AVX512_BF16 or AMX, and this CPU (%s) lacks them: bf16 "
        "would be slower than fp32 there; use train.precision=fp32",
        *cpu_model(name) ? name : "of unknown name");
}
