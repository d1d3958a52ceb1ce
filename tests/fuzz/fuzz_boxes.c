/* Target: labels of boxes. The first byte selects COCO's JSON, with unusable boxes refused or left
 * out, or the scanner of XML; the other bytes are the file. */
#include "fuzz.h"
#include "data/boxes/box_set.h"
#include "data/boxes/xml_scan.h"

static Status read_coco(const char *file, bool skip)
{
    BoxImport import = {.labels = file, .images = ".", .skip_broken = skip, .allow_empty = true};
    BoxSet set = {.import = &import, .source = file};
    Status st = box_format_coco.read(&set);
    if (st == OK) st = box_set_order(&set);
    if (st == OK) st = box_set_check_labels(&set);
    uint8_t *left_out = mem_new((size_t)set.pictures + 1);
    if (st == OK) st = box_set_close(&set, left_out);
    mem_free(&left_out);
    box_set_fini(&set);
    return st;
}

static Status scan_xml(const uint8_t *data, size_t size)
{
    char *text = mem_new(size + 1);
    memcpy(text, data, size);
    XmlScan scan = {.name = "fuzz", .text = text, .at = text};
    bool more = true;
    Status st = OK;
    while (st == OK && more) st = xml_scan_next(&scan, &more);
    mem_free(&text);
    return st;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    if (data[0] & 2)
        fuzz_took(scan_xml(data + 1, size - 1));
    else
        fuzz_took(read_coco(fuzz_file(data + 1, size - 1), data[0] & 1));
    return 0;
}
