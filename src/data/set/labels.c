/* Reads all labels of a set, or all tokens: checks that each has a class, and finds the classes
 * that have samples. Warns of labels that are probably wrong: labels that count from 1, a label for
 * "no class" far above the others, or large gaps. The warning says how to correct them. */
#include "../data_private.h"

/* Records that a class (or a token) occurs. */
static void use_add(LabelUse *use, int64_t class)
{
    if (class < DATA_CLASSES_SEEN) {
        uint64_t *word = &use->seen[class / 64], bit = UINT64_C(1) << class % 64;
        use->count += (*word & bit) == 0;
        *word |= bit;
    }
    if (use->least < 0 || class < use->least) use->least = class;
    if (class > use->most) {
        use->second = use->most;
        use->most = class;
    } else if (class > use->second && class < use->most) {
        use->second = class;
    }
}

/* Reads the labels or tokens of one file and adds their classes to *use. ERR_DATA: a label has no
 * class, or a token is not in the vocabulary. */
static Status file_scan(const DataSet *set, LabelUse *use)
{
    enum { BUFFER_ROWS = 1 << 16 };
    Reader *reader;
    bool tokens = data_has_tokens(set);
    const DataArray *array = tokens ? &set->x : &set->y;
    int64_t below = tokens ? set->vocab : set->classes, total = array->dim[0], last = -1;
    size_t bytes = element_bytes(array->type);
    TRY(reader_new_array(&reader, set, array));
    uint8_t *buffer = mem_new(BUFFER_ROWS * bytes);
    Status st = OK;
    for (int64_t at = 0; st == OK && at < total; at += BUFFER_ROWS) {
        int64_t n = total - at < BUFFER_ROWS ? total - at : BUFFER_ROWS;
        st = reader_get_rows(reader, at, n, buffer);
        for (int64_t i = 0; st == OK && i < n; ++i) {
            const uint8_t *raw = buffer + (size_t)i * bytes;
            int64_t v = element_integer(array->type, raw);
            int64_t class = tokens ? v : label_class(set, v);
            if (class < 0 || class >= below)
                st = tokens ? token_fail(set, at + i, raw) : label_fail(set, at + i, raw);
            else if (class != last)
                use_add(use, class);
            last = class;
        }
    }
    mem_free(&buffer);
    reader_free(&reader);
    return st;
}

/* Reads the boxes of a set and adds their classes to *use. ERR_DATA: a box has no class of the
 * run. */
static Status boxes_scan(const DataSet *set, LabelUse *use)
{
    DataBoxes boxes;
    Status st = OK;
    TRY(data_boxes_read(&boxes, set));
    for (int64_t k = 0; st == OK && k < boxes.boxes; ++k) {
        const int64_t class = label_class(set, boxes.class[k]);
        if (class < 0 || class >= set->classes)
            st = fail(ERR_DATA,
                      "%s: box %lld has class %d, which is none of the %lld classes of this run",
                      set->path, (long long)k, boxes.class[k], (long long)set -> classes);
        else
            use_add(use, class);
    }
    data_boxes_free(&boxes);
    return st;
}

Status integers_scan(const DataSet *set, LabelUse *use)
{
    DataSet *file = mem_new(sizeof *file);
    *use = (LabelUse){.least = -1, .most = -1, .second = -1};
    Status st = set->file_count ? OK : file_scan(set, use);
    for (int i = 0; st == OK && i < set->file_count; ++i) {
        data_set_file(set, i, file);
        st = file_scan(file, use);
    }
    mem_free(&file);
    return st;
}

Status data_set_count_labels(const DataSet *set, LabelUse *use)
{
    *use = (LabelUse){.least = -1, .most = -1, .second = -1};
    if (data_has_tokens(set) || set->target_width > 0 || data_has_label_fields(set)) return OK;
    if (data_has_boxes(set)) return boxes_scan(set, use);
    return integers_scan(set, use);
}

Status data_set_check_labels(const DataSet *set)
{
    LabelUse *use = mem_new(sizeof *use);
    Status st = data_set_count_labels(set, use);
    mem_free(&use);
    return st;
}

Status tokens_check(const DataSet *set)
{
    LabelUse *use = mem_new(sizeof *use);
    Status st = integers_scan(set, use);
    mem_free(&use);
    return st;
}

/* ---- errors ---- */

/* Writes the name that the file gives to the class of a label that has no class in the run. Returns
 * false if labels are not mapped to classes, or if the file has no name for the label, or only
 * numbers as names. */
static bool find_name(const DataSet *set, int64_t label, char *name, size_t room)
{
    ClassNames names = {0};
    int64_t i = label - set->label_base;
    bool known = set->map.count > 0 && i < set->map.count &&
                 class_names_read(&names, set->path) == OK && i < names.count;
    known = known && !class_names_are_numbers(&names);
    if (known) snprintf(name, room, "%s", names.name[i]);
    class_names_free(&names);
    return known;
}

/* Returns whether other programs use this number for samples without a label. */
static bool means_no_label(int64_t label)
{
    return label < 0 || label == UINT8_MAX || label == UINT16_MAX;
}

/* Returns ERR_DATA, with the message that the label is above all classes that the file lists, or
 * above all classes of the run. text: the label in digits. */
static Status large_label_fail(const DataSet *set, int64_t sample, int64_t label, const char *text)
{
    char advice[160] = "";
    bool beyond_file = set->listed_classes > 0 && label - set->label_base >= set->listed_classes;
    const int64_t count = beyond_file ? set->listed_classes : set->classes;
    const int64_t end = set->label_base + count;
    /* INT32_MAX means that the number of classes is not known yet, because the file is being
     * opened. */
    if (count == INT32_MAX)
        return fail(ERR_DATA,
                    "%s: sample %lld: its label in %s is %s, and labels are below %d: correct the "
                    "data set, or name its labels with data.y",
                    set->path, (long long)sample, set->y.name, text, INT32_MAX);
    if (label == end)
        snprintf(advice, sizeof advice, "; if labels count from %lld, set data.label_base to that",
                 (long long)set->label_base + 1);
    else if (means_no_label(label))
        snprintf(advice, sizeof advice,
                 "; if it means 'no label', leave those samples out with `weft data import hdf5 "
                 "--drop-label %s`",
                 text);
    return fail(ERR_DATA,
                "%s: sample %lld: its label in %s is %s, but %s %lld classes (%lld to "
                "%lld); correct %s%s",
                set->path, (long long)sample, set->y.name, text,
                beyond_file ? "the file itself has" : "there are", (long long)count,
                (long long)set->label_base, (long long)end - 1,
                beyond_file ? "its labels or its list of classes" : "the data set or model.classes",
                advice);
}

Status label_fail(const DataSet *set, int64_t sample, const void *raw)
{
    char name[81], text[24];
    const int64_t label = element_integer(set->y.type, raw);
    element_integer_text(set->y.type, raw, text);
    if (label < set->label_base && !means_no_label(label))
        return fail(ERR_DATA,
                    "%s: sample %lld: its label in %s is %lld; labels begin at %lld "
                    "(data.label_base): correct the data set, or that key",
                    set->path, (long long)sample, set->y.name, (long long)label,
                    (long long)set->label_base);
    if (label < set->label_base)
        return fail(ERR_DATA,
                    "%s: sample %lld: its label in %s is %lld; labels begin at %lld%s: correct the "
                    "data set, or, if it means 'no label', leave those samples out with `weft "
                    "data import hdf5 --drop-label %lld`",
                    set->path, (long long)sample, set->y.name, (long long)label,
                    (long long)set->label_base, set->label_base ? " (data.label_base)" : "",
                    (long long)label);
    if (!find_name(set, label, name, sizeof name))
        return large_label_fail(set, sample, label, text);
    return fail(ERR_DATA,
                "%s: sample %lld is of the class '%s' (label %lld), which the model does not have: "
                "leave those samples out (`weft data import hdf5 --drop-label %lld`), or train "
                "with that class",
                set->path, (long long)sample, name, (long long)label, (long long)label);
}

/* ---- warnings ---- */

/* Returns whether model.classes or a list of names gives the number of classes. */
static bool classes_are_given(const DataSet *set, const Config *config)
{
    ClassNames names = {0};
    if (config && config->model.classes > 0) return true;
    if (set->listed_classes == 0 || class_names_read(&names, set->path) != OK) return false;
    bool given = !class_names_are_numbers(&names);
    class_names_free(&names);
    return given;
}

/* Returns a list of the labels that occur, such as "0, 10, 20, 30", shortened if it is long. base:
 * label of class 0. Owner: the caller. */
static char *labels_text(const LabelUse *use, int64_t base)
{
    enum { SHOWN = 8 };
    TextList list;
    text_list_begin(&list, SHOWN);
    for (int64_t i = 0; i < DATA_CLASSES_SEEN; ++i) {
        char number[24];
        if (!(use->seen[i / 64] >> i % 64 & 1)) continue;
        snprintf(number, sizeof number, "%lld", (long long)(i + base));
        text_list_add(&list, number);
    }
    return text_list_end(&list);
}

/* Returns a warning that most classes have no sample, owned by the caller. For labels with several
 * gaps. */
static char *gaps_text(const DataSet *set, const LabelUse *use)
{
    char *labels = labels_text(use, set->label_base);
    char *line = mem_format("%s: its labels are %s: %lld of %lld classes have no sample. If "
                            "labels are not the numbers of classes, renumber them 0 to %lld",
                            set->path, labels, (long long)(set->classes - use->count),
                            (long long)set->classes, (long long)use->count - 1);
    mem_free(&labels);
    return line;
}

/* Returns the warning about the targets of a set, or of its first file if it has several. Owner:
 * the caller. */
static char *targets_warning(const DataSet *set)
{
    if (set->file_count == 0) return number_labels_warning(set, &set->y);
    DataSet *file = mem_new(sizeof *file);
    data_set_file(set, 0, file);
    char *line = number_labels_warning(file, &file->y);
    mem_free(&file);
    return line;
}

char *data_set_label_warning(const DataSet *set, const Config *config, const LabelUse *use)
{
    if (set->target_width > 0) return targets_warning(set);
    int64_t base = set->label_base, largest = use->most + base;
    bool largest_may_mean_no_label =
        use->second >= 0 && use->most - use->second > 1 && means_no_label(largest);
    if (use->most < 0 || classes_are_given(set, config)) return NULL;
    /* dense: labels follow one another without gaps. dense_below: all labels except the largest
     * follow one another, and the largest may mean 'no label'. */
    bool dense = use->count == use->most - use->least + 1;
    bool dense_below = largest_may_mean_no_label && use->count == use->second - use->least + 2;
    if (!dense && !dense_below && 2 * use->count < use->most + 1) return gaps_text(set, use);
    if (use->least == 0 && !dense_below) return NULL;
    if (!dense_below)
        return mem_format("%s: labels are %lld to %lld, so %lld of %lld classes have no sample: "
                          "if labels count from %lld, set data.label_base: %lld",
                          set->path, (long long)(use->least + base), (long long)largest,
                          (long long)(set->classes - use->count), (long long)set->classes,
                          (long long)(use->least + base), (long long)(use->least + base));
    return mem_format("%s: labels are %lld to %lld, and %lld, so %lld of %lld classes have no "
                      "sample: if %lld means 'no label', leave those samples out with `weft data "
                      "import hdf5 --drop-label %lld`%s",
                      set->path, (long long)(use->least + base), (long long)(use->second + base),
                      (long long)largest, (long long)(set->classes - use->count),
                      (long long)set->classes, (long long)largest, (long long)largest,
                      use->least > 0 ? ", and set data.label_base" : "");
}

/* Returns whether the labels of the two sets are matched by number. */
static bool matched_by_number(const DataSet *a, const DataSet *b)
{
    ClassNames names[2] = {{0}, {0}};
    bool by_number = data_set_class_names(a, &names[0]) != OK ||
                     data_set_class_names(b, &names[1]) != OK ||
                     class_names_are_numbers(&names[0]) || class_names_are_numbers(&names[1]);
    class_names_free(&names[0]);
    class_names_free(&names[1]);
    return by_number;
}

char *data_label_shift_warning(const DataSet *set, const LabelUse *use, const DataSet *like,
                               const LabelUse *like_use)
{
    const int64_t base = set->label_base;
    if (like_use->least != 0 || use->least != 1 || !matched_by_number(set, like)) return NULL;
    return mem_format("%s: labels are %lld to %lld, and those of %s are %lld to %lld: if the first "
                      "count from %lld, every sample is taken for the class after its own: number "
                      "both from %lld",
                      set->path, (long long)(use->least + base), (long long)(use->most + base),
                      like->path, (long long)(like_use->least + base),
                      (long long)(like_use->most + base), (long long)(base + 1), (long long)base);
}

Status data_files_compare_labels(const DataSet *set, char **line)
{
    DataSet *first = mem_new(sizeof *first), *file = mem_new(sizeof *file);
    LabelUse *use = mem_new(2 * sizeof *use);
    Status st = OK;
    *line = NULL;
    if (set->file_count) data_set_file(set, 0, first);
    if (set->file_count) st = data_set_count_labels(first, &use[0]);
    for (int i = 1; st == OK && !*line && i < set->file_count; ++i) {
        data_set_file(set, i, file);
        st = data_set_count_labels(file, &use[1]);
        if (st == OK) *line = data_label_shift_warning(file, &use[1], first, &use[0]);
    }
    mem_free(&use);
    mem_free(&first);
    mem_free(&file);
    return st;
}

/* Errors are ignored here; they are reported when the set is used. */
void data_import_warn_of_labels(const char *out)
{
    DataSet *set = mem_new(sizeof *set);
    LabelUse *use = mem_new(sizeof *use);
    if (data_set_open(set, NULL, out) == OK && !data_has_tokens(set) && set->classes > 0 &&
        data_set_count_labels(set, use) == OK)
        data_warn(data_set_label_warning(set, NULL, use));
    mem_free(&use);
    mem_free(&set);
}
