/* weft data import criteo: imports the training files of Criteo's click logs (Kaggle's train.txt,
 * the days of the 1 TB set). A line has a label, 13 integers and 26 values of up to 8 hexadecimal
 * digits, with tabs between them; each value except the label may be empty. The import is
 * csv_import with a fixed schema, in which only the rule for ids varies. */
#include "csv.h"

enum { INTEGERS = 13, CATEGORIES = 26 };

/* Writes and parses the schema. rows: ids are hashes below this number; 0: an id consists of the
 * field's index and the value (CSV_IDS_HEX). */
static Status make_schema(CsvSchema *s, int64_t rows)
{
    char *text;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) die("out of memory for a schema");
    fprintf(out, "separator: tab\nheader: false\nquotes: false\n");
    if (rows > 1) fprintf(out, "hash: %lld\n", (long long)rows);
    fprintf(out, "columns:\n  click: label\n");
    for (int i = 1; i <= INTEGERS; ++i)
        fprintf(out, "  I%d: {type: number, fill: 0, transform: log}\n", i);
    for (int i = 1; i <= CATEGORIES; ++i)
        fprintf(out, "  C%d: %s\n", i, rows > 1 ? "category" : "{type: category, ids: hex}");
    fclose(out);
    TRY(csv_schema_parse(s, "the schema of Criteo's files", text, bytes));
    s->expected_record =
        "Criteo's training files have 40 values between tabs: a label, 13 integers and 26 "
        "categories; files without labels, such as Kaggle's test.txt, cannot be imported";
    for (int i = 0; i < s->count; ++i) s->column[i].whole = s->column[i].type == CSV_NUMBER;
    return OK;
}

typedef struct CriteoOptions {
    int64_t rows;
    CsvOptions common;
} CriteoOptions;

static const Flag flags[] = {
    FLAG_OUT(CriteoOptions, common.out, "the data set to write"),
    {"--rows", FLAG_FIELD(CriteoOptions, rows), .value = "R", .lo = 2, .hi = FLAG_WHOLE_MAX,
     .help =
         "ids are hashes of field and value, below R; by default the value is the low 32 bits of "
         "an id and the field the bits above, so that values never share an id"},
    CSV_FLAGS(CriteoOptions, "second data set", "0.142857",
              "fraction of the records for --test; by default one day of seven"),
};

static Status run(int argc, char **argv, const void *options)
{
    const CriteoOptions *o = options;
    CsvSchema schema;
    Status st = make_schema(&schema, o->rows);
    if (st == OK) st = csv_import_files(&schema, &o->common, argv, argc);
    csv_schema_fini(&schema);
    return st;
}

/* listed in IMPORTERS (src/data/importers.c) */
const Verb import_criteo = {
    .name = "data import criteo",
    .words = "FILE...",
    .words_min = 1,
    .expects = "one or more of Criteo's training files, and -o OUT",
    .help = "imports Criteo's click logs (.gz too): 13 numbers and 26 ids per sample",
    .more = "A number x becomes log(1 + max(x, 0)), and an empty one 0. An empty category has "
            "its own id in each field.",
    VERB_FLAGS(CriteoOptions, flags),
    .traits = VERB_NO_TRAITS,
    .run = run,
};
