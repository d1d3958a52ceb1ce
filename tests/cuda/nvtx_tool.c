/* Stands in for a profiler of NVTX ranges in tests. Loaded through NVTX_INJECTION64_PATH, it counts
 * the ranges of each name. When the process ends it prints "nvtx NAME COUNT" lines to standard
 * error, then the depth of ranges that were left open. */
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <string.h>

enum { NAMES = 64 };
static struct {
    const char *name;
    long count;
} ranges[NAMES];
static int depth;

static int push(const char *name)
{
    int i = 0;
    while (i < NAMES - 1 && ranges[i].name && strcmp(ranges[i].name, name) != 0) ++i;
    ranges[i].name = name;
    ranges[i].count++;
    return depth++;
}

static int pop(void)
{
    return --depth;
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table);

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table)
{
    const NvtxExportTableCallbacks *callbacks = get_table(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table = NULL;
    unsigned size = 0;
    if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size))
        return 0;
    if (size <= NVTX_CBID_CORE_RangePop) return 0;
    *table[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)push;
    *table[NVTX_CBID_CORE_RangePop] = (NvtxFunctionPointer)pop;
    return 1;
}

__attribute__((destructor)) static void report(void)
{
    for (int i = 0; i < NAMES && ranges[i].name; ++i)
        fprintf(stderr, "nvtx %s %ld\n", ranges[i].name, ranges[i].count);
    if (ranges[0].name) fprintf(stderr, "nvtx-depth %d\n", depth);
}
