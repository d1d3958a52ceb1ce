/* The set of vector instructions with which this process computes. It is chosen once, before the
 * first kernel runs, because different sets round sums differently: the last bits of results
 * differ. Not collective. */
#ifndef WEFT_BASE_CPU_H
#define WEFT_BASE_CPU_H

#include "base/status.h"
#include "base/text.h"

#include <stdint.h>

/* Sets in ascending order. base: the instructions of every processor of the architecture (on x86-64
 * SSE2, inside oneDNN SSE4.1); avx2: AVX2 and FMA; avx512: AVX512F, BW, DQ, VL and, if the
 * processor has it, BF16, without AMX. */
#define CPU_SET_WORDS(W) W(CPU_BASE, "base") W(CPU_AVX2, "avx2") W(CPU_AVX512, "avx512")
/* Values of train.cpu. auto: no restriction; portable: the set avx2 without oneDNN's sums, so that
 * results have the same bits on every x86-64 processor with AVX2 and FMA. */
#define CPU_WORDS(W) W(CPU_AUTO, "auto") CPU_SET_WORDS(W) W(CPU_PORTABLE, "portable")
typedef enum InstructionSet { CPU_WORDS(LIST_CONSTANT) CPU_SETS } InstructionSet;

/* Returns the name of a set, for example "avx2". Borrowed. */
const char *cpu_name(InstructionSet set);
/* Returns the largest set that this processor has; never CPU_AUTO. */
InstructionSet cpu_best(void);
/* Returns a hash of CPUID leaf 7. The bits of this leaf stand for AVX2, for later instruction sets
 * (also for AMX and others that are in no InstructionSet), and for other properties of the
 * processor. FMA is not among them. Processors with equal hashes have equal bits. If the
 * architecture is not x86-64, the hash is the same on all processors. */
uint32_t cpu_features(void);
/* Writes the name of the processor, "AMD EPYC 7763 64-Core Processor", or "" if the kernel does not
 * provide it. Returns out. */
enum { CPU_MODEL = 128 };
char *cpu_model(char out[CPU_MODEL]);
/* Sets *set to `wanted`. If `wanted` is CPU_AUTO, sets it to the set that the environment variable
 * WEFT_CPU names, or to CPU_AUTO (no restriction) if the variable is empty or not set. ERR_CONFIG:
 * the processor lacks the set, or the variable is none of CPU_WORDS. */
Status cpu_choose(InstructionSet wanted, InstructionSet *set);
/* Restricts this process to a set; CPU_AUTO: no restriction. Call it before the first kernel
 * runs. */
void cpu_set_limit(InstructionSet set);
/* Returns the set to which this process is restricted; CPU_AUTO: no restriction. If cpu_set_limit
 * has not been called, cpu_choose(CPU_AUTO) determines the set, and a wrong value of WEFT_CPU ends
 * the process. */
InstructionSet cpu_limit(void);
/* Returns the set that kernels use: the result of cpu_limit, except that CPU_AUTO becomes
 * cpu_best() and CPU_PORTABLE becomes CPU_AVX2. */
InstructionSet cpu_used(void);
/* Returns true if this process is restricted to CPU_PORTABLE. */
bool cpu_portable(void);

#endif
