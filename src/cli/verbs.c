/* The list of all verbs, in the order of the help text. To add a verb, write a file with its row,
 * and add a line to VERBS. */
#include "private.h"

#include "data/import.h"
#include "doctor.h"
#include "train.h"

/* clang-format off: one per line; a new verb goes above help */
#define VERBS(_)                                                                                   \
    _(train)                                                                                       \
    _(run)                                                                                         \
    _(eval)                                                                                        \
    _(predict)                                                                                     \
    _(generate)                                                                                    \
    _(plan)                                                                                        \
    _(verify)                                                                                      \
    _(doctor)                                                                                      \
    _(sbatch)                                                                                      \
    _(importers)                                                                                   \
    _(data_import_folder)                                                                          \
    _(data_import_coco)                                                                            \
    _(data_import_yolo)                                                                            \
    _(data_import_voc)                                                                             \
    _(data_make_shallow_water)                                                                     \
    _(data_make_burgers)                                                                           \
    _(data_make_kolmogorov)                                                                        \
    _(data_stats)                                                                                  \
    _(data_info)                                                                                   \
    _(data_check)                                                                                  \
    _(ckpt_info)                                                                                   \
    _(ckpt_check)                                                                                  \
    _(ckpt_diff)                                                                                   \
    _(ckpt_import)                                                                                 \
    _(ckpt_export)                                                                                 \
    _(ckpt_shrink)                                                                                 \
    _(report)                                                                                      \
    _(topo_show)                                                                                   \
    _(topo_find)                                                                                   \
    _(bench_comm)                                                                                  \
    _(bench_step)                                                                                  \
    _(bench_scale)                                                                                 \
    _(bench_io)                                                                                    \
    _(bench_kernels)                                                                               \
    _(bench_machine)                                                                               \
    _(help)
/* clang-format on */

#define DECLARE(name) extern const Verb verb_##name;
#define ENTRY(name)   &verb_##name,

VERBS(DECLARE)
static const Verb *const verbs[] = {VERBS(ENTRY)};
/* This row stands in the list for all verbs of the table `importers`, which the data module has. */
const Verb verb_importers = {.name = ""};

const Verb *verb_at(int i)
{
    for (size_t v = 0; v < sizeof verbs / sizeof *verbs; ++v) {
        if (verbs[v] != &verb_importers) {
            if (i-- == 0) return verbs[v];
            continue;
        }
        for (const Verb *const *importer = importers; *importer; ++importer)
            if (i-- == 0) return *importer;
    }
    return NULL;
}

Status rows_check(void)
{
    TRY(config_words_check());
    TRY(config_rows_check());
    TRY(train_rows_check());
    TRY(doctor_rows_check());
    for (int i = 0; i < verb_count(); ++i) TRY(verb_check(verb_at(i)));
    return OK;
}

int verb_count(void)
{
    int count = 0;
    while (verb_at(count)) ++count;
    return count;
}
