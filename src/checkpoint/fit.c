/* Collects tensors that do not fit a model, for one message (fit.h). */
#include "fit.h"

#include "checkpoint.h"

/* maximum number of tensors that each of the three lists names */
enum { NAMED = 20 };

void fit_begin(Fit *fit)
{
    text_list_begin(&fit->missing, NAMED);
    text_list_begin(&fit->sizes, NAMED);
    text_list_begin(&fit->surplus, NAMED);
    fit->none_larger = true;
    fit->narrow_layer = NULL;
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

void fit_size(Fit *fit, const char *path, Shape stored, Shape wanted)
{
    char a[64], b[64];
    char *text = mem_format("%s (%s in the file, %s in the model)", name_of(path),
                            shape_text(stored, a), shape_text(wanted, b));
    text_list_add(&fit->sizes, text);
    mem_free(&text);
    for (int d = 0; d < SHAPE_DIMS; ++d)
        if (stored.ndim != wanted.ndim || (d < wanted.ndim && stored.dim[d] > wanted.dim[d]))
            fit->none_larger = false;
    const char *name = name_of(path), *weight = strstr(name, ".weight");
    if (fit->narrow_layer || !weight || stored.ndim < 2 || stored.dim[0] >= wanted.dim[0]) return;
    fit->narrow_layer =
        mem_format("%.*s: %lld", (int)(weight - name), name, (long long)stored.dim[0]);
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
    const bool shrunk = fit->narrow_layer && fit->none_larger && !*text[0] && !*text[2];
    char *cure =
        shrunk ? mem_format("; a model that weft ckpt shrink has made needs model.widths: {%s, "
                            "...}, the first number of each weight in the file (weft ckpt info)",
                            fit->narrow_layer)
               : mem_text("");
    if (wrong)
        fail(ERR_DATA, "%s: %s%s%s%s%s%s%s%s", path, why, *text[0] ? "; missing in the file: " : "",
             text[0], *text[1] ? "; of another size: " : "", text[1],
             *text[2] ? "; not in this model: " : "", text[2], cure);
    for (int i = 0; i < 3; ++i) mem_free(&text[i]);
    mem_free(&fit->narrow_layer);
    mem_free(&cure);
    return wrong ? ERR_DATA : OK;
}
