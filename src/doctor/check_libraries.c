/* Compares the program, its libraries and the processor model of all ranks. Versions are compared
 * by the text that libraries report. Another build of the same version may round differently, so
 * the loaded files are compared, too: each file that rank 0 has loaded, with the files of this name
 * on other ranks. The comparison is by a hash of the content; for a large file only pieces of it
 * are hashed. */
#include "measurements.h"
#include "private.h"

#include <link.h>
#include <string.h>
#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif

/* ---- versions ---- */

static void measure_versions(Doctor *d, void *mine)
{
    Versions *v = mine;
    const char *c_library = "";
#if defined(__GLIBC__)
    c_library = gnu_get_libc_version();
#endif
    snprintf(v->lines, sizeof v->lines,
             "%.1400s"
             "C library %s\n",
             d->options->versions, c_library);
}

/* Severity and remedy of a finding about a line of `weft --version` that differs between ranks. */
typedef struct LineKind {
    /* beginning of the lines of this kind; "" in the last row, for all lines that no row above
     * matches */
    const char *prefix;
    Severity severity;
    const char *remedy;
} LineKind;
static const LineKind line_kinds[] = {
    {"CPU kernels:", SEVERITY_FATAL,
     "train.cpu=avx2, or another set that all processors have, or nodes of one kind (sbatch "
     "-C)"},
    {"CUDA", SEVERITY_WARN, "nodes of one kind (sbatch -C), one driver on all"},
    {"", SEVERITY_FATAL, "one version on all nodes: module list; echo $LD_LIBRARY_PATH"},
};

/* Compares the texts a and b by lines. Sets line[0] to the first line of a that differs from b, and
 * line[1] to the line of b at that place. */
static void find_difference(const char *a, const char *b, char line[2][160])
{
    size_t x = 0, y = 0;
    do {
        x = strcspn(a, "\n");
        y = strcspn(b, "\n");
        if (x != y || strncmp(a, b, x) != 0) break;
        a += x + (a[x] != 0);
        b += y + (b[y] != 0);
    } while (*a || *b);
    snprintf(line[0], 160, "%.*s", (int)x, a);
    snprintf(line[1], 160, "%.*s", (int)y, b);
}

static void judge_versions(const Check *check, const Allocation *a, const void *all, Report *report)
{
    const Versions *v = all;
    const char *share, *usual = most_frequent_text(a, all, sizeof *v, 0, &share);
    char line[2][160];
    (void)check;
    report_set_summary(report, "%.*s%s", (int)strcspn(v[0].lines, "\n"), v[0].lines,
                       a->ranks > 1 ? " and the same libraries on all ranks" : "");
    for (int r = 0; r < a->ranks; ++r) {
        const LineKind *kind = line_kinds;
        if (!usual || !strcmp(v[r].lines, usual)) continue;
        find_difference(v[r].lines, usual, line);
        while (strncmp(line[0], kind->prefix, strlen(kind->prefix)) != 0) ++kind;
        report_add_rank(report, kind->severity, r, kind->remedy, "has '%s', %s ranks have '%s'",
                        line[0], share, line[1]);
    }
}

const Check check_versions = {
    .name = "versions",
    .threshold_meaning = "lines of weft --version that differ",
    .threshold = 0,
    .limit_s = 4,
    .bytes = sizeof(Versions),
    .measure = measure_versions,
    .judge = judge_versions,
};

/* ---- files ---- */

/* Adds a loaded file, with a hash of its size and content (file_describe). Called by
 * dl_iterate_phdr, first for the program, then for its libraries. */
static int add_file(struct dl_phdr_info *info, size_t size, void *user)
{
    Libraries *libraries = user;
    char content[128];
    (void)size;
    bool program = libraries->count == 0;
    const char *path = program ? "/proc/self/exe" : info->dlpi_name;
    const char *slash = strrchr(path, '/');
    if (!slash || libraries->count == LIBRARIES_MAX) return 0;
    struct LoadedFile *file = &libraries->file[libraries->count++];
    file_describe(path, content, sizeof content);
    snprintf(file->name, sizeof file->name, "%s", program ? "weft" : slash + 1);
    file->hash = hash_text(content);
    return 0;
}

static void measure_files(Doctor *d, void *mine)
{
    (void)d;
    dl_iterate_phdr(add_file, mine);
}

static const struct LoadedFile *find_file(const Libraries *libraries, const char *name)
{
    for (int i = 0; i < libraries->count; ++i)
        if (!strcmp(libraries->file[i].name, name)) return &libraries->file[i];
    return NULL;
}

/* Returns the hash that the files of this name have on more than half of the ranks with such a
 * file. If no hash has this majority, returns the hash of one of the files. The algorithm is MJRTY
 * (Boyer and Moore 1981). *share: result of most_or_other for the hash. */
static uint64_t majority_hash(const Allocation *a, const Libraries *l, const char *name,
                              const char **share)
{
    uint64_t hash = 0;
    int lead = 0, files = 0, alike = 0;
    for (int r = 0; r < a->ranks; ++r) {
        const struct LoadedFile *file = find_file(&l[r], name);
        if (!file) continue;
        if (lead == 0) hash = file->hash;
        lead += file->hash == hash ? 1 : -1;
    }
    for (int r = 0; r < a->ranks; ++r) {
        const struct LoadedFile *file = find_file(&l[r], name);
        files += file != NULL;
        alike += file && file->hash == hash;
    }
    *share = most_or_other(alike, files);
    return hash;
}

static void judge_files(const Check *check, const Allocation *a, const void *all, Report *report)
{
    const Libraries *l = all;
    (void)check;
    report_set_summary(report, "%d files%s", l[0].count,
                       a->ranks > 1 ? ", equal on all ranks that have them" : "");
    for (int i = 0; i < l[0].count; ++i) {
        const char *name = l[0].file[i].name;
        const char *share;
        uint64_t usual = majority_hash(a, l, name, &share);
        for (int r = 0; r < a->ranks; ++r) {
            const struct LoadedFile *file = find_file(&l[r], name);
            if (file && file->hash != usual)
                report_add_rank(report, i == 0 ? SEVERITY_FATAL : SEVERITY_WARN, r,
                                i == 0 ? "one program on all nodes, by the same path"
                                       : "one version on all nodes: ldd, module list",
                                "%s differs from the file on %s ranks", name, share);
        }
    }
}

const Check check_libraries = {
    .name = "libraries",
    .threshold_meaning = "files that differ",
    .threshold = 0,
    .limit_s = 5,
    .bytes = sizeof(Libraries),
    .measure = measure_files,
    .judge = judge_files,
};

/* ---- processors ---- */

static void measure_processor(Doctor *d, void *mine)
{
    Processor *p = mine;
    (void)d;
    cpu_model(p->model);
}

static void judge_processor(const Check *check, const Allocation *a, const void *all,
                            Report *report)
{
    const Processor *p = all;
    const char *share, *usual = most_frequent_text(a, all, sizeof *p, 0, &share);
    (void)check;
    if (usual)
        report_set_summary(report, "%s", usual);
    else
        report_skip(report, "not known");
    for (int r = 0; r < a->ranks; ++r)
        if (usual && *p[r].model && strcmp(p[r].model, usual) != 0)
            report_add_host(
                report, SEVERITY_WARN, r, "nodes of one kind (sbatch -C)",
                "has %s, %s ranks have %s: the slower ones decide the speed, and results may "
                "differ in bits from those of equal processors",
                p[r].model, share, usual);
}

const Check check_processors = {
    .name = "processors",
    .threshold_meaning = "models that differ",
    .threshold = 0,
    .limit_s = 2,
    .bytes = sizeof(Processor),
    .measure = measure_processor,
    .judge = judge_processor,
};
