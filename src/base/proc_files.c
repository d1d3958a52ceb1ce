/* Reads files and folders of /proc and /sys. */
#include "base.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool proc_read_word(const char *root, const char *path, char *out, size_t bytes)
{
    char name[512], word[128] = "";
    snprintf(name, sizeof name, "%s%s", root, path);
    FILE *file = fopen(name, "re");
    bool read = file && fscanf(file, "%127s", word) == 1;
    if (file) fclose(file);
    snprintf(out, bytes, "%s", word);
    return read;
}

double proc_read_number(const char *root, const char *path)
{
    char word[128], *end = word;
    if (!proc_read_word(root, path, word, sizeof word)) return -1;
    double number = strtod(word, &end);
    return end == word ? -1 : number;
}

void proc_each_name(const char *root, const char *path,
                    void (*visit)(const char *root, const char *name, void *user), void *user)
{
    char *name = mem_format("%s%s", root, path);
    DIR *folder = opendir(name);
    for (const struct dirent *item; folder && (item = readdir(folder));)
        if (item->d_name[0] != '.') visit(root, item->d_name, user);
    if (folder) closedir(folder);
    mem_free(&name);
}

static void count_name(const char *root, const char *name, void *count)
{
    (void)root, (void)name;
    ++*(int *)count;
}

int proc_count_names(const char *root, const char *path)
{
    int count = 0;
    proc_each_name(root, path, count_name, &count);
    return count;
}
