/* The verbs, in the order of the help. */
#include "cli.h"

enum { JOB = VERB_CONFIG | VERB_RANKS | VERB_THREADS };

const Verb verbs[] = {
    {"train", "[-n N] CONFIG [key=value ...] [--newest]",
     "trains, from the start or from where it stopped",
     "  --newest                 prints the run's newest checkpoint, where it has one, and trains "
     "nothing\n",
     .traits = JOB | VERB_DATA | VERB_LASTS, .run = verb_train},
    {"eval", "[-n N] CONFIG [key=value ...] [--checkpoint FILE] [--json]",
     "loss, top-1, top-5 and confusion matrix on the test data",
     "  --checkpoint FILE        instead of the run's best.h5, else its newest checkpoint\n"
     "  --json                   one JSON object\n",
     "|--checkpoint|", .traits = JOB | VERB_DATA, .run = verb_eval},
    {"generate", "CONFIG [key=value ...] [--prompt TEXT] [--tokens N] [--temperature T] ...",
     "goes on with a text, by a model of tokens; one process, whatever grid trained",
     "  --prompt TEXT            what to go on with; numbers (5,9) where tokens are no bytes\n"
     "  --tokens N               how many new ones, default 256\n"
     "  --temperature T          0 always the likeliest, above 1 wilder, default 0.8\n"
     "  --top-k K                only the K likeliest tokens\n"
     "  --seed S                 another one gives another text, default 1\n"
     "  --checkpoint FILE        instead of the run's best.h5, else its newest checkpoint\n",
     "|-n|--prompt|--tokens|--temperature|--top-k|--seed|--checkpoint|",
     .traits = VERB_CONFIG | VERB_THREADS | VERB_DATA, .run = verb_generate},
    {"plan",
     "CONFIG [--ranks N] [--stage S] [--gpu NAME] [--input CxHxW|tokens [--samples N]] [--svg "
     "FILE] "
     "[--json] [key=value ...]",
     "layers, stages, memory, messages and schedule of a run of any size, without running it",
     "  --ranks N                plan for N ranks instead of those that grid asks for; grid.dp "
     "follows\n"
     "  --stage S                the memory and chunks of this stage, too; with --json only this "
     "one\n"
     "  --gpu NAME               with train.device=cuda: plan for an h100, h200 or a100, whatever "
     "is "
     "here\n"
     "  --input CxHxW            samples of this shape, as 3x224x224, instead of a data set: no "
     "file "
     "is\n"
     "                           opened; model.classes says how many classes there are\n"
     "  --input tokens           likewise of tokens; model.vocab says how many there are\n"
     "  --samples N              with --input: samples of an epoch, default one batch\n"
     "  --svg FILE               writes the schedule as a picture\n"
     "  --json                   one JSON object; bytes are of one rank\n",
     "|--ranks|--stage|--gpu|--svg|--input|--samples|", VERB_CONFIG | VERB_THREADS, verb_plan},
    {"verify",
     "CONFIG [--grids LIST] [--steps S] [--schedules LIST] [--zero LIST] [--transports LIST] "
     "[--json] "
     "[key=value ...]",
     "trains a few steps on several grids: the same bits? exit 65 if not",
     "  --grids 1x1x1,2x1x1      dp x pp x tp of each, default 1x1x1,2x1x1,1x2x1; the others are\n"
     "                           compared with the first\n"
     "  --steps S                optimizer steps, default 3, from new parameters, without "
     "evaluation\n"
     "  --schedules gpipe,1f1b   each grid with each of these instead of grid.pipeline_schedule\n"
     "  --zero 0,2,3             likewise for grid.zero, where there are several replicas\n"
     "  --transports shm,mpi     likewise for grid.transport, where there are several ranks\n"
     "  --json                   one JSON object a line, for each run\n"
     "\nRuns are one after the other, each rank with train.threads threads, default 1: threads are "
     "part\n"
     "of the numbers. Compared are the losses of all steps and the hash of every parameter, "
     "running\n"
     "statistic and tensor of the optimizer's state. The runs' folders lie beside run.dir and are "
     "removed.\n"
     "Where the micro-batches of a replica are no power of two, other bits are no fault: see weft "
     "plan.\n",
     "|--grids|--steps|--schedules|--zero|--transports|", VERB_CONFIG | VERB_DATA, verb_verify},
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
    {"data import text", "FILE -o OUT [--test OUT [--test-share S]] [--force]",
     "a text's bytes (.gz too) to a data set of tokens",
     "  -o OUT                   the HDF5 file to write\n"
     "  --test OUT               a second one, for the end of the text\n"
     "  --test-share S           how much of the text that is, default 0.1\n"
     "  --force                  write over files that are there\n",
     .run = verb_import_text},
    {"data import tokens",
     "FILE -o OUT --bits 16|32 [--vocab V] [--test OUT [--test-share S]] [--force]",
     "a tokenizer's raw little-endian array (.gz too) to a data set of tokens",
     "  -o OUT                   the HDF5 file to write\n"
     "  --bits 16|32             of a token in FILE\n"
     "  --vocab V                how many tokens there are; default: 1 + the largest\n"
     "  --test OUT               a second data set, for the end of FILE\n"
     "  --test-share S           how much of FILE that is, default 0.1\n"
     "  --force                  write over files that are there\n",
     .run = verb_import_tokens},
    {"data info", "FILE [key=value ...] [--json]", "what a data set holds",
     "  --json                   one JSON object\n"
     "  data.x=/name ...         how the file names and orders its arrays (keys of section data)\n",
     .run = verb_data_info},
    {"data check", "FILE [key=value ...]",
     "reads a data set through and checks every label or token",
     "  data.x=/name ...         how the file names and orders its arrays (keys of section data)\n",
     .run = verb_data_check},
    {"ckpt info", "FILE... [--json]", "step, epoch, grid and a hash per tensor",
     "  --json                   one JSON object a line\n", .run = verb_ckpt_info},
    {"ckpt check", "FILE|FOLDER...",
     "verifies checksums: of a checkpoint, or of all in a run's folder",
     "Of a folder (runs/NAME, or the checkpoints/ in it) every step-*.h5 and best.h5 is read, "
     "newest "
     "first, a\n"
     "bad one does not end the list, and the last line says which one a run goes on from. Exit "
     "code: 0 "
     "all\n"
     "are good, 65 one is not, 66 there is none.\n",
     .run = verb_ckpt_check},
    {"ckpt diff", "FILE FILE",
     "names the first difference of two checkpoints; exit 65 if there is one",
     .run = verb_ckpt_diff},
    {"bench comm", "[-n N] [--mb MB] [--device cpu|cuda] [--json]",
     "gradient sums between ranks, beside a copy and MPI's own",
     "  --mb MB                  size of the sum, default 45\n"
     "  --device cpu|cuda        where the gradients lie, default cpu; cuda wants a GPU a rank\n"
     "  --json                   one JSON object a line\n",
     "|--mb|--device|", VERB_RANKS | VERB_THREADS, bench_comm},
    {"bench step", "[-n N] CONFIG [--input CxHxW] [--steps S] [--kernels] [--json] [key=value ...]",
     "training steps a second, beside the machine's matrix-product rate",
     "  --input CxHxW            made-up images of this shape instead of data.train; or tokens\n"
     "  --steps S                steps to time, default 20\n"
     "  --warmup S               steps before them, default 5\n"
     "  --kernels                also what memory bounds, each beside a copy of as many bytes\n"
     "  --json                   one JSON object, with --kernels more, one a line\n",
     "|--input|--steps|--warmup|", VERB_CONFIG | VERB_RANKS | VERB_THREADS, bench_step},
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
