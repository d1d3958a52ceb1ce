#include "fit.h"

#include "checkpoint.h"

enum { NAMED = 20 };

void fit_begin(Fit *fit)
{
    text_list_begin(&fit->missing, NAMED);
    text_list_begin(&fit->sizes, NAMED);
    text_list_begin(&fit->surplus, NAMED);
}

static const char *name_of(const char *path)
{
    const char *leaf = checkpoint_leaf(path);
    return leaf ? leaf : path;
}

void fit_missing(Fit *fit, const char *path)
{
    text_list_add(&fit->missing, name_of(path));
}

void fit_size(Fit *fit, const char *path, Shape there, Shape here)
{
    char a[64], b[64];
    char *text = mem_format("%s (%s there, %s here)", name_of(path), shape_text(there, a),
                            shape_text(here, b));
    text_list_add(&fit->sizes, text);
    mem_free(&text);
}

void fit_surplus(Fit *fit, const char *path)
{
    text_list_add(&fit->surplus, name_of(path));
}

int fit_count(const Fit *fit)
{
    return fit->missing.count + fit->sizes.count + fit->surplus.count;
}

Status fit_end(Fit *fit, const char *path, const char *why)
{
    const bool wrong = fit_count(fit) > 0;
    char *text[] = {text_list_end(&fit->missing), text_list_end(&fit->sizes),
                    text_list_end(&fit->surplus)};
    if (wrong)
        fail(ERR_DATA, "%s: %s%s%s%s%s%s%s", path, why, *text[0] ? "; missing there: " : "",
             text[0], *text[1] ? "; of another size: " : "", text[1],
             *text[2] ? "; not in this model: " : "", text[2]);
    for (int i = 0; i < 3; ++i) mem_free(&text[i]);
    return wrong ? ERR_DATA : OK;
}
