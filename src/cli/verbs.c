/* The verbs, in the order of the help. */
#include "cli.h"

enum { JOB = VERB_CONFIG | VERB_RANKS | VERB_THREADS };

const Verb verbs[] = {
    {"train", "[-n N] CONFIG [key=value ...]", "trains, from the start or from where it stopped",
     .traits = JOB | VERB_DATA, .run = verb_train},
    {"eval", "[-n N] CONFIG [key=value ...] [--checkpoint FILE] [--json]",
     "loss, top-1, top-5 and confusion matrix on the test data",
     "  --checkpoint FILE        instead of the run's best.h5, else its newest checkpoint\n"
     "  --json                   one JSON object\n",
     "|--checkpoint|", .traits = JOB | VERB_DATA, .run = verb_eval},
    {"plan", "CONFIG [key=value ...] [--json]",
     "layers, memory and actions of a run, without running it",
     "  --json                   one JSON object\n", NULL, VERB_CONFIG | VERB_DATA | VERB_THREADS,
     verb_plan},
    {"data import idx", "IMAGES LABELS -o OUT [--classes a,b,c] [--force]",
     "IDX files (MNIST's format, .gz too) to a data set",
     "  -o OUT                   the HDF5 file to write\n"
     "  --classes a,b,c          names of the classes\n"
     "  --force                  write over a file that is there\n",
     .run = verb_import_idx},
    {"data import cifar", "FILE... -o OUT [--fine] [--force]",
     "CIFAR-10's or CIFAR-100's binary files to a data set",
     "  -o OUT                   the HDF5 file to write\n"
     "  --fine                   the files are CIFAR-100's; its 100 fine labels are taken\n"
     "  --force                  write over a file that is there\n",
     .run = verb_import_cifar},
    {"data info", "FILE [key=value ...] [--json]", "what a data set holds",
     "  --json                   one JSON object\n"
     "  data.x=/name ...         how the file names and orders its arrays (keys of section data)\n",
     .run = verb_data_info},
    {"data check", "FILE [key=value ...]", "reads a data set through and checks every label",
     "  data.x=/name ...         how the file names and orders its arrays (keys of section data)\n",
     .run = verb_data_check},
    {"ckpt info", "FILE... [--json]", "step, epoch, grid and a hash per tensor",
     "  --json                   one JSON object a line\n", .run = verb_ckpt_info},
    {"ckpt check", "FILE...", "verifies the checksums of a checkpoint", .run = verb_ckpt_check},
    {"ckpt diff", "FILE FILE",
     "names the first difference of two checkpoints; exit 65 if there is one",
     .run = verb_ckpt_diff},
    {"bench comm", "[-n N] [--mb MB] [--json]",
     "gradient sums between ranks, beside memcpy and MPI's own",
     "  --mb MB                  size of the sum, default 45\n"
     "  --json                   one JSON object a line\n",
     "|--mb|", VERB_RANKS | VERB_THREADS, bench_comm},
    {"bench step", "[-n N] CONFIG [--input CxHxW] [--steps S] [--json] [key=value ...]",
     "training steps a second, beside the machine's matrix-product rate",
     "  --input CxHxW            made-up images of this shape instead of data.train\n"
     "  --steps S                steps to time, default 20\n"
     "  --json                   one JSON object\n",
     "|--input|--steps|", VERB_CONFIG | VERB_RANKS | VERB_THREADS, bench_step},
    {"bench io", "[FILE] [--seconds S] [--json]",
     "samples a second in random order from a cached file",
     "  --seconds S              how long to read, default 2\n"
     "  --json                   one JSON object\n",
     "|--seconds|", 0, bench_io},
    {"help", "[--man] [--completion]", "this list and all keys of a configuration",
     "  --man                    the manual page, in roff\n"
     "  --completion             a completion script for bash\n",
     .run = verb_help},
};
const int verb_count = sizeof verbs / sizeof verbs[0];
