/* Finds the available sets of vector instructions, and keeps the set to which this process is
 * restricted. */
#include "base.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

static const char *const words[] = {CPU_WORDS(LIST_NAME)};
/* instructions that the processor needs for each set, for messages */
static const char *const needs[CPU_SETS] = {[CPU_BASE] = "",
                                            [CPU_AVX2] = "AVX2 and FMA",
                                            [CPU_AVX512] = "AVX512F, BW, DQ and VL",
                                            [CPU_PORTABLE] = "AVX2 and FMA"};

/* an InstructionSet; CPU_SETS: not chosen yet */
static atomic_int limit = CPU_SETS;

const char *cpu_name(InstructionSet set)
{
    return words[set];
}

InstructionSet cpu_best(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return CPU_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return CPU_AVX2;
#endif
    return CPU_BASE;
}

Status cpu_choose(InstructionSet wanted, InstructionSet *set)
{
    const char *variable = getenv("WEFT_CPU"), *source = "train.cpu";
    *set = wanted;
    if (wanted == CPU_AUTO && variable && *variable) {
        source = "the variable WEFT_CPU";
        int word = 0;
        while (word < CPU_SETS && strcmp(words[word], variable) != 0) ++word;
        if (word == CPU_SETS)
            return fail(ERR_CONFIG, "the variable WEFT_CPU is '%s': it is one of %s", variable,
                        LIST_TEXT(CPU_WORDS));
        *set = (InstructionSet)word;
    }
    if ((*set == CPU_PORTABLE ? CPU_AVX2 : *set) <= cpu_best()) return OK;
    return fail(ERR_CONFIG,
                "%s: %s needs %s, which this processor lacks: auto takes what it has (%s)", source,
                cpu_name(*set), needs[*set], cpu_name(cpu_best()));
}

uint32_t cpu_features(void)
{
    unsigned int word[2][4] = {{0}};
#if defined(__x86_64__)
    for (unsigned int i = 0; i < 2; ++i)
        __get_cpuid_count(7, i, &word[i][0], &word[i][1], &word[i][2], &word[i][3]);
#endif
    return (uint32_t)hash_bytes(word, sizeof word);
}

char *cpu_model(char out[CPU_MODEL])
{
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "r");
    *out = 0;
    while (f && !*out && fgets(line, sizeof line, f)) {
        const char *colon = strstr(line, ": ");
        if (strncmp(line, "model name", 10) == 0 && colon)
            snprintf(out, CPU_MODEL, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
    }
    if (f) fclose(f);
    return out;
}

void cpu_set_limit(InstructionSet set)
{
    atomic_store(&limit, (int)set);
}

/* Threads that call this at the same time store the same set. */
InstructionSet cpu_limit(void)
{
    int now = atomic_load_explicit(&limit, memory_order_relaxed);
    if (now != CPU_SETS) return (InstructionSet)now;
    InstructionSet set = CPU_AUTO;
    Status status = cpu_choose(CPU_AUTO, &set);
    if (status != OK) die_as(status, "%s", fail_message());
    cpu_set_limit(set);
    return set;
}

InstructionSet cpu_used(void)
{
    InstructionSet set = cpu_limit();
    if (set == CPU_PORTABLE) return CPU_AVX2;
    return set == CPU_AUTO ? cpu_best() : set;
}

bool cpu_portable(void)
{
    return cpu_limit() == CPU_PORTABLE;
}
