/* Writes hardware as JSON, and reads it with the reader of YAML, which includes JSON. */
#include "hardware_file.h"
#include "value.h"

#include "base/escape.h"

#include <limits.h>
#include <string.h>

static const char *const kind_names[] = {PART_KINDS(LIST_NAME)};

#define HARDWARE_KEYS(W)                                                                           \
    W(KEY_CPU, "cpu")                                                                              \
    W(KEY_PARTS, "parts")                                                                          \
    W(KEY_CARDS, "cards")                                                                          \
    W(KEY_GPUS, "gpus")                                                                            \
    W(KEY_NOTE, "note")
enum { HARDWARE_KEYS(LIST_CONSTANT) KEY_COUNT };
static const char *const key_names[KEY_COUNT] = {HARDWARE_KEYS(LIST_NAME)};

#define PART_KEYS(W)                                                                               \
    W(PART_KEY_KIND, "kind")                                                                       \
    W(PART_KEY_NUMBER, "number")                                                                   \
    W(PART_KEY_PARENT, "parent")                                                                   \
    W(PART_KEY_CPUS, "cpus")                                                                       \
    W(PART_KEY_BYTES, "bytes")
enum { PART_KEYS(LIST_CONSTANT) PART_KEY_COUNT, PART_KEYS_REQUIRED = PART_KEY_BYTES };
static const char *const part_keys[PART_KEY_COUNT] = {PART_KEYS(LIST_NAME)};

#define CARD_KEYS(W)                                                                               \
    W(CARD_KEY_NAME, "name")                                                                       \
    W(CARD_KEY_RATE, "bytes_s")                                                                    \
    W(CARD_KEY_UP, "up")                                                                           \
    W(CARD_KEY_NUMA, "numa")
enum { CARD_KEYS(LIST_CONSTANT) CARD_KEY_COUNT };
static const char *const card_keys[CARD_KEY_COUNT] = {CARD_KEYS(LIST_NAME)};

#define GPU_KEYS(W)                                                                                \
    W(GPU_KEY_NAME, "name")                                                                        \
    W(GPU_KEY_BUS, "bus")                                                                          \
    W(GPU_KEY_NUMA, "numa")                                                                        \
    W(GPU_KEY_LINKS, "links")                                                                      \
    W(GPU_KEY_CARDS, "cards")
enum { GPU_KEYS(LIST_CONSTANT) GPU_KEY_COUNT };
static const char *const gpu_keys[GPU_KEY_COUNT] = {GPU_KEYS(LIST_NAME)};

/* ---- writing ---- */

static void print_part(Json *json, const Part *part)
{
    char cpus[CPUS_TEXT_BYTES];
    json_object(json, NULL);
    json_text(json, part_keys[PART_KEY_KIND], kind_names[part->kind]);
    json_int(json, part_keys[PART_KEY_NUMBER], part->number);
    json_int(json, part_keys[PART_KEY_PARENT], part->parent);
    json_text(json, part_keys[PART_KEY_CPUS], cpus_write(cpus, sizeof cpus, &part->cpus));
    if (part->bytes) json_int(json, part_keys[PART_KEY_BYTES], part->bytes);
    json_end(json);
}

static void print_card(Json *json, const Card *card)
{
    json_object(json, NULL);
    json_text(json, card_keys[CARD_KEY_NAME], card->name);
    json_real(json, card_keys[CARD_KEY_RATE], card->bytes_per_s);
    json_bool(json, card_keys[CARD_KEY_UP], card->up);
    json_int(json, card_keys[CARD_KEY_NUMA], card->numa);
    json_end(json);
}

static void print_gpu(Json *json, const Hardware *h, const Gpu *gpu)
{
    json_object(json, NULL);
    json_text(json, gpu_keys[GPU_KEY_NAME], gpu->name);
    json_text(json, gpu_keys[GPU_KEY_BUS], gpu->bus);
    json_int(json, gpu_keys[GPU_KEY_NUMA], gpu->numa);
    json_array(json, gpu_keys[GPU_KEY_LINKS]);
    for (int k = 0; k < h->gpu_count; ++k) json_text(json, NULL, gpu->gpu_link[k]);
    json_end(json);
    json_array(json, gpu_keys[GPU_KEY_CARDS]);
    for (int k = 0; k < h->card_count; ++k)
        json_text(json, NULL, gpu->card_link ? gpu->card_link[k] : "");
    json_end(json);
    json_end(json);
}

void hardware_print(Json *json, const Hardware *h)
{
    json_object(json, NULL);
    json_text(json, key_names[KEY_CPU], h->cpu ? h->cpu : "");
    json_array_by_line(json, key_names[KEY_PARTS]);
    for (int i = 0; i < h->part_count; ++i) print_part(json, &h->part[i]);
    json_end(json);
    json_array_by_line(json, key_names[KEY_CARDS]);
    for (int i = 0; i < h->card_count; ++i) print_card(json, &h->card[i]);
    json_end(json);
    json_array_by_line(json, key_names[KEY_GPUS]);
    for (int i = 0; i < h->gpu_count; ++i) print_gpu(json, h, &h->gpu[i]);
    json_end(json);
    json_text(json, key_names[KEY_NOTE], h->note ? h->note : "");
    json_end(json);
}

/* ---- reading ---- */

static Status read_kind(const char *path, const YamlNode *n, PartKind *kind)
{
    for (int i = 0; i < PART_KIND_COUNT; ++i)
        if (n->kind == YAML_SCALAR && strcmp(n->text, kind_names[i]) == 0)
            return *kind = (PartKind)i, OK;
    return value_fail(path, n, "expected package, numa, l3, l2 or core");
}

static Status read_part(Hardware *h, const char *path, const YamlNode *n)
{
    Part part = {0};
    const YamlNode *value[PART_KEY_COUNT];
    double bytes = 0;
    TRY(value_keys(path, n, part_keys, PART_KEY_COUNT, PART_KEYS_REQUIRED, value));
    TRY(read_kind(path, value[PART_KEY_KIND], &part.kind));
    TRY(value_whole(path, value[PART_KEY_NUMBER], 0, INT_MAX, &part.number));
    TRY(value_whole(path, value[PART_KEY_PARENT], -1, h->part_count - 1, &part.parent));
    const YamlNode *cpus = value[PART_KEY_CPUS];
    if (cpus->kind != YAML_SCALAR || !cpus_read(cpus->text, &part.cpus) || !CPU_COUNT(&part.cpus))
        return value_fail(path, cpus, "expected CPUs below 1024, as \"0-3,8\"");
    if (part.parent >= 0 && !cpus_inside(&part.cpus, &h->part[part.parent].cpus))
        return value_fail(path, cpus, "the parent does not contain these CPUs");
    if (value[PART_KEY_BYTES]) TRY(value_number(path, value[PART_KEY_BYTES], 0, 1e18, &bytes));
    part.bytes = (int64_t)bytes;
    if (part.parent >= 0 && (h->part[part.parent].kind == PART_CORE ||
                             h->part[part.parent].depth + 1 == PART_DEPTH_MAX))
        return value_fail(path, value[PART_KEY_PARENT],
                          "a core, or a part at depth 8, has no parts");
    hardware_add(h, part);
    return OK;
}

static Status read_card(const char *path, const YamlNode *n, Card *card)
{
    const YamlNode *value[CARD_KEY_COUNT];
    TRY(value_keys(path, n, card_keys, CARD_KEY_COUNT, CARD_KEY_COUNT, value));
    const YamlNode *name = value[CARD_KEY_NAME];
    if (name->kind != YAML_SCALAR || strlen(name->text) >= sizeof card->name)
        return value_fail(path, name, "expected a name of at most 47 bytes");
    text_escape_to(card->name, sizeof card->name, name->text);
    card->physical = true;
    TRY(value_number(path, value[CARD_KEY_RATE], 0, 1e15, &card->bytes_per_s));
    TRY(value_flag(path, value[CARD_KEY_UP], &card->up));
    return value_whole(path, value[CARD_KEY_NUMA], -1, INT_MAX, &card->numa);
}

static bool is_link_word(const char *word)
{
    static const char *const words[] = {"X", "PIX", "PXB", "PHB", "NODE", "SYS"};
    for (size_t i = 0; i < sizeof words / sizeof *words; ++i)
        if (strcmp(word, words[i]) == 0) return true;
    size_t digits = strspn(word + (strncmp(word, "NV", 2) == 0 ? 2 : 0), "0123456789");
    return strncmp(word, "NV", 2) == 0 && digits >= 1 && digits <= 3 && !word[2 + digits];
}

static Status read_gpu(Hardware *h, const char *path, const YamlNode *n)
{
    const YamlNode *value[GPU_KEY_COUNT];
    char *name = NULL, *bus = NULL;
    int numa = -1;
    TRY(value_keys(path, n, gpu_keys, GPU_KEY_COUNT, GPU_KEY_COUNT, value));
    TRY(value_whole(path, value[GPU_KEY_NUMA], -1, INT_MAX, &numa));
    Status st = value_text(path, value[GPU_KEY_NAME], &name);
    if (st == OK) st = value_text(path, value[GPU_KEY_BUS], &bus);
    if (st == OK) {
        hardware_add_gpu(h, name, bus, numa);
        return OK;
    }
    mem_free(&name);
    mem_free(&bus);
    return st;
}

/* Reads the links of GPU i; call it when all GPUs have been added. */
static Status read_links(Hardware *h, const char *path, const YamlNode *gpu, int i)
{
    const YamlNode *value[GPU_KEY_COUNT];
    TRY(value_keys(path, gpu, gpu_keys, GPU_KEY_COUNT, GPU_KEY_COUNT, value));
    const YamlNode *links = value[GPU_KEY_LINKS], *cards = value[GPU_KEY_CARDS];
    TRY(value_texts(path, links, "GPU", h->gpu_count, h->gpu[i].gpu_link));
    for (int k = 0; k < h->gpu_count; ++k)
        if (!is_link_word(h->gpu[i].gpu_link[k]) ||
            (k == i) != (strcmp(h->gpu[i].gpu_link[k], "X") == 0))
            return value_fail(path, links->item[k],
                              "expected X for the GPU itself, else NV and a number, PIX, PXB, PHB, "
                              "NODE or SYS");
    h->gpu[i].card_link = mem_new(((size_t)h->card_count + 1) * sizeof *h->gpu[i].card_link);
    TRY(value_texts(path, cards, "network card", h->card_count, h->gpu[i].card_link));
    for (int k = 0; k < h->card_count; ++k)
        if (*h->gpu[i].card_link[k] && !is_link_word(h->gpu[i].card_link[k]))
            return value_fail(path, cards->item[k], "expected PIX, PXB, PHB, NODE, SYS or nothing");
    return OK;
}

static Status read_lists(Hardware *h, const char *path, const YamlNode *const *value)
{
    enum { GPUS_MAX = 1024 };
    const YamlNode *parts = value[KEY_PARTS], *cards = value[KEY_CARDS], *gpus = value[KEY_GPUS];
    for (int key = KEY_PARTS; key <= KEY_GPUS; ++key)
        if (value[key]->kind != YAML_LIST) return value_fail(path, value[key], "expected a list");
    if (parts->count > PARTS_MAX) return value_fail(path, parts, "expected at most 16384 parts");
    for (int i = 0; i < parts->count; ++i) TRY(read_part(h, path, parts->item[i]));
    h->card = mem_new(((size_t)cards->count + 1) * sizeof *h->card);
    for (; h->card_count < cards->count; ++h->card_count)
        TRY(read_card(path, cards->item[h->card_count], &h->card[h->card_count]));
    if (gpus->count > GPUS_MAX) return value_fail(path, gpus, "expected at most 1024 GPUs");
    for (int i = 0; i < gpus->count; ++i) TRY(read_gpu(h, path, gpus->item[i]));
    for (int i = 0; i < gpus->count; ++i) TRY(read_links(h, path, gpus->item[i], i));
    return OK;
}

Status hardware_from_yaml(Hardware *h, const char *path, const YamlNode *n)
{
    const YamlNode *value[KEY_COUNT];
    *h = (Hardware){0};
    Status st = value_keys(path, n, key_names, KEY_COUNT, KEY_COUNT, value);
    if (st == OK) st = value_text(path, value[KEY_CPU], &h->cpu);
    if (st == OK) st = value_text(path, value[KEY_NOTE], &h->note);
    if (st == OK) st = read_lists(h, path, value);
    if (st != OK) hardware_fini(h);
    return st;
}
