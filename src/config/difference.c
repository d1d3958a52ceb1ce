/* What two resolved configurations disagree about first. */
#include "config.h"

#include <string.h>

/* A line of a resolved configuration as "section.key: value"; section is the last line that was not indented. */
static void line_text(char *out, size_t room, const char *section, const char *line)
{
    int indent = (int)strspn(line, " "), length = (int)strcspn(line, "\n");
    int head = (int)strcspn(section, ":\n");
    if (indent == 0)
        snprintf(out, room, "%.*s", length, line);
    else
        snprintf(out, room, "%.*s.%.*s", head, section, length - indent, line + indent);
}

bool config_difference(const char *x, const char *y, char *a, char *b, size_t room)
{
    const char *section = x;
    while (*x && *y) {
        size_t nx = strcspn(x, "\n"), ny = strcspn(y, "\n");
        if (*x != ' ') section = x;
        if (nx != ny || memcmp(x, y, nx) != 0) {
            line_text(a, room, section, x);
            line_text(b, room, section, y);
            return true;
        }
        x += nx + (x[nx] != 0);
        y += ny + (y[ny] != 0);
    }
    return false;
}
