/* weft report RUN...: writes an HTML page about runs. */
#include "private.h"

#include "report.h"

typedef struct ReportFlags {
    const char *out;
} ReportFlags;

static const Flag flags[] = {
    {"-o", FLAG_FIELD(ReportFlags, out), .value = "FILE", .writes = true,
     .default_text = "report.html", .help = "the page"},
};

/* Checks that the page does not replace a file that report_write reads in a run's folder. out: path
 * of the page. ERR_USAGE: it would replace one. */
static Status check_output(const char *out, const char *folder)
{
    static const char *const name[] = {"metrics.jsonl", "ledger.jsonl", "config.yaml", "topo.json",
                                       "log.txt"};
    enum { NAMES = sizeof name / sizeof *name };
    char *path[NAMES];
    for (int i = 0; i < NAMES; ++i) path[i] = mem_format("%s/%s", folder, name[i]);
    Status st = file_check_not_input(out, (const char *const *)path, NAMES);
    for (int i = 0; i < NAMES; ++i) mem_free(&path[i]);
    return st;
}

static Status run(int argc, char **argv, const void *options)
{
    const ReportFlags *o = options;
    for (int i = 0; i < argc; ++i) TRY(check_output(o->out, argv[i]));
    TRY(report_write(argv, argc, o->out));
    printf("wrote %s\n", o->out);
    return OK;
}

const Verb verb_report = {
    .name = "report",
    .words = "RUN...",
    .words_min = 1,
    .expects = "folders of runs, as runs/fashion",
    .help = "writes an HTML page about runs: outcome, curves, where the time went, schedule, nodes",
    VERB_FLAGS(ReportFlags, flags),
    .traits = VERB_NO_TRAITS,
    .run = run,
};
