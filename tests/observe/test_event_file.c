/* TensorBoard's event files, read by an independent reader of the published formats: TFRecord
 * framing with a bit-by-bit CRC-32C, and the wire format of Protocol Buffers. */
#include "harness.h"
#include "observe/observer.h"

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>

static char folder[64];
static unsigned char bytes[1 << 16];
static size_t count;

static void begin(void)
{
    snprintf(folder, sizeof folder, "/tmp/weft-test-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
}

static int files(char *name)
{
    DIR *dir = opendir(folder);
    int found = 0;
    for (struct dirent *item; (item = readdir(dir));)
        if (strstr(item->d_name, "tfevents")) {
            ++found;
            if (name) snprintf(name, 300, "%s", item->d_name);
        }
    closedir(dir);
    return found;
}

static void read_file(void)
{
    char name[300] = "", path[400];
    CU_ASSERT_EQUAL(files(name), 1);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *in = fopen(path, "rb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(in);
    count = fread(bytes, 1, sizeof bytes, in);
    fclose(in);
}

static void end(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    CU_ASSERT_EQUAL(system(command), 0);
}

/* ---- the reader ---- */

static uint32_t slow_masked_crc(const unsigned char *p, size_t n)
{
    uint32_t crc = 0xFFFFFFFF;
    for (size_t i = 0; i < n; ++i)
        for (int bit = 0; bit < 8; ++bit) {
            uint32_t top = (crc ^ (uint32_t)(p[i] >> bit)) & 1;
            crc = (crc >> 1) ^ (top ? 0x82F63B78 : 0);
        }
    crc = ~crc;
    return ((crc >> 15) | (crc << 17)) + 0xA282EAD8;
}

static uint64_t fixed(const unsigned char *p, int n)
{
    uint64_t value = 0;
    for (int i = n - 1; i >= 0; --i) value = value << 8 | p[i];
    return value;
}

typedef struct Event {
    double wall_s;
    int64_t step;
    char version[64], tag[256];
    float value;
    int session, scalars;
    /* a picture's height, width, colours and bytes */
    int64_t picture[3];
    char png[16];
} Event;

typedef struct Cursor {
    const unsigned char *at, *end;
} Cursor;

static uint64_t varint(Cursor *c)
{
    uint64_t value = 0;
    for (int shift = 0; c->at < c->end && shift < 64; shift += 7) {
        unsigned char byte = *c->at++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) break;
    }
    return value;
}

/* Reads one field: its number, wire type and content. */
static int field(Cursor *c, int *wire, uint64_t *number, Cursor *inner)
{
    uint64_t key = varint(c);
    *wire = (int)(key & 7);
    *number = 0;
    if (*wire == 0) *number = varint(c);
    if (*wire == 1 || *wire == 5) {
        int n = *wire == 1 ? 8 : 4;
        *number = fixed(c->at, n);
        c->at += n;
    }
    if (*wire == 2) {
        uint64_t n = varint(c);
        *inner = (Cursor){c->at, c->at + n};
        c->at += n;
    }
    return (int)(key >> 3);
}

static void read_picture(Cursor c, Event *event)
{
    while (c.at < c.end) {
        int wire;
        uint64_t number;
        Cursor inner;
        const int id = field(&c, &wire, &number, &inner);
        if (id <= 3 && wire == 0) event->picture[id - 1] = (int64_t)number;
        if (id == 4 && wire == 2)
            snprintf(event->png, sizeof event->png, "%.*s", (int)(inner.end - inner.at),
                     (const char *)inner.at);
    }
}

static void read_value(Cursor c, Event *event)
{
    while (c.at < c.end) {
        int wire;
        uint64_t number;
        Cursor inner;
        int id = field(&c, &wire, &number, &inner);
        if (id == 1 && wire == 2)
            snprintf(event->tag, sizeof event->tag, "%.*s", (int)(inner.end - inner.at),
                     (const char *)inner.at);
        uint32_t bits = (uint32_t)number;
        if (id == 2 && wire == 5) memcpy(&event->value, &bits, 4);
        if (id == 4 && wire == 2) read_picture(inner, event);
    }
    ++event->scalars;
}

static Event read_event(Cursor c)
{
    Event event = {.step = 0};
    while (c.at < c.end) {
        int wire, wire2;
        uint64_t number, number2;
        Cursor inner, inner2;
        int id = field(&c, &wire, &number, &inner);
        if (id == 1 && wire == 1) memcpy(&event.wall_s, &number, 8);
        if (id == 2 && wire == 0) event.step = (int64_t)number;
        if (id == 3 && wire == 2)
            snprintf(event.version, sizeof event.version, "%.*s", (int)(inner.end - inner.at),
                     (const char *)inner.at);
        if (id == 5 && wire == 2 && field(&inner, &wire2, &number2, &inner2) == 1)
            read_value(inner2, &event);
        if (id == 7 && wire == 2 && field(&inner, &wire2, &number2, &inner2) == 1)
            event.session = (int)number2;
    }
    return event;
}

/* Reads all records; fails if the framing is wrong. */
static int read_events(Event *event, int room)
{
    size_t at = 0;
    int found = 0;
    while (at < count && found < room) {
        CU_ASSERT_FATAL(at + 12 <= count);
        uint64_t n = fixed(bytes + at, 8);
        CU_ASSERT_EQUAL(fixed(bytes + at + 8, 4), slow_masked_crc(bytes + at, 8));
        CU_ASSERT_FATAL(at + 16 + n <= count);
        CU_ASSERT_EQUAL(fixed(bytes + at + 12 + n, 4), slow_masked_crc(bytes + at + 12, n));
        event[found++] = read_event((Cursor){bytes + at + 12, bytes + at + 12 + n});
        at += 16 + n;
    }
    CU_ASSERT_EQUAL(at, count);
    return found;
}

/* ---- the tests ---- */

/* Known values: RFC 3720 appendix B.4, and the usual check string. */
static void test_crc(void)
{
    unsigned char data[32];
    CU_ASSERT_EQUAL(crc32c("123456789", 9), 0xE3069283);
    CU_ASSERT_EQUAL(crc32c("", 0), 0);
    memset(data, 0, 32);
    CU_ASSERT_EQUAL(crc32c(data, 32), 0x8A9136AA);
    memset(data, 255, 32);
    CU_ASSERT_EQUAL(crc32c(data, 32), 0x62A8AB43);
    for (int i = 0; i < 32; ++i) data[i] = (unsigned char)i;
    CU_ASSERT_EQUAL(crc32c(data, 32), 0x46DD794E);
}

static void test_records(void)
{
    static Event event[300];
    begin();
    AppendFile file;
    CHECK_OK(event_file_open(&file, folder, NULL));
    event_file_session(&file, 500);
    for (int i = 0; i < 200; ++i)
        event_file_scalar(&file, i % 2 ? "train/loss" : "eval/top1", (int64_t)i * i * i * 1000,
                          1.5e9 + i, 1.0f / (float)(i + 1));
    event_file_scalar(&file, "odd", -1, 0, -INFINITY);
    uint8_t png[] = "the bytes";
    const EvalPicture picture = {
        .tag = "fields/h", .width = 300, .height = 20, .png = png, .bytes = sizeof png - 1};
    event_file_picture(&file, &picture, 7, 1.5e9);
    CHECK_OK(append_close(&file));
    CU_ASSERT_PTR_NULL(file.path);
    read_file();
    CU_ASSERT_EQUAL(read_events(event, 300), 204);
    CU_ASSERT_STRING_EQUAL(event[0].version, "brain.Event:2");
    CU_ASSERT(fabs(event[0].wall_s - wall_s()) < 60);
    CU_ASSERT_EQUAL(event[1].session, 1);
    CU_ASSERT_EQUAL(event[1].step, 500);
    for (int i = 0; i < 200; ++i) {
        CU_ASSERT_EQUAL(event[i + 2].scalars, 1);
        CU_ASSERT_STRING_EQUAL(event[i + 2].tag, i % 2 ? "train/loss" : "eval/top1");
        CU_ASSERT_EQUAL(event[i + 2].step, (int64_t)i * i * i * 1000);
        CU_ASSERT_EQUAL(event[i + 2].wall_s, 1.5e9 + i);
        CU_ASSERT_EQUAL(event[i + 2].value, 1.0f / (float)(i + 1));
    }
    CU_ASSERT_EQUAL(event[202].step, -1);
    CU_ASSERT(isinf(event[202].value));
    CU_ASSERT_EQUAL(event[203].step, 7);
    CU_ASSERT_STRING_EQUAL(event[203].tag, "fields/h");
    CU_ASSERT_EQUAL(event[203].picture[0], 20);
    CU_ASSERT_EQUAL(event[203].picture[1], 300);
    CU_ASSERT_EQUAL(event[203].picture[2], 3);
    CU_ASSERT_STRING_EQUAL(event[203].png, "the bytes");
    end();
}

/* events.out.tfevents.<seconds>.<host>.<pid>.weft, and never the same file twice. */
static void test_name(void)
{
    char name[300], ending[64];
    begin();
    AppendFile a, b;
    CHECK_OK(event_file_open(&a, folder, NULL));
    CU_ASSERT_EQUAL(files(name), 1);
    CU_ASSERT_EQUAL(strncmp(name, "events.out.tfevents.", 20), 0);
    CU_ASSERT_EQUAL(strspn(name + 20, "0123456789"), 10);
    snprintf(ending, sizeof ending, ".%ld.weft", (long)getpid());
    CU_ASSERT_STRING_EQUAL(name + strlen(name) - strlen(ending), ending);
    CHECK_OK(event_file_open(&b, folder, NULL));
    CU_ASSERT_EQUAL(files(NULL), 2);
    CHECK_OK(append_close(&a));
    CHECK_OK(append_close(&b));
    CHECK_OK(append_close(&b));
    end();
}

/* The disk fills up after each possible number of bytes: in the end each record is there once,
 * complete. */
static void test_full_disk(void)
{
    static Event event[300];
    struct rlimit old, low;
    begin();
    AppendFile file;
    CHECK_OK(event_file_open(&file, folder, NULL));
    getrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, SIG_IGN);
    int failures = 0;
    for (int i = 0; i < 100; ++i) {
        event_file_scalar(&file, "train/loss", i, 1.5e9, 0.5f);
        low = (struct rlimit){(rlim_t)i * 37, old.rlim_max};
        setrlimit(RLIMIT_FSIZE, &low);
        Status status = append_flush(&file);
        setrlimit(RLIMIT_FSIZE, &old);
        failures += status == ERR_IO;
        if (status != OK) CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), folder));
    }
    /* a record is longer than 37 bytes */
    CU_ASSERT(failures > 90);
    CHECK_OK(append_close(&file));
    read_file();
    CU_ASSERT_EQUAL(read_events(event, 300), 101);
    for (int i = 0; i < 100; ++i) CU_ASSERT_EQUAL(event[i + 1].step, i);
    end();
}

/* Numbers of a detector's evaluation: the loss, its parts, and COCO's that are defined. */
static void test_boxes(void)
{
    static Event event[300];
    EvalLine line = {.step = 7, .loss = 2, .top1 = NAN, .top5 = NAN, .has_boxes = true};
    begin();
    Observer *observer;
    CHECK_OK(observer_new(&observer, folder, NULL, 0, false));
    line.coco[COCO_AP_LARGE] = line.coco[COCO_AR_LARGE] = -1;
    line.part[LOSS_PART_CLASS] = 0.25;
    observer_eval(observer, &line);
    observer_free(&observer);
    read_file();
    const int events = read_events(event, 300), numbers = 1 + COCO_NUMBERS - 2 + LOSS_PARTS;
    CU_ASSERT_EQUAL_FATAL(events, 2 + numbers);
    for (int i = 2; i < events; ++i) CU_ASSERT_PTR_NULL(strstr(event[i].tag, "large"));
    CU_ASSERT_STRING_EQUAL(event[events - 1].tag, "eval/class_loss");
    CU_ASSERT_EQUAL(event[events - 1].value, 0.25);
    end();
}

static void test_errors(void)
{
    begin();
    AppendFile file;
    CHECK_FAILS(event_file_open(&file, "/nowhere/at/all", NULL), ERR_IO, "/nowhere/at/all");
    CU_ASSERT_PTR_NULL(file.path);
    end();
}

TEST_MAIN("event_file", {"crc32c", test_crc}, {"records", test_records}, {"names", test_name},
          {"a full disk", test_full_disk}, {"errors", test_errors}, {"boxes", test_boxes})
