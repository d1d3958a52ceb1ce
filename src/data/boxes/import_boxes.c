/* Imports pictures with labelled boxes: reads the labels, then imports the pictures like those of a
 * folder (folder_import.c). The hooks here (FolderLabels) check each picture's size against its
 * labels, and write the arrays of boxes instead of a class for each picture. */
#include "box_set.h"

#include <string.h>
#include <unistd.h>

/* Adds the pictures and names of classes to the folder import's list. */
static Status list_files(const BoxSet *set, FolderFiles *files)
{
    int64_t missing = 0, first = -1;
    for (int64_t i = 0; i < set->pictures; ++i) {
        const char *root = set->root ? set->root : set->import->images;
        char *path = mem_format("%s/%s", root, box_set_path(set, i));
        files_add(files, path, 0);
        mem_free(&path);
        if (files->file[i].bytes >= 0) continue;
        ++missing;
        if (first < 0) first = i;
    }
    files->classes = set->categories;
    files->class_name = mem_new((size_t)(set->categories + 1) * sizeof *files->class_name);
    for (int64_t c = 0; c < set->categories; ++c)
        files->class_name[c] = mem_text(set->category[c].name);
    if (missing == 0 || set->import->skip_broken) return OK;
    char more[48] = "";
    if (missing > 1) snprintf(more, sizeof more, ", and %lld more", (long long)missing - 1);
    return fail(
        ERR_NOINPUT,
        "%s: image %lld of %s is missing%s; correct the path, or leave such images out with "
        "--broken skip",
        files_path(files, first), (long long)set->picture[first].id, set->source, more);
}

/* Reads, orders and checks the labels, and lists the pictures (FolderLabels.find). */
static Status find(void *user, FolderFiles *files)
{
    BoxSet *set = user;
    TRY(set->import->format->read(set));
    if (set->pictures == 0) return fail(ERR_DATA, "%s: lists no images", set->source);
    if (set->categories == 0) return fail(ERR_DATA, "%s: lists no categories", set->source);
    TRY(box_set_order(set));
    TRY(box_set_check_labels(set));
    TRY(box_set_check_classes(set));
    return list_files(set, files);
}

/* Returns the bytes of the arrays of boxes (FolderLabels.bytes). */
static int64_t bytes(void *user)
{
    return box_set_bytes(user);
}

/* Checks that a picture has the size that its labels name (FolderLabels.check); if they name none,
 * takes the picture's size. */
static Status check(void *user, int64_t i, const FolderSample *sample)
{
    BoxSet *set = user;
    BoxPicture *p = &set->picture[i];
    bool swaps = sample->orientation >= 5, turned = set->import->orient && swaps;
    int32_t height = turned ? sample->width : sample->height;
    int32_t width = turned ? sample->height : sample->width;
    if (p->width == 0) p->height = height, p->width = width;
    if (p->height == height && p->width == width) return OK;
    const char *hint = "";
    if (swaps && p->height == width && p->width == height)
        hint = turned ? " (its EXIF orientation swaps them: leave --orient out)"
                      : " (its EXIF orientation swaps them: give --orient)";
    return fail(ERR_DATA, "%s: its labels are of an image of %dx%d pixels, the file has %dx%d%s",
                box_set_path(set, i), p->width, p->height, width, height, hint);
}

/* Checks the labels of pictures whose size was unknown, and closes the set
 * (FolderLabels.complete). */
static Status close_set(void *user, const uint8_t *left_out)
{
    TRY(box_set_check_labels(user));
    return box_set_close(user, left_out);
}

/* Writes the arrays of boxes (FolderLabels.put). */
static bool put(void *user, hid_t file, const uint8_t *left_out)
{
    return box_set_put(user, file, left_out);
}

/* Writes the name of picture i for messages (FolderLabels.name). */
static void name(void *user, int64_t i, char *out, size_t room)
{
    const BoxSet *set = user;
    snprintf(out, room, "image %lld: ", (long long)set->picture[i].id);
}

static void add_count(char *text, size_t room, int64_t count, const char *what)
{
    size_t used = strlen(text);
    if (count) snprintf(text + used, room - used, "; %lld %s", (long long)count, what);
}

/* Logs what was written (FolderLabels.report). */
static void report(void *user, int64_t samples, int64_t left_out, const char *orientations)
{
    const BoxSet *set = user;
    char text[300] = "";
    int64_t labels = 0;
    for (int64_t k = 0; k < set->labels; ++k) labels += !set->label[k].left_out;
    add_count(text, sizeof text, set->crowds, "around crowds");
    add_count(text, sizeof text, set->without_area, "without area");
    add_count(text, sizeof text, set->duplicates, "listed twice");
    add_count(text, sizeof text, set->left_out, "boxes left out");
    add_count(text, sizeof text, left_out, "pictures left out");
    log_info("wrote %s: %lld pictures, %lld boxes of %lld classes%s%s", set->import->out,
             (long long)samples, (long long)labels, (long long)set->categories, text, orientations);
}

Status data_import_boxes(const BoxImport *import, const ImportRanks *ranks)
{
    BoxSet set = {.import = import, .source = import->labels ? import->labels : import->images};
    FolderLabels labels = {&set, DATA_BOXES, find, bytes, check, close_set, put, name, report};
    FolderImport folder = {.dir = import->images,
                           .out = import->out,
                           .labels = &labels,
                           .encoded = import->side == 0,
                           .orient = import->orient,
                           .skip_broken = import->skip_broken,
                           .allow_empty = true,
                           .force = import->force,
                           .side = import->side,
                           .filter = IMAGE_BILINEAR,
                           .threads = import->threads};
    if (import->labels) TRY(file_check_not_input(import->out, &import->labels, 1));
    if (import->classes) TRY(file_check_not_input(import->out, &import->classes, 1));
    Status st = data_import_folder(&folder, ranks);
    box_set_fini(&set);
    return st;
}
