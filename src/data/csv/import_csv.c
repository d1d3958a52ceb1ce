/* weft data import csv: imports text tables by a schema. csv_import_files also serves
 * import_criteo.c. */
#include "csv.h"

#include <string.h>

typedef struct SchemaOptions {
    const char *schema;
    CsvOptions common;
} SchemaOptions;

static const Flag flags[] = {
    {"--schema", FLAG_FIELD(SchemaOptions, schema), .value = "YAML", .required = true,
     .help = "description of the columns"},
    FLAG_OUT(SchemaOptions, common.out, "the data set to write"),
    CSV_FLAGS(SchemaOptions,
              "second data set, encoded with the vocabularies, means and deviations of the first",
              "0.1", "fraction of the records for --test"),
};

Status csv_import_files(const CsvSchema *schema, const CsvOptions *o, char *const *file, int count)
{
    CsvImport import = {.schema = schema,
                        .file = (const char *const *)file,
                        .count = count,
                        .out = o->out,
                        .test = o->test,
                        .test_file = (const char *const *)o->test_files.word,
                        .test_count = o->test_files.count,
                        .test_share = o->test_share,
                        .threads = (int)(o->threads > 0 ? o->threads : threads_share(1)),
                        .force = o->force};
    CsvResult done;
    char size[16];
    TRY(csv_import(&import, &done));
    log_info("%lld records, %s of text in %.1f s, %.0f MB/s", (long long)done.records,
             text_bytes((double)done.bytes, size), done.seconds,
             (double)done.bytes / 1e6 / (done.seconds + 1e-9));
    log_info("wrote %s", o->out);
    if (o->test) log_info("wrote %s", o->test);
    return OK;
}

static Status run(int argc, char **argv, const void *options)
{
    const SchemaOptions *o = options;
    CsvSchema schema;
    Status st = csv_schema_read(&schema, o->schema);
    if (st == OK) st = csv_import_files(&schema, &o->common, argv, argc);
    csv_schema_fini(&schema);
    return st;
}

/* listed in IMPORTERS (src/data/importers.c) */
const Verb import_csv = {
    .name = "data import csv",
    .words = "FILE...",
    .words_min = 1,
    .expects = "one or more files, --schema and -o OUT",
    .help = "imports text tables (.gz too): numbers and ids",
    .more = "The schema states for each column whether it is the label, a number, a category or "
            "ignored, and for the file how values are separated and how a missing value is "
            "written. Files may be larger than memory. The bytes of OUT do not depend on the "
            "number of threads.",
    VERB_FLAGS(SchemaOptions, flags),
    .traits = VERB_NO_TRAITS,
    .run = run,
};
