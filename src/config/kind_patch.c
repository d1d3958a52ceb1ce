/* The kind of data.patch: a number of rows and a number of columns, "64x64". */
#include "option.h"

#include <string.h>

static Status patch_read(Reading *r, void *field, const YamlNode *node)
{
    enum { SIDE_MOST = 1 << 20 };
    ConfigPatch *patch = field;
    long long rows = 0, columns = 0;
    int end = 0;
    TRY(read_text(r, node));
    r->at = node;
    const char *text = node->text;
    if (*text && (sscanf(text, "%7lldx%7lld%n", &rows, &columns, &end) != 2 || text[end] ||
                  rows < 1 || columns < 1 || rows > SIDE_MOST || columns > SIDE_MOST))
        return fail(ERR_CONFIG, "expected rows x columns, such as 64x64, not '%s'", text);
    *patch = (ConfigPatch){.rows = rows, .columns = columns};
    return OK;
}

static void patch_print(FILE *out, const Option *o, const Config *config)
{
    const ConfigPatch *patch = option_value(o, config);
    char text[48] = "";
    if (patch->rows > 0)
        snprintf(text, sizeof text, "%lldx%lld", (long long)patch->rows, (long long)patch->columns);
    print_text(out, text);
}

const OptionKind kind_patch = {"ROWSxCOLUMNS", false, patch_read, patch_print, NULL};
