/* Parses a hook's answer: an object of three known keys with true, false or a number. Any other
 * output is refused, so that a line of a program's log is never taken for a request. */
#include "hook_request.h"

#include <string.h>

#define BLANKS " \t\r\n"

bool hook_request_any(const HookRequest *request)
{
    return request->stop || request->save || request->lr > 0;
}

void hook_request_merge(HookRequest *request, const HookRequest *later)
{
    request->stop |= later->stop;
    request->save |= later->save;
    if (later->lr > 0) request->lr = later->lr;
}

enum { QUOTED = 200 };

/* Fails with the message: it `what` 'the whole answer', on one line. */
static Status wrong(const char *text, const char *what)
{
    char line[QUOTED + 1];
    size_t count = 0, length;
    text += strspn(text, BLANKS);
    for (length = strlen(text); length > 0 && strchr(BLANKS, text[length - 1]);) --length;
    for (; count < length && count < QUOTED; ++count) {
        unsigned char c = (unsigned char)text[count];
        line[count] = (char)(strchr(BLANKS, c) ? ' ' : c < ' ' || c > '~' ? '?' : c);
    }
    line[count] = 0;
    return fail(ERR_DATA, "it %s '%s%s'", what, line, count < length ? "..." : "");
}

static Status read_switch(JsonScan *s, const char *key, int *value)
{
    char what[64];
    bool on = false;
    snprintf(what, sizeof what, "says \"%s\" other than true or false:", key);
    if (json_scan_bool(s, &on) != OK) return wrong(s->text, what);
    *value = on;
    return OK;
}

static Status read_rate(JsonScan *s, double *value)
{
    char what[96];
    if (json_scan_real(s, value) != OK)
        return wrong(s->text, "says \"lr\" other than as a number:");
    if (*value > 0) return OK;
    snprintf(what, sizeof what, "asks for the learning rate %g, which must be above 0:", *value);
    return wrong(s->text, what);
}

/* Reads one "key": value; each key may occur once. */
static Status read_entry(JsonScan *s, HookRequest *w, unsigned *seen)
{
    static const char *const word[] = {"stop", "save", "lr"};
    char *name = NULL, what[64];
    int key = 0;
    TRY(json_scan_key(s, &name));
    while (key < 3 && strcmp(name, word[key]) != 0) ++key;
    mem_free(&name);
    if (key == 3) return wrong(s->text, "says more than \"stop\", \"save\" and \"lr\":");
    snprintf(what, sizeof what, "says \"%s\" twice:", word[key]);
    if (*seen & 1u << key) return wrong(s->text, what);
    *seen |= 1u << key;
    if (key == 2) return read_rate(s, &w->lr);
    return read_switch(s, word[key], key ? &w->save : &w->stop);
}

Status hook_request_parse(HookRequest *request, const char *text)
{
    JsonScan s = json_scan("", text, strlen(text));
    unsigned seen = 0;
    bool more;
    HookRequest w = {0};
    *request = w;
    const char first = text[strspn(text, BLANKS)];
    if (!first) return OK;
    JsonScan whole = s;
    if (first != '{' || json_scan_skip(&whole) != OK || json_scan_end(&whole) != OK)
        return wrong(text,
                     "does not print a JSON object such as {\"stop\": true}, {\"save\": true} "
                     "or {\"lr\": 0.01}, but");
    TRY(json_scan_open(&s, '{', &more));
    while (more) {
        TRY(read_entry(&s, &w, &seen));
        TRY(json_scan_more(&s, '}', &more));
    }
    *request = w;
    return OK;
}
