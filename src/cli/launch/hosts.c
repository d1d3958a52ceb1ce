/* Reads the list of hosts from Slurm, PBS or LSF, or from a file with lines "name slots=N". srun
 * starts the ranks on the hosts of a Slurm job. On all other hosts Open MPI's mpirun starts them,
 * by ssh, PBS or LSF. The user can choose the program with weft run --launcher. To test whether a
 * host answers, srun or mpirun runs `true` on it. */
#include "hosts.h"

#include "../private.h"
#include "watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* seconds in which a host, or scontrol, must answer */
static const double ANSWER_MAX_S = 15;
/* maximum number of hosts that are tested at the same time */
enum { PROBES_AT_ONCE = 32 };
/* largest number of probes of a host: one mpirun may fail because another one ends (launch_run); a
 * host that does not answer in time is probed once */
enum { PROBES_MAX = 2 };

/* ---- the list of hosts ---- */

/* Adds a host, or adds slots to a host that is in the list already. name: `length` characters. */
static void add_host(Hosts *h, const char *name, size_t length, int slots)
{
    for (int i = 0; i < h->count; ++i) {
        if (strncmp(h->host[i].name, name, length) != 0 || h->host[i].name[length]) continue;
        h->host[i].slots += slots;
        return;
    }
    h->host = mem_resize(h->host, (size_t)(h->count + 1) * sizeof *h->host);
    h->host[h->count++] = (Host){.name = mem_format("%.*s", (int)length, name), .slots = slots};
}

/* Adds one slot for each word of the text, to the host with that name. */
static void add_words(Hosts *h, const char *text)
{
    static const char blanks[] = " \t\r\n";
    for (text += strspn(text, blanks); *text; text += strspn(text, blanks)) {
        size_t length = strcspn(text, blanks);
        add_host(h, text, length, 1);
        text += length;
    }
}

/* Parses a line: "name" (one slot), "name slots=4" or "name:4"; # begins a comment. */
static Status add_line(Hosts *h, const char *file, int number, char *line)
{
    line[strcspn(line, "#\r\n")] = 0;
    char *name = line + strspn(line, " \t"), *rest = name + strcspn(name, " \t:");
    size_t length = (size_t)(rest - name);
    int64_t slots = 1;
    if (length == 0) return OK;
    const char *at = rest + strspn(rest, " \t");
    bool good = true;
    if (*at == ':' || !strncmp(at, "slots=", 6)) {
        at += *at == ':' ? 1 : 6;
        good = whole_read(&at, 1, RANKS_MAX, &slots);
    }
    if (!good || at[strspn(at, " \t")])
        return fail(ERR_USAGE, "%s:%d: expected NAME, NAME slots=N or NAME:N", file, number);
    add_host(h, name, length, (int)slots);
    return OK;
}

static Status read_file(Hosts *h, const char *path)
{
    char line[1024];
    int number = 0;
    FILE *file = file_open_stream(path);
    if (!file) return fail(ERR_NOINPUT, "%s: cannot be read: %s", path, file_error(errno));
    Status status = OK;
    while (status == OK && fgets(line, sizeof line, file))
        status = add_line(h, path, ++number, line);
    fclose(file);
    if (status == OK && h->count == 0) status = fail(ERR_USAGE, "%s: names no host", path);
    return status;
}

/* Reads a host file of PBS or LSF, in which the name of a host occurs once for each slot. */
static Status read_slots(Hosts *h, const char *path)
{
    char line[1024];
    FILE *file = file_open_stream(path);
    if (!file) return fail(ERR_NOINPUT, "%s: cannot be read: %s", path, file_error(errno));
    while (fgets(line, sizeof line, file)) add_words(h, line);
    fclose(file);
    return OK;
}

/* Sets the slots of the hosts from a list in Slurm's notation: "4(x2),3" means 4, 4, 3. */
static void set_slots(Hosts *h, const char *list)
{
    int i = 0;
    while (list && *list && i < h->count) {
        int64_t tasks, repeat = 1;
        if (!whole_read(&list, 1, RANKS_MAX, &tasks)) return;
        if (!strncmp(list, "(x", 2)) {
            list += 2;
            if (!whole_read(&list, 1, RANKS_MAX, &repeat)) return;
            list += *list == ')';
        }
        for (; repeat > 0 && i < h->count; --repeat) h->host[i++].slots = (int)tasks;
        list += *list == ',';
    }
}

static Status read_slurm(Hosts *h)
{
    char *words[] = {"scontrol", "show", "hostnames", NULL};
    enum { ROOM = 1 << 20 };
    char *text = mem_new(ROOM);
    int code = command_output(words, ANSWER_MAX_S, text, ROOM);
    if (code == 0) add_words(h, text);
    Status status = OK;
    if (code != 0 || h->count == 0)
        status = fail(ERR_USAGE,
                      "`scontrol show hostnames` does not name the hosts of this Slurm job: %s; "
                      "give them by --hostfile",
                      code == COMMAND_NONE ? "it cannot be started" : text);
    mem_free(&text);
    const char *per_node = getenv("SLURM_NTASKS_PER_NODE"), *tasks = getenv("SLURM_TASKS_PER_NODE");
    int64_t slots;
    if (per_node && whole_read(&per_node, 1, RANKS_MAX, &slots))
        for (int i = 0; i < h->count; ++i) h->host[i].slots = (int)slots;
    else
        set_slots(h, tasks);
    return status;
}

static Status find_hosts(Hosts *h, const char *file)
{
    const char *pbs = getenv("PBS_NODEFILE"), *lsf_file = getenv("LSB_DJOB_HOSTFILE"),
               *lsf = getenv("LSB_HOSTS");
    h->source = file;
    if (file) return read_file(h, file);
    if (getenv("SLURM_JOB_ID")) {
        h->source = "Slurm";
        h->starter = STARTER_SRUN;
        return read_slurm(h);
    }
    h->source = pbs ? "PBS" : lsf_file || lsf ? "LSF" : NULL;
    if (pbs || lsf_file) return read_slots(h, pbs ? pbs : lsf_file);
    if (lsf) add_words(h, lsf);
    return OK;
}

Status hosts_init(Hosts *h, const char *file, int slots)
{
    *h = (Hosts){0};
    Status status = find_hosts(h, file);
    for (int i = 0; i < h->count && slots > 0; ++i) h->host[i].slots = slots;
    if (status == OK && h->count > 0 && h->starter == STARTER_MPIRUN && !is_open_mpi())
        status = fail(ERR_USAGE,
                      "hosts of %s: weft run starts ranks on several hosts by srun or by "
                      "Open MPI's mpirun, but weft was built with another MPI",
                      h->source);
    return status;
}

void hosts_fini(Hosts *h)
{
    for (int i = 0; i < h->count; ++i) mem_free(&h->host[i].name);
    mem_free(&h->host);
}

/* Sets keepalive times. With them, mpirun and its daemons notice a silent host after 20 s, instead
 * of after eight minutes. */
void hosts_set_launcher_env(const Hosts *h)
{
    if (h->starter != STARTER_MPIRUN) return;
    open_mpi_set_env(false);
    setenv("OMPI_MCA_oob_tcp_keepalive_time", "10", 0);
    setenv("OMPI_MCA_oob_tcp_keepalive_intvl", "2", 0);
    setenv("OMPI_MCA_oob_tcp_keepalive_probes", "5", 0);
}

/* Returns whether `name` is the name of this host. If either name has no domain, the domain of the
 * other name is ignored. */
static bool is_this_host(const char *name)
{
    char this_host[HOST_BYTES];
    if (!strcmp(name, "localhost")) return true;
    host_name(this_host, sizeof this_host);
    size_t n = strcspn(name, ".");
    bool both_have_domain = name[n] && this_host[strcspn(this_host, ".")];
    return both_have_domain ? !strcmp(name, this_host)
                            : n == strcspn(this_host, ".") && !strncmp(name, this_host, n);
}

bool hosts_are_local(const Hosts *h)
{
    for (int i = 0; i < h->count; ++i)
        if (h->host[i].ranks > 0 && !is_this_host(h->host[i].name)) return false;
    return h->starter == STARTER_MPIRUN;
}

/* ---- which hosts answer ---- */

/* Starts `true` on host number `host`, without waiting. Returns 0, or an errno value. */
static int start_probe(const Hosts *h, int host, pid_t *child)
{
    char *name = h->host[host].name, *one_slot = mem_format("%s:1", name);
    char *srun[] = {"srun", "--overlap", "--quiet", "--nodes=1", "--ntasks=1",
                    "-w",   name,        "true",    NULL};
    char *mpirun[] = {"mpirun", "--host", one_slot, "-n", "1", "--bind-to", "none", "true", NULL};
    int error = command_start(child, -1, h->starter == STARTER_SRUN ? srun : mpirun);
    mem_free(&one_slot);
    return error;
}

void hosts_probe(Hosts *h)
{
    pid_t child[PROBES_AT_ONCE];
    int code[PROBES_AT_ONCE];
    for (int first = 0; first < h->count; first += PROBES_AT_ONCE) {
        int left = h->count - first, count = left < PROBES_AT_ONCE ? left : PROBES_AT_ONCE;
        for (int i = 0; i < count; ++i) code[i] = COMMAND_NONE;
        for (int probe = 1; probe <= PROBES_MAX; ++probe) {
            for (int i = 0; i < count; ++i)
                if (code[i] != 0 && code[i] != COMMAND_TIMED_OUT &&
                    start_probe(h, first + i, &child[i]) == 0)
                    code[i] = COMMAND_BUSY;
            command_wait(count, child, ANSWER_MAX_S, code);
        }
        for (int i = 0; i < count; ++i) h->host[first + i].lost = code[i] != 0;
    }
}

/* ---- ranks on hosts ---- */

int hosts_place_ranks(Hosts *h, int ranks, int hosts_max)
{
    int left = ranks, used = 0;
    for (int i = 0; i < h->count; ++i) {
        Host *host = &h->host[i];
        bool usable = !host->lost && left > 0 && (hosts_max == 0 || used < hosts_max);
        host->ranks = !usable ? 0 : host->slots < left ? host->slots : left;
        left -= host->ranks;
        used += usable;
    }
    return ranks - left;
}

/* Returns the names of the lost hosts (lost true), or of the hosts that have ranks, separated by
 * commas. with_ranks: true: after each name come a colon and the host's number of ranks, in
 * mpirun's notation. The caller owns the text. */
static char *list_names(const Hosts *h, bool lost, bool with_ranks)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) die_as(ERR_MEMORY, "out of memory");
    const char *comma = "";
    for (int i = 0; i < h->count; ++i) {
        const Host *host = &h->host[i];
        if (lost ? !host->lost : host->ranks == 0) continue;
        fprintf(out, "%s%s", comma, host->name);
        if (with_ranks) fprintf(out, ":%d", host->ranks);
        comma = ",";
    }
    if (fclose(out) != 0) die_as(ERR_MEMORY, "out of memory");
    return text;
}

char *hosts_text(const Hosts *h)
{
    return list_names(h, false, false);
}

char *hosts_lost_text(const Hosts *h)
{
    return list_names(h, true, false);
}

/* Adds srun and its options to w. --cpus-per-task of the job is repeated, because newer versions of
 * Slurm do not pass it on to srun. */
static void srun_words(const Hosts *h, Words *w, int ranks)
{
    const char *cpus = getenv("SLURM_CPUS_PER_TASK");
    int used = 0, ranks_max = 0;
    for (int i = 0; i < h->count; ++i) {
        used += h->host[i].ranks > 0;
        if (h->host[i].ranks > ranks_max) ranks_max = h->host[i].ranks;
    }
    char *list = list_names(h, false, false);
    words_add(w, mem_text("srun"));
    if (is_open_mpi() && !getenv("SLURM_MPI_TYPE")) words_add(w, mem_text("--mpi=pmix"));
    words_add(w, mem_text("--overlap"));
    words_add(w, mem_text("--kill-on-bad-exit=1"));
    words_add(w, mem_text("--distribution=block"));
    words_add(w, mem_format("--nodes=%d", used));
    words_add(w, mem_format("--ntasks=%d", ranks));
    words_add(w, mem_format("--ntasks-per-node=%d", ranks_max));
    if (cpus) words_add(w, mem_format("--cpus-per-task=%s", cpus));
    words_add(w, mem_text("-w"));
    words_add(w, list);
}

/* Adds mpirun and its options to w. Ranks are placed by slot, so that ranks with neighbouring
 * numbers share a host. */
static void mpirun_host_words(const Hosts *h, Words *w, int ranks)
{
    words_add(w, mem_text("mpirun"));
    words_add(w, mem_text("--host"));
    words_add(w, list_names(h, false, true));
    words_add(w, mem_text("--map-by"));
    words_add(w, mem_text("slot"));
    words_add(w, mem_text("--bind-to"));
    words_add(w, mem_text("none"));
    mpirun_add_env(w);
    words_add(w, mem_text("-n"));
    words_add(w, mem_format("%d", ranks));
}

char **hosts_words(const Hosts *h, char *const *command)
{
    Words w = {0};
    int ranks = 0;
    for (int i = 0; i < h->count; ++i) ranks += h->host[i].ranks;
    if (h->starter == STARTER_SRUN)
        srun_words(h, &w, ranks);
    else
        mpirun_host_words(h, &w, ranks);
    for (int i = 0; command[i]; ++i) words_add(&w, mem_text(command[i]));
    return w.word;
}
