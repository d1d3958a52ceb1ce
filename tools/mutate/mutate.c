/* Writes copies of C files in which mutants are compiled in, each chosen by the value of the
 * variable mutant_number at run time ("mutant schemata": one build for all of them; Untch, Offutt,
 * Harrold 1993). All lines with a site are divided evenly into COUNT parts; in each part a line and
 * one of its sites are drawn. A site is left out if an error of the compiler, of the list
 * ERRORS (FILE:LINE a line), is in its statement; another one of its part is drawn then. Line
 * numbers of the copies are those of the originals. Prints a line for each mutant: number, file,
 * line, first and last line of its statement, change, code; divided by tabs.
 * usage: mutate SEED COUNT FOLDER ERRORS FILE... */
#include "sites.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { TRIES = 200 };

static char *file_read(const char *name, size_t *size)
{
    FILE *f = fopen(name, "rb");
    struct stat info;
    char *text = NULL;
    if (f && !fstat(fileno(f), &info) && (text = calloc((size_t)info.st_size + 1, 1)))
        *size = fread(text, 1, (size_t)info.st_size, f);
    if (!text || ferror(f) || *size != (size_t)info.st_size) {
        fprintf(stderr, "mutate: %s cannot be read\n", name);
        exit(74);
    }
    fclose(f);
    return text;
}

/* splitmix64 (Steele, Lea, Flood 2014) */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Is there an error of the compiler in the statement of the site? */
static bool is_bad(const Source *source, const Region *r, const char *errors)
{
    size_t length = strlen(source->name);
    for (const char *line = errors; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, source->name, length) || line[length] != ':') continue;
        int number = atoi(line + length + 1);
        if (number >= r->first_line && number <= r->last_line) return true;
    }
    return false;
}

/* Draws the site of a part: a line of the lines [begin, end), then one of its sites. first[i] is
 * the first site of line i. Returns NULL if none is left. */
static const Site *draw(Source *sources, const Sites *sites, const int *first, int begin, int end,
                        uint64_t seed, const char *errors)
{
    for (int i = 0; i < TRIES && end > begin; ++i) {
        uint64_t random = mix(seed + (uint64_t)i);
        int line = begin + (int)(random % (uint64_t)(end - begin));
        int choice = (int)((random >> 32) % (uint64_t)(first[line + 1] - first[line]));
        const Site *site = &sites->site[first[line] + choice];
        Region *r = &sources[site->file].region[site->region];
        if (r->taken || is_bad(&sources[site->file], r, errors)) continue;
        r->taken = true;
        return site;
    }
    return NULL;
}

/* Prints text[begin, end) on one line, with a change if `site` is in it. */
static void put_line(FILE *out, const char *text, size_t begin, size_t end, const Site *site)
{
    bool blank = false;
    for (size_t p = begin; p < end; ++p) {
        if (site && site->with && p == site->at) {
            fputs(site->with, out);
            p += site->length - 1;
            blank = false;
            continue;
        }
        bool space = text[p] == ' ' || text[p] == '\n' || text[p] == '\t';
        if (!space || !blank) fputc(space ? ' ' : text[p], out);
        blank = space;
    }
}

static void put_region(FILE *out, const Source *s, const Region *r, const Site *site, int number)
{
    const char *rest = s->text + r->begin;
    int length = (int)(r->end - r->begin);
    bool statement = r->kind == REGION_STATEMENT;
    if (statement && !site->with) {
        fprintf(out, "{ if (mutant_number != %d) %.*s }", number, length, rest);
        return;
    }
    bool condition = r->kind == REGION_CONDITION || r->kind == REGION_LOOP;
    fprintf(out, statement ? "{ if (mutant_number == %d) " : "mutant_number == %d ? (", number);
    if (site->with)
        put_line(out, s->text, r->begin, r->end, site);
    else
        fputs(site->what, out);
    fprintf(out,
            statement   ? " else %.*s }"
            : condition ? ") : !!(%.*s)"
                        : ") : (%.*s)",
            length, rest);
}

/* Writes the copy of a file; chosen[i] is mutant i + 1. */
static void write_copy(const char *folder, const Source *s, const Source *sources,
                       const Site *const *chosen, int count)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, s->name);
    FILE *out = fopen(path, "wb");
    size_t done = 0;
    if (out) fputs("extern int mutant_number;\n#line 1\n", out);
    for (int i = 0; out && i < count; ++i) { /* in order of the files' lines */
        if (&sources[chosen[i]->file] != s) continue;
        const Region *r = &s->region[chosen[i]->region];
        fwrite(s->text + done, 1, r->begin - done, out);
        put_region(out, s, r, chosen[i], i + 1);
        done = r->end;
    }
    if (out) fwrite(s->text + done, 1, s->size - done, out);
    if (!out || ferror(out) || fclose(out)) {
        fprintf(stderr, "mutate: %s cannot be written\n", path);
        exit(74);
    }
}

static void print_mutant(const Source *s, const Site *site, int number)
{
    const Region *r = &s->region[site->region];
    printf("%d\t%s\t%d\t%d\t%d\t", number, s->name, site->line, r->first_line, r->last_line);
    if (site->with)
        printf("%.*s becomes %s", (int)site->length, s->text + site->at, site->with);
    else if (r->kind == REGION_STATEMENT)
        printf("removed");
    else
        printf("%s %s", r->kind == REGION_RETURN ? "returns" : "is always", site->what);
    printf("\t");
    put_line(stdout, s->text, r->begin, r->end, NULL);
    printf("\n");
}

static int compare_sites(const void *a, const void *b)
{
    const Site *x = *(const Site *const *)a, *y = *(const Site *const *)b;
    return x->file != y->file ? x->file - y->file : (x->at > y->at) - (x->at < y->at);
}

int main(int argc, char **argv)
{
    if (argc < 6) {
        fprintf(stderr, "usage: mutate SEED COUNT FOLDER ERRORS FILE...\n");
        return 64;
    }
    uint64_t seed = strtoull(argv[1], NULL, 10);
    int parts = atoi(argv[2]), files = argc - 5, lines = 0, count = 0;
    size_t ignored;
    char *errors = file_read(argv[4], &ignored);
    Source *sources = calloc((size_t)files, sizeof *sources);
    Sites sites = {0};
    for (int i = 0; i < files; ++i) {
        Source *s = &sources[i];
        s->name = argv[5 + i];
        s->text = file_read(s->name, &s->size);
        s->code = file_read(s->name, &s->size);
        sites_find(sources, i, &sites);
    }
    int *first = calloc((size_t)sites.count + 2, sizeof *first);
    for (int i = 0; i < sites.count; ++i) {
        const Site *a = &sites.site[i], *b = &sites.site[i ? i - 1 : 0];
        if (i == 0 || a->file != b->file || a->line != b->line) first[lines++] = i;
    }
    first[lines] = sites.count;
    const Site **chosen = calloc((size_t)(parts > 0 ? parts : 1), sizeof *chosen);
    for (int i = 0; i < parts; ++i) {
        int begin = (int)((int64_t)lines * i / parts),
            end = (int)((int64_t)lines * (i + 1) / parts);
        chosen[count] =
            draw(sources, &sites, first, begin, end, mix(seed) ^ mix((uint64_t)i << 20), errors);
        count += chosen[count] != NULL;
    }
    qsort(chosen, (size_t)count, sizeof *chosen, compare_sites);
    for (int i = 0; i < count; ++i) print_mutant(&sources[chosen[i]->file], chosen[i], i + 1);
    for (int i = 0; i < files; ++i) write_copy(argv[3], &sources[i], sources, chosen, count);
    fprintf(stderr, "mutate: %d mutants of %d sites in %d lines of %d files\n", count, sites.count,
            lines, files);
    for (int i = 0; i < files; ++i) {
        free(sources[i].text);
        free(sources[i].code);
        free(sources[i].region);
    }
    free(sources), free(sites.site), free(first), free(chosen), free(errors);
    return 0;
}
