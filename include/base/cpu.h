/* Which of the processor's vector instructions this process computes with. One choice for the
 * process, made before the first kernel runs; other instructions round sums elsewhere, so other
 * sets give other bits. Not collective. */
#ifndef WEFT_BASE_CPU_H
#define WEFT_BASE_CPU_H

#include "base/status.h"
#include "base/text.h"

#include <stdint.h>

/* From fewer to more instructions. base: what every processor of the kind has (SSE2 on x86-64, as
 * well as SSE4.1 inside oneDNN); avx2: AVX2 and FMA; avx512: AVX512F, BW, DQ, VL and, where the
 * processor has it, BF16, without AMX. */
#define CPU_SET_WORDS(W) W(CPU_BASE, "base") W(CPU_AVX2, "avx2") W(CPU_AVX512, "avx512")
#define CPU_WORDS(W)     W(CPU_AUTO, "auto") CPU_SET_WORDS(W)
typedef enum CpuSet { CPU_WORDS(LIST_CONSTANT) CPU_SETS } CpuSet;

/* "avx2". Borrowed */
const char *cpu_name(CpuSet set);
/* The most of them that this processor has; never CPU_AUTO. */
CpuSet cpu_best(void);
/* A number for the processor's newer instructions, those beyond the sets, too (AMX, BF16): the same
 * for processors with the same ones. */
uint32_t cpu_features(void);
/* "AMD EPYC 7763 64-Core Processor", or "" where the kernel does not say; out is returned. */
enum { CPU_MODEL = 128 };
char *cpu_model(char out[CPU_MODEL]);
/* What a process asked for `wanted` is to use: that; or for CPU_AUTO what the variable WEFT_CPU
 * says; or CPU_AUTO, which is all that the processor has. ERR_CONFIG where it lacks it, or the
 * variable is no such word. */
Status cpu_choose(CpuSet wanted, CpuSet *set);
/* Holds this process to a set; CPU_AUTO to none. Before its first kernel runs. */
void cpu_hold(CpuSet set);
/* The set that this process is held to, or CPU_AUTO. Without cpu_hold it is cpu_choose's answer to
 * CPU_AUTO, and a wrong variable ends the process. */
CpuSet cpu_held(void);
/* The set that kernels use: the one held to, or the best. */
CpuSet cpu_used(void);

#endif
