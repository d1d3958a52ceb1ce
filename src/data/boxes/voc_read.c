/* Reads Pascal VOC's annotations. The folder BoxImport.images has two folders: Annotations, with an
 * XML file (an annotation) for each picture, and JPEGImages, with the pictures. The corners of a
 * box are numbers of pixels, counted from 1, and the pixels of both corners belong to the box.
 * Objects that are marked as difficult are stored as crowds: they are not trained on, and
 * detections of them are not counted. */
#include "box_set.h"
#include "xml_scan.h"
#include "../set/name_index.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { XML_BYTES_MAX = 1 << 26, LIST_BYTES_MAX = 1 << 28 };

typedef struct Voc {
    BoxSet *set;
    /* owned: folder of the XML files */
    char *annotations;
    /* indices in set->category, by name */
    NameIndex classes;
    /* path of the current XML file */
    const char *path;
    /* name of the current file's picture */
    char filename[XML_TEXT];
    /* size of this picture in pixels; 0: not given */
    int32_t width, height;
    /* class of the current object */
    char name[XML_TEXT];
    /* edges of the current object's box: xmin, ymin, xmax, ymax */
    double edge[4];
    /* which edges have been read: bit i is set for edge[i] */
    int edges_read;
    /* true: the current object is marked as difficult */
    bool difficult;
} Voc;

static Status read_number(const Voc *v, const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    if (end != text && !*end && !strpbrk(text, "xX")) return OK;
    return fail(ERR_DATA, "%s: '%.40s' is no number", v->path, text);
}

/* Returns the index of the class v->name; -1: it is not among --classes. Without --classes, adds a
 * class that is new. */
static int64_t find_class(Voc *v)
{
    BoxSet *set = v->set;
    int64_t i = name_index_find(&v->classes, v->name, strlen(v->name));
    if (i >= 0 || set->import->classes) return i;
    i = set->categories;
    box_set_add_category(set, i + 1, v->name);
    name_index_add(&v->classes, set->category[i].name, strlen(v->name), i);
    return i;
}

static Status end_object(Voc *v)
{
    BoxSet *set = v->set;
    if (v->edges_read != 15 || !v->name[0])
        return fail(ERR_DATA, "%s: object %lld lacks its name or a corner of its bndbox", v->path,
                    (long long)set->labels + 1);
    int64_t class = find_class(v);
    if (class < 0)
        return fail(ERR_DATA, "%s: class '%s' is not among those of %s", v->path, v->name,
                    set->import->classes);
    const double *c = v->edge;
    box_set_add_label(set, (BoxLabel){.box = {c[0] - 1, c[1] - 1, c[2] - c[0] + 1, c[3] - c[1] + 1},
                                      .area = -1,
                                      .id = set->labels + 1,
                                      .picture_id = set->pictures + 1,
                                      .category_id = class + 1,
                                      .crowd = v->difficult});
    v->name[0] = 0;
    v->edges_read = 0;
    v->difficult = false;
    return OK;
}

/* Stores the value of the element that has just ended. */
static Status read_element(Voc *v, const XmlScan *s)
{
    static const char *const edge_name[] = {"xmin", "ymin", "xmax", "ymax"};
    static const char *const side[] = {"annotation/size/width", "annotation/size/height"};
    static const char object[] = "annotation/object/";
    double value;
    if (strcmp(s->path, "annotation/filename") == 0)
        snprintf(v->filename, sizeof v->filename, "%s", s->value);
    if (strcmp(s->path, "annotation/object") == 0) return end_object(v);
    for (int i = 0; i < 2; ++i) {
        if (strcmp(s->path, side[i]) != 0) continue;
        TRY(read_number(v, s->value, &value));
        *(i == 0 ? &v->width : &v->height) = value >= 0 && value < INT32_MAX ? (int32_t)value : 0;
    }
    if (strncmp(s->path, object, sizeof object - 1) != 0) return OK;
    const char *field = s->path + sizeof object - 1;
    if (strcmp(field, "name") == 0) snprintf(v->name, sizeof v->name, "%s", s->value);
    if (strcmp(field, "difficult") == 0) v->difficult = strcmp(s->value, "1") == 0;
    for (int i = 0; i < 4; ++i) {
        if (strncmp(field, "bndbox/", 7) != 0 || strcmp(field + 7, edge_name[i]) != 0) continue;
        TRY(read_number(v, s->value, &v->edge[i]));
        v->edges_read |= 1 << i;
    }
    return OK;
}

/* Reads the XML file v->path, and adds its picture and labels. */
static Status read_file(Voc *v)
{
    char *text;
    size_t bytes;
    bool more = true;
    TRY(file_text(v->path, XML_BYTES_MAX, &text, &bytes));
    XmlScan scan = {.name = v->path, .text = text, .at = text};
    v->filename[0] = 0;
    v->width = v->height = 0;
    Status st = strlen(text) == bytes ? OK : fail(ERR_DATA, "%s: has zero bytes", v->path);
    while (st == OK && more) {
        st = xml_scan_next(&scan, &more);
        if (st == OK && more) st = read_element(v, &scan);
    }
    mem_free(&text);
    TRY(st);
    if (!v->filename[0] || strchr(v->filename, '/') || strcmp(v->filename, "..") == 0)
        return fail(ERR_DATA, "%s: annotation/filename is missing, or is not the name of a file",
                    v->path);
    if (v->width == 0 || v->height == 0) v->width = v->height = 0;
    BoxPicture picture = {.id = v->set->pictures + 1, .height = v->height, .width = v->width};
    box_set_add_picture(v->set, picture, v->filename);
    return OK;
}

static int by_name(const void *left, const void *right)
{
    const BoxCategory *const *a = left, *const *b = right;
    return strcmp((*a)->name, (*b)->name);
}

/* Reads the XML files that are named in the file `list`; the first word of a line is a name without
 * ".xml". */
static Status read_listed(Voc *v, const char *list)
{
    char *text, *rest;
    size_t bytes;
    Status st = OK;
    TRY(file_text(list, LIST_BYTES_MAX, &text, &bytes));
    rest = text;
    for (char *line; st == OK && (line = strsep(&rest, "\n"));) {
        line += strspn(line, " \t\r");
        line[strcspn(line, " \t\r")] = 0;
        if (!*line) continue;
        char *path = mem_format("%s/%s.xml", v->annotations, line);
        v->path = path;
        st = read_file(v);
        mem_free(&path);
    }
    mem_free(&text);
    return st;
}

static Status read_all(Voc *v)
{
    FolderFiles files = {0};
    Status st = folder_scan_flat(&files, v->annotations);
    for (int64_t i = 0; st == OK && i < files.count; ++i) {
        v->path = files_path(&files, i);
        const char *dot = strrchr(v->path, '.');
        if (dot && strcmp(dot, ".xml") == 0) st = read_file(v);
    }
    files_fini(&files);
    return st;
}

/* Numbers the classes of the set from 1, in the order of their names. */
static void sort_classes(BoxSet *set)
{
    size_t n = (size_t)set->categories;
    BoxCategory **sorted = mem_new((n + 1) * sizeof *sorted);
    for (size_t i = 0; i < n; ++i) sorted[i] = &set->category[i];
    if (n) qsort(sorted, n, sizeof *sorted, by_name);
    for (size_t i = 0; i < n; ++i) sorted[i]->id = (int64_t)i + 1;
    for (int64_t k = 0; k < set->labels; ++k)
        set->label[k].category_id = set->category[set->label[k].category_id - 1].id;
    mem_free(&sorted);
}

static Status read_voc(BoxSet *set)
{
    const BoxImport *import = set->import;
    Voc v = {.set = set, .annotations = mem_format("%s/Annotations", import->images)};
    set->root = mem_format("%s/JPEGImages", import->images);
    Status st =
        access(v.annotations, F_OK) == 0
            ? OK
            : fail(ERR_NOINPUT, "%s: is missing; expected a folder with Annotations and JPEGImages",
                   v.annotations);
    if (st == OK && import->classes) st = box_set_read_classes(set, 1);
    for (int64_t i = 0; st == OK && i < set->categories; ++i)
        name_index_add(&v.classes, set->category[i].name, strlen(set->category[i].name), i);
    if (st == OK) st = import->list ? read_listed(&v, import->list) : read_all(&v);
    if (st == OK && !import->classes) sort_classes(set);
    name_index_fini(&v.classes);
    mem_free(&v.annotations);
    return st;
}

/* listed in BOX_FORMATS (data/import.h) */
const BoxFormat box_format_voc = {.read = read_voc};
