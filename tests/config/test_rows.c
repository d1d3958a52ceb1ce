/* The option table is complete, and an incomplete row is refused by name. tests/cli/test_rows.c
 * checks the keys whose words other modules register. Each refused row is a copy of a good one with
 * one fault. */
#include "config/option.h"
#include "harness.h"
#include "words.h"

/* A copy of the row of a key. */
static Option row_of(const char *key)
{
    return options[option_find(key)];
}

static void refused(Option row, const char *why)
{
    CHECK_FAILS(option_check(&row), ERR_BUG, why);
}

static void rows(void)
{
    use_test_words();
    for (int i = 0; i < option_count; ++i)
        if (options[i].kind != &kind_enum && options[i].kind != &kind_word_set)
            CHECK_OK(option_check(&options[i]));
    Option row = row_of("train.batch");
    CHECK_OK(option_check(&row));
    row.key = NULL;
    refused(row, "key without a name: .key is not given");
    row.key = "training.batch";
    refused(row, "key training.batch: its section is not in the table of sections");
    row = row_of("train.batch"), row.kind = NULL;
    refused(row, "key train.batch: .kind is not given");
    row = row_of("train.batch"), row.default_text = NULL;
    refused(row, "key train.batch: .default_text is not given");
    row = row_of("train.batch"), row.help = NULL;
    refused(row, "key train.batch: .help is not given");
    row = row_of("train.batch"), row.min = row.max = 0;
    refused(row, "key train.batch: .min and .max are not given");
    row = row_of("train.batch"), row.offset = 0;
    refused(row, "key train.batch: .offset is not given");
    row.offset = row_of("run.seed").offset;
    refused(row, "key train.batch: .offset is that of another key");
    row.offset = sizeof(Config);
    refused(row, "key train.batch: .offset is outside Config");
    row = row_of("optim.lr"), row.lo = row.hi = 0;
    refused(row, "key optim.lr: .lo and .hi are not given");
    row = row_of("train.batch"), row.constant = true;
    refused(row, "key train.batch: .constant is given without .grouped");
    row.grouped = true;
    refused(row, "key train.batch: .grouped is for keys of section optim");
    row = row_of("train.batch"), row.word_help = (const char *const[]){"?"};
    refused(row, "key train.batch: .word_help is given without .words");
    row = row_of("grid.pipeline_schedule"), row.kind = &kind_enum;
    row.words = NULL, row.word_help = NULL;
    refused(row, "key grid.pipeline_schedule: .words is not given");
}

static void kinds(void)
{
    OptionKind kind = kind_int;
    kind.name = NULL;
    CHECK_FAILS(option_kind_check(&kind), ERR_BUG,
                "kind of value without a name: .name is not given");
    kind = kind_int, kind.read = NULL;
    CHECK_FAILS(option_kind_check(&kind), ERR_BUG, "kind of value INT: .read is not given");
    kind = kind_int, kind.print = NULL;
    CHECK_FAILS(option_kind_check(&kind), ERR_BUG, "kind of value INT: .print is not given");
}

TEST_MAIN("rows of config", {"rows", rows}, {"kinds", kinds})
