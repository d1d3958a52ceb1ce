/* Writes job scripts of weft sbatch from pieces of text. Which pieces a script has depends on the
 * program that starts the ranks, and on whether the script is for a chain or an array of jobs.
 * Texts from the user are quoted, or have been checked (sbatch_texts.c). */
#include "sbatch.h"

#include <string.h>

/* ---- pieces of text ---- */

static const char slurm_comment[] =
    "# weft asks Slurm when the job ends. It saves a checkpoint early enough, which depends on the "
    "time\n"
    "# of its steps and saves, and ends with 75: \"start me again\". The next start resumes from "
    "that\n"
    "# checkpoint, also on other nodes or on another number of nodes, with the same bits. A run "
    "that is\n"
    "# complete or has failed is not started again. After three consecutive starts without a "
    "newer\n"
    "# checkpoint there is no fourth, because it would end in the same way.\n";

static const char options_comment[] =
    "# --signal: for clusters whose nodes have no squeue, so that "
    "weft cannot ask for the end of the job.\n"
    "# Without \"B:\" the ranks receive the signal, and this script "
    "does not. Slurm sends it once, up to a\n"
    "# minute early, and only if ranks have been started. --requeue "
    "lets Slurm also start the job again\n"
    "# after a node has failed; --open-mode=append then keeps the "
    "log. --cpus-per-task: largest possible\n"
    "# train.threads.\n";

static const char gpus_comment[] = "# Each rank uses one GPU and sees all GPUs of its node: "
                                   "--gpus-per-task would hide each GPU from the\n"
                                   "# other ranks, and NCCL could not use NVLink.\n";

static const char hosts_comment[] =
    "# Trains by mpirun on the hosts of a file with one host per line: "
    "NAME slots=RANKS. Each start\n"
    "# writes the output of each rank to a file, in a folder with a "
    "number. A run that has stopped (75:\n"
    "# after run.max_time, or because a rank was lost) is started "
    "again and resumes from its newest\n"
    "# checkpoint. A run that is complete or has failed is not started "
    "again; nor is one after three\n"
    "# consecutive starts without a newer checkpoint. SIGTERM, SIGINT "
    "and SIGHUP to this script stop the\n"
    "# run, which saves a checkpoint, and the script ends with 75. The "
    "hosts need this folder as a shared\n"
    "# folder, and ssh to each other without a password.\n";

/* shell functions of the script that count starts without progress and decide about another
 * start */
static const char restart_functions[] =
    "\n"
    "# Prints the step of the run's newest checkpoint; 0: there is none.\n"
    "steps() {\n"
    "    local path\n"
    "    path=$(\"$weft\" train --newest \"$@\") || return\n"
    "    path=${path##*step-}\n"
    "    echo $((10#0${path%.h5}))\n"
    "}\n"
    "# Counts this start. File $state: the step at which the last starts began, and their number.\n"
    "count_start() {\n"
    "    local step=none\n"
    "    starts=0\n"
    "    before=$(steps \"$@\") || finish $?\n"
    "    [ ! -e \"$state\" ] || read -r step starts <\"$state\"\n"
    "    [ \"$step\" = \"$before\" ] || starts=0\n"
    "    [ $((starts += 1)) -le 3 ] || give_up 75\n"
    "    echo \"$before $starts\" >\"$state\" || { echo \"$state: not started without a count of "
    "starts\" >&2; finish 74; }\n"
    "}\n"
    "give_up() {\n"
    "    echo \"not started again: three times in turn there was no checkpoint newer than that of "
    "step $before\" >&2\n"
    "    finish \"$1\"\n"
    "}\n"
    "# Succeeds if another start may help: the run has stopped (75); a rank, a node or a disk was\n"
    "# lost (74); a process was killed (above 128: out of memory, a failed node, a signal before "
    "weft\n"
    "# had begun); or the ranks could not be started (1).\n"
    "goes_on() { case $1 in 1 | 74 | 75 | 129 | 1[3-9]? | 2[0-9][0-9]) ;; *) return 1;; esac; }\n"
    "# Returns if another start is to follow, else ends the script.\n"
    "judge() {\n"
    "    local after\n"
    "    goes_on \"$code\" || finish \"$code\"\n"
    "    after=$(steps \"$@\") || finish \"$code\"\n"
    "    if [ \"$after\" -gt \"$before\" ]; then rm -f \"$state\"; elif [ $starts -ge 3 ]; then "
    "give_up \"$code\"; fi\n"
    "}\n";

static const char finish[] = "finish() { rm -f \"$state\"; exit \"$1\"; }\n";

/* Beginning of each job of a chain. The jobs share a state file, whose name has a checksum of the
 * run's arguments. The last job removes the file. */
static const char finish_chain[] =
    "# All links are one run for weft: run.fresh and checkpoint.resume=no apply to the first "
    "link.\n"
    "if [[ $SLURM_JOB_NAME == *-of-$links ]]; then\n"
    "    link=${SLURM_JOB_NAME%-of-*}\n"
    "    export WEFT_RUN=$(printf '%016d:%d' \"${first:-$SLURM_JOB_ID}\" \"${link##*-}\")\n"
    "fi\n"
    "# Records the end in the state file, so that the links that are left end at once.\n"
    "finish() {\n"
    "    if is_last; then rm -f \"$state\"; else echo \"over $1\" >\"$state\"; fi\n"
    "    exit \"$1\"\n"
    "}\n"
    "is_last() { [[ $SLURM_JOB_NAME != *-of-$links || $SLURM_JOB_NAME == *-$links-of-$links ]]; }\n"
    "word='' number=''\n"
    "[ ! -e \"$state\" ] || read -r word number <\"$state\"\n"
    "if [ \"$word\" = over ]; then\n"
    "    echo \"nothing is left to do: an earlier job of this chain ended with $number\"\n"
    "    finish \"$number\"\n"
    "fi\n";

static const char submit_chain[] =
    "if [ -z \"${SLURM_JOB_ID:-}\" ]; then\n"
    "    [ -f \"$self\" ] || { echo \"a chain is begun by its file's name: bash FILE\" >&2; exit "
    "64; "
    "}\n"
    "    rm -f \"$state\"\n"
    "    dependency=() first=() ids=()\n"
    "    for ((link = 1; link <= links; ++link)); do\n"
    "        id=$(sbatch --parsable --job-name=\"$name-$link-of-$links\" \"${dependency[@]}\" "
    "\"$self\" \"${first[@]}\" \"${given[@]}\") || exit\n"
    "        id=${id%%;*}\n"
    "        ids+=(\"$id\")\n"
    "        echo \"link $link of $links is job $id\"\n"
    "        dependency=(--dependency=\"afterany:$id\") first=(--chain \"${ids[0]}\")\n"
    "    done\n"
    "    echo \"to cancel all: scancel ${ids[*]}\"\n"
    "    exit\n"
    "fi\n";

static const char before_srun[] =
    "\n"
    "# Newer versions of Slurm do not pass --cpus-per-task on to srun. --mpi: `srun --mpi=list`\n"
    "# lists what the cluster supports. --kill-on-bad-exit: the other ranks do not wait for a "
    "dead\n"
    "# one. --distribution=block: ranks with neighbouring numbers exchange most, so they share a\n"
    "# node.\n"
    "count_start \"$@\"\n"
    "export SRUN_CPUS_PER_TASK=\"${SLURM_CPUS_PER_TASK:-1}\"\n";

static const char requeue[] =
    "judge \"$@\"\n"
    "scontrol requeue \"$job\" || echo \"the job cannot go back to the queue: submit it again\" "
    ">&2\n"
    "exit $code\n";

static const char next_link[] =
    "judge \"$@\"\n"
    "if is_last; then\n"
    "    echo 'the chain is over, and the run is not complete: submit it again' >&2\n"
    "    rm -f \"$state\"\n"
    "fi\n"
    "exit $code\n";

static const char hosts_begin[] =
    "stopped='' mpirun='' state='' number=0\n"
    "# Sends the stop request every second, because a process that is starting may miss a signal.\n"
    "request_stop() { while kill -USR1 \"$mpirun\" && sleep 1; do :; done >/dev/null 2>&1 & }\n"
    "receive_stop() { stopped=yes; [ -z \"$mpirun\" ] || request_stop; }\n"
    "trap receive_stop TERM INT HUP\n"
    "mpirun --version 2>&1 | grep -q 'Open MPI' || [ \"$stopped\" ] || { echo 'no mpirun of Open "
    "MPI is on the PATH' >&2; exit 64; }\n"
    "[ -f \"$hosts\" ] && [ -r \"$hosts\" ] || { echo \"$hosts: no such host file; it is a plain "
    "file, a line of it: NAME slots=RANKS\" >&2; exit 66; }\n"
    "# A command that was ended by the signal is not a failure.\n"
    "finish() {\n"
    "    rm -f \"$state\"\n"
    "    [ -z \"$stopped\" ] || ! goes_on \"$1\" || exit 75\n"
    "    exit \"$1\"\n"
    "}\n";

static const char hosts_loop[] =
    "\n"
    "state=$(mktemp) || finish 74\n"
    "logs=$name-logs/$(date +%Y-%m-%d-%H%M%S)-$$\n"
    "# All starts are one run for weft: run.fresh and checkpoint.resume=no apply to the first.\n"
    "run=$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')\n"
    "options+=(-x WEFT_RUN)\n"
    "until [ \"$stopped\" ]; do\n"
    "    count_start \"$@\"\n"
    "    mkdir -p \"$logs/$((number += 1))\" || finish 74\n"
    "    export WEFT_RUN=$run:$number\n"
    "    [ -z \"$stopped\" ] || break\n"
    "    # mpirun forwards USR1 to the ranks, and ends them on any other signal. Therefore it gets "
    "a\n"
    "    # separate process group, which the signals of a terminal do not reach.\n"
    "    set -m\n"
    "    mpirun \"${options[@]}\" --output-filename \"$logs/$number\" \"$weft\" train "
    "\"$@\" </dev/null &\n"
    "    mpirun=$!\n"
    "    set +m\n"
    "    [ -z \"$stopped\" ] || request_stop\n"
    "    # A signal also interrupts wait, perhaps while mpirun ends.\n"
    "    while wait $mpirun; code=$?; kill -0 $mpirun 2>/dev/null; do :; done\n"
    "    [ -z \"$stopped\" ] || { wait $mpirun; last=$?; [ $last = 127 ] || code=$last; }\n"
    "    mpirun=\n"
    "    judge \"$@\"\n"
    "    [ \"$stopped\" ] || [ \"$code\" = 75 ] || { sleep 5 & wait $!; }\n"
    "done\n"
    "finish 75\n";

/* ---- quotes ---- */

/* Writes a text as one word of the shell; in quotes if the shell would otherwise change it. */
static void put_word(FILE *out, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_./:,+@%^=-";
    if (*text && strspn(text, plain) == strlen(text)) {
        fputs(text, out);
        return;
    }
    fputc('\'', out);
    for (; *text; ++text) {
        if (*text == '\'')
            fputs("'\\''", out);
        else
            fputc(*text, out);
    }
    fputc('\'', out);
}

/* Writes the value of an #SBATCH line in quotes. text: must have no line breaks. */
static void put_value(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; ++text) {
        if (strchr("\"\\", *text)) fputc('\\', out);
        fputc(*text, out);
    }
    fputs("\"\n", out);
}

/* ---- the script ---- */

static void put_usage(const Script *s, FILE *out)
{
    const char *hosts = s->hosts && !*s->hosts ? " HOSTFILE" : "";
    fputs("#   ", out);
    fputs(s->hosts || s->links ? "bash " : "sbatch ", out);
    /* a line break would end the comment */
    for (const char *c = s->file; *c; ++c) fputc(*c == '\n' ? ' ' : *c, out);
    fprintf(out, "%s%s [key=value ...]%s\n", hosts, s->any_config ? " CONFIG" : "",
            s->hosts || s->links ? "" : "   (sbatch's own options come before the script's name)");
}

static void put_title(const Script *s, FILE *out)
{
    fputs("#!/usr/bin/env bash\n", out);
    if (s->hosts)
        fputs("# Trains on hosts without Slurm.\n", out);
    else if (s->links)
        fprintf(out,
                "# Trains under Slurm in a chain of %lld jobs, each of which continues where the "
                "previous one ended.\n",
                (long long)s->links);
    else if (s->array)
        fprintf(out,
                "# Trains under Slurm as an array: each task is a separate run, whose seed is the "
                "task's number,\n"
                "# and is started again when its time is over. With run.name=a the runs are called "
                "a-1, a-2,\n"
                "# ...; without run.name the first part is %s.\n",
                s->any_config ? "the name of CONFIG's file" : "the name below");
    else
        fprintf(out,
                "# Trains under Slurm on %s%s, and starts itself again when the job's time is "
                "over.\n",
                s->nodes > 1 ? "several nodes" : "one node", s->gpus ? " with GPUs" : "");
    put_usage(s, out);
    fputs("# Written by `weft sbatch`.\n", out);
    fputs(s->hosts ? hosts_comment : slurm_comment, out);
}

static void put_memory_comment(const Script *s, FILE *out)
{
    int rank_mb = s->gpus ? SCRIPT_GPU_RANK_MB : SCRIPT_RANK_MB;
    if (!s->memory_mib) {
        if (!s->memory)
            fputs("# --mem is left out: the cluster's default applies. `weft sbatch CONFIG` plans "
                  "it.\n",
                  out);
        return;
    }
    fprintf(out,
            "# --mem: the ranks of the node that needs most take %.1f MB of its memory by `weft "
            "plan`;\n# %.0f %%, %d MB a rank and %d MB more are for libraries, MPI and Slurm.\n",
            s->planned_bytes / 1e6, 100 * SCRIPT_MARGIN, rank_mb, SCRIPT_NODE_MB);
}

static void put_options(const Script *s, FILE *out)
{
    long long hours = (long long)s->minutes / 60, minutes = (long long)s->minutes % 60;
    fprintf(out,
            "#SBATCH --job-name=%s\n#SBATCH --nodes=%lld\n#SBATCH --ntasks-per-node=%lld\n"
            "#SBATCH --cpus-per-task=%lld\n",
            s->job, (long long)s->nodes, (long long)s->tasks, (long long)s->cpus);
    if (s->gpus) fprintf(out, "#SBATCH --gpus-per-node=%lld\n", (long long)s->gpus);
    if (s->memory_mib) fprintf(out, "#SBATCH --mem=%lldM\n", (long long)s->memory_mib);
    if (s->memory) fprintf(out, "#SBATCH --mem=%s\n", s->memory);
    if (hours < 24)
        fprintf(out, "#SBATCH --time=%02lld:%02lld:00\n", hours, minutes);
    else
        fprintf(out, "#SBATCH --time=%lld-%02lld:%02lld:00\n", hours / 24, hours % 24, minutes);
    if (s->array) fprintf(out, "#SBATCH --array=%s\n", s->array);
    if (s->partition) fprintf(out, "#SBATCH --partition=%s\n", s->partition);
    if (s->account) fprintf(out, "#SBATCH --account=%s\n", s->account);
    fprintf(out,
            "#SBATCH --signal=USR1@120\n#SBATCH --requeue\n#SBATCH --open-mode=append\n"
            "#SBATCH --output=%s-%s.log\n",
            s->job, s->array ? "%A_%a" : "%j");
    if (!s->any_config) {
        fputs("#SBATCH --chdir=", out);
        put_value(out, s->folder);
    }
    /* one line for each option in s->more */
    for (const char *at = s->more; at && *(at += strspn(at, " ")); at += strcspn(at, " "))
        fprintf(out, "#SBATCH %.*s\n", (int)strcspn(at, " "), at);
    fputs(options_comment, out);
    if (s->gpus) fputs(gpus_comment, out);
    put_memory_comment(s, out);
}

static const char array_words[] =
    "for word in \"$@\"; do\n"
    "    shift\n"
    "    case $word in\n"
    "    run.name=*) name=${word#*=};;\n"
    "    run.seed=*) echo \"$word: each task has its number as its seed: leave run.seed out\" >&2; "
    "exit 64;;\n"
    "    *) set -- \"$@\" \"$word\";;\n"
    "    esac\n"
    "done\n"
    "set -- \"$@\" run.name=\"$name-$task\" run.seed=\"$task\"\n";

static void put_array(const Script *s, FILE *out)
{
    fputs("task=${SLURM_ARRAY_TASK_ID:?is not set: this is a script for an array}\n", out);
    if (s->any_config)
        fputs("name=${1##*/}\nname=${name%.*}\n", out);
    else {
        fputs("name=", out);
        put_word(out, s->run);
        fputc('\n', out);
    }
    fputs(array_words, out);
}

/* Writes shell code that adds key=value words to the script's arguments, except those whose key the
 * user has given as an argument. word: [words]. */
static void put_default_words(const char *const *word, int words, FILE *out)
{
    if (!words) return;
    fputs("# Arguments of this script replace the words below that have the same key.\n"
          "defaults=(",
          out);
    for (int i = 0; i < words; ++i) {
        if (i) fputc(' ', out);
        put_word(out, word[i]);
    }
    fputs(
        ")\n"
        "for word in \"${defaults[@]}\"; do\n"
        "    for other in \"$@\"; do [ \"${other%%=*}\" != \"${word%%=*}\" ] || continue 2; done\n"
        "    set -- \"$@\" \"$word\"\n"
        "done\n",
        out);
}

/* Writes the shell code that sets the program, the folder and the arguments. In the rest of the
 * script "$@" is CONFIG and the key=value words. */
static void put_arguments(const Script *s, FILE *out)
{
    static const char *const gpu_words[] = {"train.device=cuda"};
    if (s->links)
        fputs("self=$(realpath -- \"$0\") first=\n"
              "[ \"${1:-}\" != --chain ] || { first=$2; shift 2; }\n"
              "given=(\"$@\")\n",
              out);
    if (s->any_config) {
        fputs("weft=${WEFT:-weft}\n", out);
        if (s->hosts) fputs("hosts=$1\nshift\n", out);
        put_default_words(gpu_words, s->gpus ? 1 : 0, out);
    } else {
        fputs("weft=", out);
        put_word(out, s->weft);
        fputs("\ncd ", out);
        put_word(out, s->folder);
        fputs(" || exit\n", out);
        if (s->hosts) {
            fputs("hosts=", out);
            put_word(out, s->hosts);
            fputc('\n', out);
        }
        fputs("set -- ", out);
        put_word(out, s->config);
        fputs(" \"$@\"\n", out);
        put_default_words(s->word, s->words, out);
    }
    if (s->array) put_array(s, out);
}

static void put_hosts(const Script *s, FILE *out)
{
    fprintf(out, "name=%s\n", s->job);
    fputs(hosts_begin, out);
    fputs(restart_functions, out);
    fputs("options=(--hostfile \"$hosts\" --map-by slot --bind-to none", out);
    if (s->ranks) fprintf(out, " -n %lld", (long long)s->ranks);
    fputs(")\n# The other hosts start with a fresh environment.\n"
          "[ -z \"${LD_LIBRARY_PATH:-}\" ] || options+=(-x LD_LIBRARY_PATH)\n",
          out);
    fputs(hosts_loop, out);
}

static void put_slurm(const Script *s, FILE *out)
{
    if (s->links) {
        fprintf(out,
                "links=%lld name=%s\n"
                "# All links share this state file.\n"
                "state=weft-$(printf '%%s\\n' \"$@\" | cksum | cut -d' ' -f1).chain\n",
                (long long)s->links, s->job);
        fputs(submit_chain, out);
        fputs(finish_chain, out);
    } else {
        if (s->array)
            fputs("# SLURM_JOB_ID of an array's last task is that of the whole array.\n"
                  "job=${SLURM_ARRAY_JOB_ID}_$task\n",
                  out);
        else
            fputs("job=$SLURM_JOB_ID\n", out);
        fputs("state=weft-$job.stuck\n", out);
        fputs(finish, out);
    }
    fputs(restart_functions, out);
    fputs(before_srun, out);
    fprintf(out,
            "srun --mpi=%s --kill-on-bad-exit=1 --distribution=block%s \"$weft\" train \"$@\"\n",
            s->mpi, s->gpus ? " --gpu-bind=none" : "");
    fputs("code=$?\n", out);
    fputs(s->links ? next_link : requeue, out);
}

void script_print(const Script *s, FILE *out)
{
    put_title(s, out);
    if (!s->hosts) put_options(s, out);
    fputc('\n', out);
    put_arguments(s, out);
    if (s->hosts)
        put_hosts(s, out);
    else
        put_slurm(s, out);
}
