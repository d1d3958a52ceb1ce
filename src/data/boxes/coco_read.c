/* Reads COCO's annotations: a JSON object with the lists images, annotations and categories, in any
 * order. All other keys, such as those of polygons, are skipped. The file may be compressed with
 * gzip; it is read to memory as a whole. */
#include "box_set.h"

#include <math.h>
#include <string.h>

/* log2 of the largest number of bytes of an unpacked file, 16 GiB */
enum { JSON_BYTES_SHIFT = 34 };

/* Reads a number of a box. Accepts NaN and infinities, which Python writes although JSON has none,
 * so that the check of labels can name the box. */
static Status read_number(JsonScan *s, double *value)
{
    static const char *const word[] = {"NaN", "Infinity", "-Infinity"};
    static const double meaning[] = {NAN, INFINITY, -INFINITY};
    (void)json_scan_peek(s);
    for (int i = 0; i < 3; ++i) {
        size_t bytes = strlen(word[i]);
        if ((size_t)(s->end - s->at) < bytes || memcmp(s->at, word[i], bytes) != 0) continue;
        s->at += bytes;
        *value = meaning[i];
        return OK;
    }
    return json_scan_real(s, value);
}

static Status read_box(JsonScan *s, double box[4])
{
    bool more;
    int n = 0;
    TRY(json_scan_open(s, '[', &more));
    while (more) {
        double value;
        TRY(read_number(s, &value));
        if (n < 4) box[n] = value;
        ++n;
        TRY(json_scan_more(s, ']', &more));
    }
    return n == 4 ? OK
                  : json_scan_fail(s, "a bbox has %d numbers; x, y, width, height expected", n);
}

/* Reads an area. A negative area becomes NaN, which box_set_check_labels refuses. */
static Status read_area(JsonScan *s, double *area)
{
    TRY(read_number(s, area));
    if (*area < 0) *area = NAN;
    return OK;
}

/* Reads a size in pixels. */
static Status read_side(JsonScan *s, int32_t *side)
{
    int64_t value;
    TRY(json_scan_count(s, &value));
    if (value < 1 || value > INT32_MAX) return json_scan_fail(s, "a width or height is impossible");
    *side = (int32_t)value;
    return OK;
}

/* Returns whether this is a relative path without "..". */
static bool is_below(const char *path)
{
    if (!*path || *path == '/') return false;
    for (const char *part = path; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == 0)) return false;
    }
    return true;
}

static Status read_image(JsonScan *s, BoxSet *set)
{
    BoxPicture picture = {.id = -1};
    char *key = NULL, *name = NULL;
    bool more;
    Status st = json_scan_open(s, '{', &more);
    while (st == OK && more) {
        st = json_scan_key(s, &key);
        if (st != OK) break;
        if (strcmp(key, "id") == 0)
            st = json_scan_count(s, &picture.id);
        else if (strcmp(key, "width") == 0)
            st = read_side(s, &picture.width);
        else if (strcmp(key, "height") == 0)
            st = read_side(s, &picture.height);
        else if (strcmp(key, "file_name") == 0 && !name)
            st = json_scan_text(s, &name);
        else
            st = json_scan_skip(s);
        mem_free(&key);
        if (st == OK) st = json_scan_more(s, '}', &more);
    }
    if (st == OK && (picture.id < 0 || !name))
        st = json_scan_fail(s, "the image before it lacks id or file_name");
    if (st == OK && !is_below(name))
        st = json_scan_fail(s, "image %lld: file_name '%s' is not below a folder",
                            (long long)picture.id, name);
    if (st == OK && (picture.width == 0) != (picture.height == 0))
        st = json_scan_fail(s, "image %lld lacks its width or its height", (long long)picture.id);
    if (st == OK) box_set_add_picture(set, picture, name);
    mem_free(&name);
    return st;
}

static Status read_annotation(JsonScan *s, BoxSet *set)
{
    BoxLabel label = {.area = -1, .id = -1, .picture_id = -1, .category_id = -1};
    char *key = NULL;
    bool more, boxed = false;
    int64_t crowd = 0;
    TRY(json_scan_open(s, '{', &more));
    while (more) {
        Status st = OK;
        TRY(json_scan_key(s, &key));
        if (strcmp(key, "bbox") == 0)
            boxed = true, st = read_box(s, label.box);
        else if (strcmp(key, "id") == 0)
            st = json_scan_count(s, &label.id);
        else if (strcmp(key, "image_id") == 0)
            st = json_scan_count(s, &label.picture_id);
        else if (strcmp(key, "category_id") == 0)
            st = json_scan_count(s, &label.category_id);
        else if (strcmp(key, "area") == 0)
            st = read_area(s, &label.area);
        else if (strcmp(key, "iscrowd") == 0)
            st = json_scan_count(s, &crowd);
        else
            st = json_scan_skip(s);
        mem_free(&key);
        TRY(st);
        TRY(json_scan_more(s, '}', &more));
    }
    if (label.id < 0 || label.picture_id < 0 || label.category_id < 0 || !boxed)
        return json_scan_fail(s,
                              "the annotation before it lacks id, image_id, category_id or bbox");
    if (crowd > 1)
        return json_scan_fail(s, "annotation %lld: iscrowd is not 0 or 1", (long long)label.id);
    label.crowd = crowd;
    box_set_add_label(set, label);
    return OK;
}

static Status read_category(JsonScan *s, BoxSet *set)
{
    int64_t id = -1;
    char *key = NULL, *name = NULL;
    bool more;
    Status st = json_scan_open(s, '{', &more);
    while (st == OK && more) {
        st = json_scan_key(s, &key);
        if (st != OK) break;
        if (strcmp(key, "id") == 0)
            st = json_scan_count(s, &id);
        else if (strcmp(key, "name") == 0 && !name)
            st = json_scan_text(s, &name);
        else
            st = json_scan_skip(s);
        mem_free(&key);
        if (st == OK) st = json_scan_more(s, '}', &more);
    }
    if (st == OK && (id < 0 || !name))
        st = json_scan_fail(s, "the category before it lacks id or name");
    if (st == OK) box_set_add_category(set, id, name);
    mem_free(&name);
    return st;
}

/* The lists of the file, each with the function that reads one item. */
static const struct {
    const char *key;
    Status (*read)(JsonScan *, BoxSet *);
} lists[] = {
    {"images", read_image}, {"annotations", read_annotation}, {"categories", read_category}};
enum { LISTS = sizeof lists / sizeof *lists };

static Status read_list(JsonScan *s, BoxSet *set, Status (*read)(JsonScan *, BoxSet *))
{
    bool more;
    TRY(json_scan_open(s, '[', &more));
    while (more) {
        TRY(read(s, set));
        TRY(json_scan_more(s, ']', &more));
    }
    return OK;
}

static Status read_file(JsonScan *s, BoxSet *set)
{
    bool more, seen[LISTS] = {false};
    TRY(json_scan_open(s, '{', &more));
    while (more) {
        char *key;
        TRY(json_scan_key(s, &key));
        int i = 0;
        while (i < LISTS && strcmp(key, lists[i].key) != 0) ++i;
        mem_free(&key);
        if (i < LISTS && seen[i]) return json_scan_fail(s, "a second list '%s'", lists[i].key);
        if (i < LISTS) seen[i] = true;
        TRY(i < LISTS ? read_list(s, set, lists[i].read) : json_scan_skip(s));
        TRY(json_scan_more(s, '}', &more));
    }
    for (int i = 0; i < LISTS; ++i)
        if (!seen[i])
            return fail(ERR_DATA,
                        "%s: has no list '%s'; expected COCO's annotations (instances_*.json)",
                        s->path, lists[i].key);
    return json_scan_end(s);
}

static Status read_coco(BoxSet *set)
{
    char *text;
    size_t bytes;
    set->source = set->import->labels;
    TRY(packed_text(set->source, (size_t)1 << JSON_BYTES_SHIFT, &text, &bytes));
    JsonScan scan = json_scan(set->source, text, bytes);
    Status st = read_file(&scan, set);
    mem_free(&text);
    return st;
}

/* listed in BOX_FORMATS (data/import.h) */
const BoxFormat box_format_coco = {.read = read_coco};
