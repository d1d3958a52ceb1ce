/* Collects tensors that do not fit a model, for one message (mismatches.h). */
#include "mismatches.h"

#include "checkpoint.h"

/* maximum number of tensors that each of the three lists names */
enum { NAMED = 20 };

void mismatches_begin(Mismatches *list)
{
    text_list_begin(&list->missing, NAMED);
    text_list_begin(&list->sizes, NAMED);
    text_list_begin(&list->surplus, NAMED);
    list->none_larger = true;
    list->narrow_layer = NULL;
}

static const char *name_of(const char *path)
{
    const char *leaf = checkpoint_leaf(path);
    return leaf ? leaf : path;
}

void mismatches_missing(Mismatches *list, const char *path)
{
    text_list_add(&list->missing, name_of(path));
}

void mismatches_size(Mismatches *list, const char *path, Shape stored, Shape wanted)
{
    char a[64], b[64];
    char *text = mem_format("%s (%s in the file, %s in the model)", name_of(path),
                            shape_text(stored, a), shape_text(wanted, b));
    text_list_add(&list->sizes, text);
    mem_free(&text);
    for (int d = 0; d < SHAPE_DIMS; ++d)
        if (stored.ndim != wanted.ndim || (d < wanted.ndim && stored.dim[d] > wanted.dim[d]))
            list->none_larger = false;
    const char *name = name_of(path), *weight = strstr(name, ".weight");
    if (list->narrow_layer || !weight || stored.ndim < 2 || stored.dim[0] >= wanted.dim[0]) return;
    list->narrow_layer =
        mem_format("%.*s: %lld", (int)(weight - name), name, (long long)stored.dim[0]);
}

void mismatches_surplus(Mismatches *list, const char *path)
{
    text_list_add(&list->surplus, name_of(path));
}

int mismatches_count(const Mismatches *list)
{
    return list->missing.count + list->sizes.count + list->surplus.count;
}

Status mismatches_end(Mismatches *list, const char *path, const char *why)
{
    const bool wrong = mismatches_count(list) > 0;
    char *text[] = {text_list_end(&list->missing), text_list_end(&list->sizes),
                    text_list_end(&list->surplus)};
    const bool shrunk = list->narrow_layer && list->none_larger && !*text[0] && !*text[2];
    char *cure =
        shrunk ? mem_format("; a model that weft ckpt shrink has made needs model.widths: {%s, "
                            "...}, the first number of each weight in the file (weft ckpt info)",
                            list->narrow_layer)
               : mem_text("");
    if (wrong)
        fail(ERR_DATA, "%s: %s%s%s%s%s%s%s%s", path, why, *text[0] ? "; missing in the file: " : "",
             text[0], *text[1] ? "; of another size: " : "", text[1],
             *text[2] ? "; not in this model: " : "", text[2], cure);
    for (int i = 0; i < 3; ++i) mem_free(&text[i]);
    mem_free(&list->narrow_layer);
    mem_free(&cure);
    return wrong ? ERR_DATA : OK;
}
