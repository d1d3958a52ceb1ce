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

static Status run(int argc, char **argv, const void *options)
{
    const ReportFlags *o = options;
    TRY(report_write(argv, argc, o->out));
    printf("wrote %s\n", o->out);
    return OK;
}

const Verb verb_report = {
    .name = "report",
    .words = "RUN...",
    .words_min = 1,
    .expects = "folders of runs, as runs/fashion",
    .help = "writes an HTML page about runs: outcome, curves, where the time went, configuration",
    VERB_FLAGS(ReportFlags, flags),
    .traits = VERB_PLAIN,
    .run = run,
};
