/* Parses a hook's answer: a JSON object with any of "stop" and "save" (true or false) and "lr" (a
 * number). Any other output is refused, so that log output of the command is not mistaken for a
 * request. */
#include "hook_request.h"

#include <stdarg.h>
#include <string.h>

#define BLANKS " \t\r\n"

enum { KEY_STOP, KEY_SAVE, KEY_LR, KEYS };
static const char *const key_name[KEYS] = {"stop", "save", "lr"};

bool hook_request_is_set(const HookRequest *request)
{
    return request->stop || request->save || request->lr > 0;
}

void hook_request_merge(HookRequest *request, const HookRequest *later)
{
    request->stop |= later->stop;
    request->save |= later->save;
    if (later->lr > 0) request->lr = later->lr;
}

/* largest number of characters of an answer that a message quotes */
enum { QUOTED_MAX = 200 };

/* Writes at most QUOTED_MAX characters of text to out, on one line and in ASCII, followed by "..."
 * if text has more. */
static void quote(char out[QUOTED_MAX + 4], const char *text)
{
    size_t length, count = 0;
    text += strspn(text, BLANKS);
    for (length = strlen(text); length > 0 && strchr(BLANKS, text[length - 1]);) --length;
    for (; count < length && count < QUOTED_MAX; ++count) {
        unsigned char c = (unsigned char)text[count];
        out[count] = (char)(strchr(BLANKS, c) ? ' ' : c < ' ' || c > '~' ? '?' : c);
    }
    snprintf(out + count, 4, "%s", count < length ? "..." : "");
}

/* Returns ERR_DATA with the message "it printed 'ANSWER': REASON". */
BASE_PRINTF(2, 3) static Status fail_answer(const char *answer, const char *reason, ...)
{
    char text[2 * QUOTED_MAX], quoted[QUOTED_MAX + 4];
    va_list args;
    va_start(args, reason);
    vsnprintf(text, sizeof text, reason, args);
    va_end(args);
    quote(quoted, answer);
    return fail(ERR_DATA, "it printed '%s': %s", quoted, text);
}

static Status read_bool(JsonScan *s, const char *key, int *value)
{
    bool on = false;
    if (json_scan_bool(s, &on) != OK)
        return fail_answer(s->begin, "\"%s\" must be true or false", key);
    *value = on;
    return OK;
}

static Status read_rate(JsonScan *s, double *value)
{
    if (json_scan_real(s, value) != OK) return fail_answer(s->begin, "\"lr\" must be a number");
    if (*value > 0) return OK;
    return fail_answer(s->begin, "\"lr\", the learning rate, must be above 0");
}

static Status find_key(const JsonScan *s, const char *name, int *key)
{
    char quoted[QUOTED_MAX + 4];
    for (*key = 0; *key < KEYS; ++*key)
        if (strcmp(name, key_name[*key]) == 0) return OK;
    quote(quoted, name);
    return fail_answer(s->begin, "unknown key \"%s\"; the keys are stop, save and lr", quoted);
}

/* Reads one "key": value; each key may occur once. seen: a bit for each key. */
static Status read_entry(JsonScan *s, HookRequest *request, unsigned *seen)
{
    char *name = NULL;
    int key;
    TRY(json_scan_key(s, &name));
    Status st = find_key(s, name, &key);
    mem_free(&name);
    TRY(st);
    if (*seen & 1u << key) return fail_answer(s->begin, "\"%s\" occurs twice", key_name[key]);
    *seen |= 1u << key;
    if (key == KEY_LR) return read_rate(s, &request->lr);
    return read_bool(s, key_name[key], key == KEY_SAVE ? &request->save : &request->stop);
}

Status hook_request_parse(HookRequest *request, const char *text)
{
    JsonScan s = json_scan("", text, strlen(text));
    unsigned seen = 0;
    bool more;
    HookRequest parsed = {0};
    *request = parsed;
    const char first = text[strspn(text, BLANKS)];
    if (!first) return OK;
    JsonScan whole = s;
    if (first != '{' || json_scan_skip(&whole) != OK || json_scan_end(&whole) != OK)
        return fail_answer(text, "not a JSON object such as {\"stop\": true}, {\"save\": true} or "
                                 "{\"lr\": 0.01}");
    TRY(json_scan_open(&s, '{', &more));
    while (more) {
        TRY(read_entry(&s, &parsed, &seen));
        TRY(json_scan_more(&s, '}', &more));
    }
    *request = parsed;
    return OK;
}
