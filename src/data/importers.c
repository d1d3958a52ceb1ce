/* Lists the verbs of src/data that import or make data sets, in the order of the help. Other such
 * verbs are in src/cli/data. A new verb is a file with its Verb, and one line here. */
#include "data/import.h"

/* clang-format off: one per line; add new ones above the last */
#define IMPORTERS(_)                                                                               \
    _(idx)                                                                                         \
    _(cifar)                                                                                       \
    _(text)                                                                                        \
    _(tokens)                                                                                      \
    _(hdf5)                                                                                        \
    _(csv)                                                                                         \
    _(criteo)                                                                                      \
    _(movielens)                                                                                   \
    _(make_criteo)                                                                                 \
    _(make_scenes)
/* clang-format on */

#define DECLARE(name) extern const Verb import_##name;
#define ENTRY(name)   &import_##name,

IMPORTERS(DECLARE)
const Verb *const importers[] = {IMPORTERS(ENTRY) NULL};
