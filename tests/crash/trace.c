/* Parses the lines of a trace; a call may be split in two by another thread's line. */
#include "trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first part of a call that another thread's line has split. */
typedef struct Half {
    long process;
    char *text;
} Half;
enum { HALVES = 256 };

static void add_call(Trace *trace, char *text)
{
    char *open = strchr(text, '('), *equal = NULL;
    for (char *at = text; (at = strstr(at, ") ")); ++at) {
        char *value = at + 2 + strspn(at + 2, " ");
        if (value[0] == '=' && value[1] == ' ') equal = value;
    }
    if (!open || !equal) return;
    Call call = {.result = strtol(equal + 2, NULL, 10), .result_path = copy_text("")};
    char *path = strchr(equal, '<');
    if (path && call.result >= 0) {
        call.result_path = copy_text(path + 1);
        call.result_path[strcspn(call.result_path, ">")] = '\0';
    }
    *open = '\0';
    call.name = copy_text(text);
    call.args = copy_text(open + 1);
    trace->call = grow(trace->call, (size_t)(trace->count + 1) * sizeof *trace->call);
    trace->call[trace->count++] = call;
}

static Half *half_of(Half *halves, long process)
{
    for (int i = 0; i < HALVES; ++i)
        if (halves[i].text && halves[i].process == process) return &halves[i];
    return NULL;
}

static void keep_half(Half *halves, long process, const char *text)
{
    for (int i = 0; i < HALVES; ++i)
        if (!halves[i].text) {
            halves[i] = (Half){process, copy_text(text)};
            return;
        }
    quit("trace", "too many calls under way");
}

static void read_line(Trace *trace, Half *halves, char *line)
{
    char *text;
    long process = strtol(line, &text, 10);
    text += strspn(text, " ");
    char *cut = strstr(text, " <unfinished ...>");
    if (cut) {
        *cut = '\0';
        keep_half(halves, process, text);
    } else if (strncmp(text, "<... ", 5) == 0) {
        Half *half = half_of(halves, process);
        char *rest = strstr(text, " resumed>");
        if (!half || !rest) return;
        char *whole = grow(NULL, strlen(half->text) + strlen(rest) + 1);
        sprintf(whole, "%s%s", half->text, rest + strlen(" resumed>"));
        free(half->text);
        half->text = NULL;
        add_call(trace, whole);
        free(whole);
    } else
        add_call(trace, text);
}

Trace read_trace(const char *path)
{
    static Half halves[HALVES];
    Trace trace = {0};
    char *line = NULL;
    size_t room = 0;
    FILE *file = fopen(path, "r");
    if (!file) quit(path, strerror(errno));
    while (getline(&line, &room, file) > 0) read_line(&trace, halves, line);
    free(line);
    fclose(file);
    return trace;
}

/* ---- arguments of a call ---- */

Bytes next_string(const char **text)
{
    Bytes out = {0};
    const char *at = strchr(*text, '"');
    if (!at) return out;
    out.at = grow(NULL, strlen(at));
    for (++at; *at && *at != '"'; ++at) {
        unsigned value = (unsigned char)*at;
        if (*at == '\\') {
            static const char letters[] = "nrtvf", codes[] = "\n\r\t\v\f";
            const char *letter = strchr(letters, *++at);
            int used = 0;
            if (*at == 'x') {
                if (sscanf(at + 1, "%2x", &value) != 1) quit("trace", "a wrong escape");
                at += 2;
            } else if (*at >= '0' && *at <= '7' && sscanf(at, "%3o%n", &value, &used) == 1)
                at += used - 1;
            else
                value =
                    letter && *letter ? (unsigned char)codes[letter - letters] : (unsigned char)*at;
        }
        out.at[out.count++] = (char)value;
    }
    *text = *at ? at + 1 : at;
    return out;
}

const char *name_in(const char *folder, const char *path)
{
    static char name[4096];
    size_t length = strlen(folder);
    const char *relative = strstr(folder, "/runs/") + 1;
    size_t short_length = strlen(relative);
    if (strncmp(path, folder, length) == 0 && (path[length] == '/' || !path[length]))
        snprintf(name, sizeof name, "%s", path + length + (path[length] == '/'));
    else if (strncmp(path, relative, short_length) == 0 &&
             (path[short_length] == '/' || !path[short_length]))
        snprintf(name, sizeof name, "%s", path + short_length + (path[short_length] == '/'));
    else
        return NULL;
    return name;
}

const char *name_of_file(const char *folder, const Call *call)
{
    char path[4096];
    const char *open = strchr(call->args, '<');
    if (!open || strspn(call->args, "0123456789") == 0) return NULL;
    snprintf(path, sizeof path, "%s", open + 1);
    path[strcspn(path, ">")] = '\0';
    return name_in(folder, path);
}

void last_numbers(const Call *call, long *out, int count)
{
    char *text = copy_text(call->args);
    text[strlen(text)] = '\0';
    char *end = strrchr(text, ')');
    if (end) *end = '\0';
    for (int i = count - 1; i >= 0; --i) {
        char *comma = strrchr(text, ',');
        if (!comma) quit("trace", call->args);
        out[i] = strtol(comma + 1, NULL, 10);
        *comma = '\0';
    }
    free(text);
}
