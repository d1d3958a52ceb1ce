/* Target: a data set from an untrusted source, which is opened, printed and checked, and a sample
 * of which is read. The first byte selects how the configuration names the file. HDF5 parses the
 * file in another process, which may crash. */
#include "fuzz.h"
#include "data.h"

static void use(const DataSet *set, FILE *nowhere)
{
    Reader *reader = NULL;
    char text[DATA_FINGERPRINT];
    (void)data_set_print(set, nowhere, true);
    if (data_set_check(set, 0) == OK && data_set_fingerprint(set, text) != OK) fail_message();
    if (reader_new(&reader, set) == OK) {
        int64_t rows = data_has_tokens(set) ? set->context : 1;
        uint8_t *x = mem_new((size_t)(rows * set->x.sample_bytes));
        int32_t label;
        const bool labelled = set->target_width == 0 && !data_has_boxes(set);
        fuzz_took(reader_get(reader, set->samples - 1, x, labelled ? &label : NULL, NULL));
        mem_free(&x);
    }
    reader_free(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static FILE *nowhere;
    DataSet set;
    if (size < 1) return 0;
    fuzz_share_counters();
    if (!nowhere && !(nowhere = fopen("/dev/null", "w"))) die("/dev/null");
    Config c = {.path = (char *)"fuzz.yaml"};
    c.data.x = (char *)(data[0] & 1 ? "/g/x" : "/x");
    c.data.y = (char *)(data[0] & 2 ? "/g/y" : "/y");
    c.data.normalize = !(data[0] & 4);
    c.model.context = 4;
    if (data_set_open(&set, &c, fuzz_file(data + 1, size - 1)) == OK) use(&set, nowhere);
    return 0;
}
