/* Writes the sections of a report about memory, versions, configuration and log. */
#include "private.h"

#include <string.h>

static bool has_memory(const RunFiles *run)
{
    return run->ledger.memory.measured > 0;
}

void section_memory(FILE *out, const RunFiles *run, int runs)
{
    bool any = false;
    for (int r = 0; r < runs; ++r) any = any || has_memory(&run[r]);
    if (!any) return;
    html_section(out, "Memory of the rank that uses most");
    fputs("<table><tr><th>run</th><th>rank</th><th>planned MB</th><th>measured MB</th>"
          "<th>error</th><th>peak with libraries MB</th></tr>\n",
          out);
    for (int r = 0; r < runs; ++r) {
        const LedgerMemory *m = &run[r].ledger.memory;
        if (!has_memory(&run[r])) continue;
        fputs("<tr><td>", out);
        html_text(out, run[r].folder);
        fprintf(out, "</td><td>%d</td><td>%.1f</td><td>%.1f</td>", m->rank, m->planned / 1e6,
                m->measured / 1e6);
        fprintf(out, "<td>%+.1f %%</td><td>%.1f</td></tr>\n",
                m->planned > 0 ? 100 * (m->measured / m->planned - 1) : 0.0, m->peak / 1e6);
    }
    fputs("</table>\n", out);
    html_section_end(out);
}

void section_versions(FILE *out, const RunFiles *run, int runs)
{
    bool any = false;
    for (int r = 0; r < runs; ++r) any = any || run[r].ledger.versions;
    if (!any) return;
    html_section(out, "Versions of the last start");
    for (int r = 0; r < runs; ++r)
        if (run[r].ledger.versions) html_details(out, run[r].folder, run[r].ledger.versions);
    html_section_end(out);
}

/* ---- configuration ---- */

/* A key of a configuration and its value. */
typedef struct Setting {
    /* for example "train.batch"; owned */
    char *key;
    /* the value, whose lines are joined by blanks; owned */
    char *value;
} Setting;
typedef struct Settings {
    /* [count]; owned */
    Setting *setting;
    /* number of keys */
    int count;
} Settings;

/* Adds the key and the value of a line "key: value" of a section. length: bytes of the line. */
static void settings_add(Settings *s, const char *section, const char *text, int length)
{
    int key = (int)strcspn(text, ":\n");
    const char *value = text + key + (text[key] == ':');
    length -= (int)(value - text);
    if (length > 0 && *value == ' ') ++value, --length;
    s->setting = mem_resize(s->setting, (size_t)(s->count + 1) * sizeof *s->setting);
    s->setting[s->count++] = (Setting){mem_format("%s.%.*s", section, key, text),
                                       mem_format("%.*s", length > 0 ? length : 0, value)};
}

/* Adds a line to the value of the last key. */
static void settings_extend(Settings *s, const char *text, int length)
{
    char **value = s->count > 0 ? &s->setting[s->count - 1].value : NULL;
    if (!value) return;
    char *longer = mem_format("%s%s%.*s", *value, **value ? " " : "", length, text);
    mem_free(value);
    *value = longer;
}

/* Parses the content of config.yaml, in the form in which a run writes it. The line of a section is
 * not indented. The line of a key is indented by two blanks, and further lines of its value by
 * more. */
static Settings settings_of(const char *text)
{
    Settings s = {0};
    char section[64] = "";
    for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        int blanks = (int)strspn(at, " "), length = (int)strcspn(at, "\n") - blanks;
        if (blanks == 0)
            snprintf(section, sizeof section, "%.*s", (int)strcspn(at, ":\n"), at);
        else if (blanks == 2)
            settings_add(&s, section, at + blanks, length);
        else
            settings_extend(&s, at + blanks, length);
    }
    return s;
}

static void settings_fini(Settings *s)
{
    for (int i = 0; i < s->count; ++i) {
        mem_free(&s->setting[i].key);
        mem_free(&s->setting[i].value);
    }
    mem_free(&s->setting);
}

/* Returns the value of a key, borrowed; NULL if there is no such key. */
static const char *settings_value(const Settings *s, const char *key)
{
    for (int i = 0; i < s->count; ++i)
        if (strcmp(s->setting[i].key, key) == 0) return s->setting[i].value;
    return NULL;
}

/* Writes a key that run number `from` has, with its values in all runs, if they differ. Writes
 * nothing if an earlier run has the key, because the call for that run has written it. */
static void put_difference(FILE *out, const Settings *all, int runs, int from, const char *key)
{
    const char *mine = settings_value(&all[from], key);
    bool differs = false;
    for (int r = 0; r < from; ++r)
        if (settings_value(&all[r], key)) return;
    for (int r = 0; r < runs; ++r) {
        const char *value = settings_value(&all[r], key);
        differs = differs || !value || strcmp(value, mine) != 0;
    }
    if (!differs) return;
    fputs("<tr><td>", out);
    html_text(out, key);
    for (int r = 0; r < runs; ++r) {
        fputs("</td><td>", out);
        const char *value = settings_value(&all[r], key);
        html_text(out, value ? value : "-");
    }
    fputs("</td></tr>\n", out);
}

/* Writes a table of the keys whose values differ between the runs. */
static void put_differences(FILE *out, const RunFiles *run, int runs)
{
    Settings *all = mem_new((size_t)runs * sizeof *all);
    for (int r = 0; r < runs; ++r) all[r] = settings_of(run[r].config);
    fputs("<table><tr><th>key that differs</th>", out);
    for (int r = 0; r < runs; ++r) {
        fputs("<th>", out);
        html_text(out, run[r].folder);
        fputs("</th>", out);
    }
    fputs("</tr>\n", out);
    for (int r = 0; r < runs; ++r)
        for (int i = 0; i < all[r].count; ++i)
            put_difference(out, all, runs, r, all[r].setting[i].key);
    fputs("</table>\n", out);
    for (int r = 0; r < runs; ++r) settings_fini(&all[r]);
    mem_free(&all);
}

void section_files(FILE *out, const RunFiles *run, int runs)
{
    html_section(out, "Configuration and log");
    if (runs > 1) put_differences(out, run, runs);
    for (int r = 0; r < runs; ++r) {
        char *config = mem_format("%s/config.yaml", run[r].folder);
        char *log = mem_format("%s/log.txt, its end", run[r].folder);
        if (*run[r].config) html_details(out, config, run[r].config);
        if (*run[r].log) html_details(out, log, run[r].log);
        mem_free(&log);
        mem_free(&config);
    }
    html_section_end(out);
}
