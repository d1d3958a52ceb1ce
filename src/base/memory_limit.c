/* Finds the memory that the processes of this host may use together: the machine's memory, or less
 * if a control group (of a batch job or a container) limits it. /proc/self/cgroup lists the groups
 * of this process, in version 1 or 2:
 *     4:memory:/slurm/job_7
 *     0::/system.slice/slurmstepd.scope/job_7
 * /proc/self/mountinfo says where the groups are mounted; in this line "/slurm" is the group at the
 * mount point:
 *     35 31 0:32 /slurm /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
 * A group is also limited by all groups that contain it. A file that cannot be read sets no
 * limit. */
#include "base.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The hierarchy of control groups of one version, and the place of this process in it. */
typedef struct Tree {
    /* type: type of the mount; option: word that must be among the options of the mount, "": none
     * is needed */
    const char *type, *option;
    /* name of the file with the limit in the folder of a group */
    const char *file;
    /* mount: path of the mount point; top: group at the mount point; group: group of this
     * process */
    char mount[4096], top[4096], group[4096];
} Tree;

/* Replaces the escapes of mountinfo, which writes blanks as \040, in place. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *at = text; *at; ++to) {
        unsigned code;
        if (at[0] == '\\' && sscanf(at + 1, "%3o", &code) == 1) {
            *to = (char)code;
            at += 4;
        } else
            *to = *at++;
    }
    *to = 0;
}

/* Returns true if word is an item of a list whose items are separated by commas. */
static bool is_listed(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        /* strchr also finds the terminating zero */
        if (strncmp(at, word, length) == 0 && strchr(",\n", at[length])) return true;
    }
    return false;
}

/* Reads `mount` and `top` from a line of mountinfo. Returns false if the line does not mount this
 * hierarchy. */
static bool read_mount(Tree *tree, char *line)
{
    char type[64], options[4096];
    char *rest = strstr(line, " - ");
    if (!rest || sscanf(rest, " - %63s %*s %4095s", type, options) != 2) return false;
    if (strcmp(type, tree->type) != 0) return false;
    if (*tree->option && !is_listed(options, tree->option)) return false;
    if (sscanf(line, "%*s %*s %*s %4095s %4095s", tree->top, tree->mount) != 2) return false;
    unescape(tree->top);
    unescape(tree->mount);
    return true;
}

/* Reads `group` from a line "4:memory:/slurm/job_7" or "0::/job_7". Returns false if the line does
 * not belong to this hierarchy. */
static bool read_group(Tree *tree, char *line)
{
    char *kinds = strchr(line, ':'), *group = kinds ? strchr(kinds + 1, ':') : NULL;
    if (!group) return false;
    *group++ = 0;
    if (*tree->option ? !is_listed(kinds + 1, tree->option) : kinds[1] != 0) return false;
    snprintf(tree->group, sizeof tree->group, "%.*s", (int)strcspn(group, "\n"), group);
    return true;
}

/* Passes the lines of the file root/path to `read` until `read` returns true. Returns false if it
 * never does. */
static bool find(Tree *tree, const char *root, const char *path, bool (*read)(Tree *, char *))
{
    char *name = mem_format("%s%s", root, path), *line = NULL;
    size_t capacity = 0;
    FILE *file = fopen(name, "re");
    bool found = false;
    while (file && !found && getline(&line, &capacity, file) > 0) found = read(tree, line);
    if (file) fclose(file);
    free(line);
    mem_free(&name);
    return found;
}

/* Lowers *least to the limit of a group. folder: path of the group's folder. The text "max" in the
 * file means that there is no limit. */
static void apply_limit(const char *root, const char *folder, const char *file, MemoryLimit *least)
{
    char *name = mem_format("%s%s/%s", root, folder, file);
    FILE *in = fopen(name, "re");
    double bytes;
    if (in && fscanf(in, "%lf", &bytes) == 1 && bytes < least->bytes) {
        least->bytes = bytes;
        snprintf(least->group, sizeof least->group, "%s", name + strlen(root));
    }
    if (in) fclose(in);
    mem_free(&name);
}

/* Applies the limits of all groups from the process's group up to the group at the mount point. If
 * the process's group is not inside the group at the mount point, applies only the limit at the
 * mount point. */
static void climb(const Tree *tree, const char *root, MemoryLimit *least)
{
    size_t top = strcmp(tree->top, "/") == 0 ? 0 : strlen(tree->top);
    bool inside = strncmp(tree->group, tree->top, top) == 0 && !strstr(tree->group, "/..") &&
                  (tree->group[top] == '/' || tree->group[top] == 0);
    char *folder = mem_format("%s%s", tree->mount, inside ? tree->group + top : "");
    size_t end = strlen(tree->mount);
    for (;;) {
        apply_limit(root, folder, tree->file, least);
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < end) break;
        *slash = 0;
    }
    mem_free(&folder);
}

MemoryLimit memory_limit(const char *root)
{
    MemoryLimit least = {.bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGE_SIZE)};
    Tree trees[] = {{.type = "cgroup2", .option = "", .file = "memory.max"},
                    {.type = "cgroup", .option = "memory", .file = "memory.limit_in_bytes"}};
    for (size_t i = 0; i < sizeof trees / sizeof *trees; ++i)
        if (find(&trees[i], root, "/proc/self/mountinfo", read_mount) &&
            find(&trees[i], root, "/proc/self/cgroup", read_group))
            climb(&trees[i], root, &least);
    return least;
}
