/* weft data import csv: tables of text by a schema. */
#include "csv.h"

#include <string.h>

typedef struct CsvOptions {
    const char *schema, *out, *test;
    FlagList test_files;
    double test_share;
    int64_t threads;
    bool force;
} CsvOptions;

static const Flag flags[] = {
    {"--schema", FLAG_FIELD(CsvOptions, schema), .value = "YAML", .required = true,
     .help = "what the columns are"},
    {"-o", FLAG_FIELD(CsvOptions, out), .value = "OUT", .required = true,
     .help = "the data set to write"},
    {"--test", FLAG_FIELD(CsvOptions, test), .value = "OUT",
     .help = "a second data set, with the vocabularies, means and deviations of the first"},
    {"--test-files", FLAG_FIELD(CsvOptions, test_files), .value = "FILE,...", .needs = "--test",
     .help = "the files it is made of; without them the end of FILE..."},
    {"--test-share", FLAG_FIELD(CsvOptions, test_share), .value = "S", .hi = 1, .fallback = "0.1",
     .needs = "--test", .help = "how much that is"},
    {"--threads", FLAG_FIELD(CsvOptions, threads), .value = "T", .lo = 1, .hi = 1024,
     .help = "that parse; by default one for each core"},
    {"--force", FLAG_FIELD(CsvOptions, force), .help = "write over files that are there"},
};

Status csv_import_said(const CsvImport *import)
{
    CsvDone done;
    char size[16];
    TRY(csv_import(import, &done));
    log_info("%lld records, %s of text in %.1f s, %.0f MB/s", (long long)done.records,
             text_bytes((double)done.bytes, size), done.seconds,
             (double)done.bytes / 1e6 / (done.seconds + 1e-9));
    log_info("wrote %s", import->out);
    if (import->test) log_info("wrote %s", import->test);
    return OK;
}

static Status run(int argc, char **argv, const void *options)
{
    const CsvOptions *o = options;
    CsvSchema schema;
    CsvImport import = {.schema = &schema,
                        .file = (const char *const *)argv,
                        .count = argc,
                        .out = o->out,
                        .test = o->test,
                        .test_file = (const char *const *)o->test_files.word,
                        .test_count = o->test_files.count,
                        .test_share = o->test_share,
                        .threads = (int)(o->threads > 0 ? o->threads : threads_share(1)),
                        .force = o->force};
    Status st = csv_schema_read(&schema, o->schema);
    if (st == OK) st = csv_import_said(&import);
    csv_schema_fini(&schema);
    return st;
}

const Verb import_csv = {
    .name = "data import csv",
    .words = "FILE...",
    .least = 1,
    .expects = "one or more files, --schema and -o OUT",
    .help = "tables of text (.gz too) to a data set of numbers and ids",
    .more = "The schema says of each column whether it is the label, a number, a category or "
            "ignored, how values are separated, and what stands for a missing one. Files may be "
            "larger than memory; any number of threads writes the same bytes.",
    VERB_FLAGS(CsvOptions, flags),
    .run = run,
};
