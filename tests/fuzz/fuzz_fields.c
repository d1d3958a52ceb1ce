/* Target: fields from an untrusted source, which are opened, printed, checked and measured, and a
 * sample of which is read. The first byte selects variables and windows. HDF5 parses the file in
 * another process, which may crash. */
#include "fuzz.h"
#include "data.h"

static void use(DataSet *set, FILE *nowhere)
{
    Reader *reader = NULL;
    char text[DATA_FINGERPRINT];
    (void)data_set_print(set, nowhere, false);
    (void)data_set_print(set, nowhere, true);
    if (data_set_check(set, 0) == OK && data_set_fingerprint(set, text) != OK) fail_message();
    if (data_fields_measure(set, 1) == OK && reader_new(&reader, set) == OK) {
        float *x = mem_new((size_t)set->x.sample_bytes);
        void *y = mem_new((size_t)set->y.sample_bytes);
        const bool labels = data_has_label_fields(set);
        fuzz_took(reader_get(reader, set->samples - 1, x, labels ? y : NULL, labels ? NULL : y));
        mem_free(&x);
        mem_free(&y);
    }
    reader_free(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { BYTES_MOST = 64 << 20 };
    static FILE *nowhere;
    static DataSet set;
    static double level[] = {850};
    ConfigVariable variable[] = {{.role = FIELD_INPUT, .name = (char *)"h"},
                                 {.role = FIELD_TARGET, .name = (char *)"h"},
                                 {.role = FIELD_STATIC, .name = (char *)"s"},
                                 {.role = FIELD_INPUT, .name = (char *)"/g/u"}};
    ConfigVariable constant[] = {{.role = FIELD_INPUT, .name = (char *)"h"},
                                 {.role = FIELD_TARGET, .name = (char *)"h"},
                                 {.role = FIELD_EXTRA, .name = (char *)"latitude"},
                                 {.role = FIELD_EXTRA, .name = (char *)"year"},
                                 {.role = FIELD_SCALAR, .name = (char *)"time"}};
    double next[] = {1};
    if (size < 1) return 0;
    fuzz_share_counters();
    if (!nowhere && !(nowhere = fopen("/dev/null", "w"))) die("/dev/null");
    Config c = {.path = (char *)"fuzz.yaml"};
    if (data[0] & 1) variable[3].levels = (ConfigList){.count = 1, .value = level};
    c.data.variables = (ConfigVariables){.count = data[0] & 2 ? 4 : 2, .item = variable};
    if (data[0] & 8)
        c.data.variables = (ConfigVariables){.count = data[0] & 2 ? 5 : 4, .item = constant};
    if (data[0] & 16) {
        c.data.variables.item[1].classes = 3;
        c.data.variables.item[1].has_ignore = data[0] & 2;
        c.data.variables.item[1].ignore = 7;
    }
    c.data.mask = (char *)"";
    c.data.window.targets = (ConfigList){.count = 1, .value = next};
    c.data.predict = data[0] & 4 ? PREDICT_CHANGE : PREDICT_VALUE;
    c.data.normalize = true;
    c.train.rollout = 1;
    if (data_set_open(&set, &c, fuzz_file(data + 1, size - 1)) != OK) return 0;
    /* large sets are accepted, but take too long for a fuzzer */
    if (set.samples * (set.x.sample_bytes + set.y.sample_bytes) < BYTES_MOST) use(&set, nowhere);
    data_set_fini(&set);
    return 0;
}
