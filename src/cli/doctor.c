/* weft doctor [DIR]: checks whether this machine, or this allocation, is fit for training. */
#include "private.h"

#include "doctor.h"
#include "train.h"

typedef struct DoctorFlags {
    int64_t ranks;
    double checkpoint_mb;
    bool json;
    const char *probe;
} DoctorFlags;

static const Flag flags[] = {
    FLAG_RANKS(DoctorFlags),
    {"--checkpoint-mb", FLAG_FIELD(DoctorFlags, checkpoint_mb), .value = "MB", .lo_open = true,
     .hi = 1e9, .default_text = "100",
     .help = "size of one checkpoint, as printed by weft plan; DIR should have room for three"},
    {"--json", FLAG_FIELD(DoctorFlags, json), .help = "one JSON object"},
    {"--probe", FLAG_FIELD(DoctorFlags, probe), .value = "TASK",
     .help = "used by doctor itself: run one part of the file checks: folder:NAME, make:NAME, "
             "find:NAME, remove:NAME"},
};

/* Returns the lines of --version. The caller owns the text. */
static char *version_lines(void)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *lines = open_memstream(&text, &bytes);
    if (!lines) die_as(ERR_MEMORY, "out of memory");
    train_print_versions(lines, true);
    if (fclose(lines) != 0) die_as(ERR_MEMORY, "out of memory");
    return text;
}

static Status run(int argc, char **argv, const void *options)
{
    const DoctorFlags *o = options;
    const char *folder = argc ? argv[0] : ".";
    if (!*folder)
        return fail(ERR_USAGE, "the name of the folder is empty: name the folder that runs will "
                               "write to, or leave it out for the current one");
    if (o->probe) return doctor_probe(o->probe, folder);
    terminal_adapt();
    char *versions = version_lines();
    DoctorOptions doctor = {.folder = folder,
                            .checkpoint_bytes = 1e6 * o->checkpoint_mb,
                            .json = o->json,
                            .versions = versions,
                            .root = "",
                            .is_first_task = launch_rank() == 0};
    Status status = doctor_run(&doctor);
    mem_free(&versions);
    return status;
}

const Verb verb_doctor = {
    .name = "doctor",
    .words = "[DIR]",
    .words_min = 0,
    .words_max = 1,
    .expects = "the folder that runs will write to, at most",
    .help = "checks whether this machine, or this allocation, is fit for training; one line per "
            "check",
    .more = "`weft doctor` checks this machine, `srun weft doctor DIR` an allocation. Within 30 "
            "s it measures cores, memory, network and the file system of DIR (by default the "
            "current folder), and compares hosts with each other. For each check it prints ok, "
            "or what is wrong, where, and what to try; skip: it could not be measured. If DIR "
            "does not exist, it checks the folder in which train would make it. It changes no "
            "settings. Exit code 0 also with warnings, 78 if a run could not work.",
    VERB_FLAGS(DoctorFlags, flags),
    .traits = VERB_NO_TRAITS,
    .run = run,
};
