/* Reads of files and folders that several checks share. */
#include "private.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void doctor_host(char out[HOST_BYTES])
{
    host_name(out, HOST_BYTES);
}

bool doctor_word(const char *root, const char *path, char *out, size_t room)
{
    char name[512], word[128] = "";
    snprintf(name, sizeof name, "%s%s", root, path);
    FILE *file = fopen(name, "re");
    bool read = file && fscanf(file, "%127s", word) == 1;
    if (file) fclose(file);
    snprintf(out, room, "%s", word);
    return read;
}

double doctor_number(const char *root, const char *path)
{
    char word[128], *end = word;
    if (!doctor_word(root, path, word, sizeof word)) return -1;
    double number = strtod(word, &end);
    return end == word ? -1 : number;
}

void doctor_each(const char *root, const char *path,
                 void (*see)(const char *root, const char *name, void *user), void *user)
{
    char *name = mem_format("%s%s", root, path);
    DIR *folder = opendir(name);
    for (const struct dirent *item; folder && (item = readdir(folder));)
        if (item->d_name[0] != '.') see(root, item->d_name, user);
    if (folder) closedir(folder);
    mem_free(&name);
}

static void count(const char *root, const char *name, void *entries)
{
    (void)root, (void)name;
    ++*(int *)entries;
}

int doctor_entries(const char *root, const char *path)
{
    int entries = 0;
    doctor_each(root, path, count, &entries);
    return entries;
}
