/* Tests means and deviations against those of whole numbers, whose sums are exact: large means,
 * tiny and huge values, an outlier first or last, constants; by blocks; and through the imports
 * that use them. */
#include "fixture.h"

#include "data/data_private.h"
#include "data/csv/moments.h"

#include <float.h>
#include <math.h>
#include <sys/stat.h>

enum { COUNT = 1000, BLOCKS = 7 };
__extension__ typedef __int128 Wide;

/* Whole numbers from 0 to 600 without an order. */
static int64_t whole_of(int64_t i)
{
    return i * i * 7919 % 601;
}

/* Deviation of whole_of, from exact sums. */
static double whole_deviation(int64_t count)
{
    Wide sum = 0, squares = 0;
    for (int64_t i = 0; i < count; ++i) sum += whole_of(i), squares += whole_of(i) * whole_of(i);
    return sqrt((double)(count * squares - sum * sum)) / (double)count;
}

static double whole_mean(int64_t count)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += whole_of(i);
    return (double)sum / (double)count;
}

static bool near(double x, double right)
{
    bool good = fabs(x - right) <= 1e-14 * fabs(right);
    if (!good) printf("  %.17g is not %.17g\n", x, right);
    return good;
}

static void magnitudes(void)
{
    static const double bases[] = {0, 1.7e9, -2460000, 0x1p50, -0x1p52};
    static const double scales[] = {1, 0x1p-100, 0x1p100, 0x1p-700, 0x1p-1000, 0x1p900};
    for (size_t b = 0; b < sizeof bases / sizeof *bases; ++b)
        for (size_t s = 0; s < sizeof scales / sizeof *scales; ++s) {
            Moments all = {0}, block[BLOCKS] = {{0}}, joined = {0};
            for (int64_t i = 0; i < COUNT; ++i) {
                double x = (bases[b] + (double)whole_of(i)) * scales[s];
                moments_add(&all, x);
                /* The last block stays empty. */
                moments_add(&block[i * (BLOCKS - 1) / COUNT], x);
            }
            for (int i = 0; i < BLOCKS; ++i) moments_join(&joined, &block[i]);
            CU_ASSERT(near(moments_deviation(&all), whole_deviation(COUNT) * scales[s]));
            CU_ASSERT(near(moments_deviation(&joined), whole_deviation(COUNT) * scales[s]));
            double mean = (bases[b] + whole_mean(COUNT)) * scales[s];
            CU_ASSERT(near(moments_mean(&all), mean));
            CU_ASSERT(near(moments_mean(&joined), mean));
        }
}

/* One outlier: n values of x and one of x + d have a deviation of d sqrt(n) / (n + 1). */
static void outliers(void)
{
    static const double far[] = {1, 1e12, -3e9, 0x1p-60};
    for (size_t f = 0; f < sizeof far / sizeof *far; ++f)
        for (int place = 0; place < 3; ++place) {
            Moments m = {0};
            for (int64_t i = 0; i <= COUNT; ++i)
                moments_add(&m, i == place * COUNT / 2 ? far[f] : 0);
            CU_ASSERT(near(moments_deviation(&m), fabs(far[f]) * sqrt(COUNT) / (COUNT + 1)));
        }
}

/* Values of all magnitudes, the smallest first; only the largest matter. */
static void from_tiny_to_huge(void)
{
    static const double size[] = {0x1p-1070, 1e-200, 1, 1e200};
    Moments all = {0}, block[4] = {{0}};
    for (int s = 0; s < 4; ++s) {
        for (int i = 0; i < COUNT; ++i) {
            double x = i % 2 ? size[s] : -size[s];
            moments_add(&all, x);
            moments_add(&block[s], x);
        }
        CU_ASSERT(near(moments_deviation(&block[s]), size[s]));
        double right = size[s] / sqrt(s + 1);
        CU_ASSERT(near(moments_deviation(&all), right));
        if (s > 0) moments_join(&block[s], &block[s - 1]);
        CU_ASSERT(near(moments_deviation(&block[s]), right));
    }
    /* Two blocks of constants that differ little, and the largest doubles. */
    Moments a = {0}, b = {0}, wide = {0};
    moments_add(&a, 1e-200);
    moments_add(&b, 3e-200);
    moments_join(&a, &b);
    CU_ASSERT(near(moments_deviation(&a), 1e-200) && near(moments_mean(&a), 2e-200));
    moments_add(&wide, -DBL_MAX);
    moments_add(&wide, DBL_MAX);
    CU_ASSERT(near(moments_deviation(&wide), DBL_MAX));
}

static void constants(void)
{
    static const double same[] = {0, 0.1, 1e9 + 0.1, 1e-30, -1e30, 1e-300, 0x1p-1060};
    Moments none = {0};
    CU_ASSERT(moments_mean(&none) == 0 && moments_deviation(&none) == 1);
    for (size_t c = 0; c < sizeof same / sizeof *same; ++c) {
        Moments m = {0}, other = {0};
        for (int i = 0; i < COUNT; ++i) moments_add(i % 2 ? &m : &other, same[c]);
        moments_join(&m, &other);
        CU_ASSERT(moments_mean(&m) == same[c] && moments_deviation(&m) == 1);
    }
    /* Two neighbouring doubles are not taken for a constant. */
    Moments m = {0};
    for (int i = 0; i < COUNT; ++i) moments_add(&m, i % 2 ? 1e9 : nextafter(1e9, INFINITY));
    CU_ASSERT(near(moments_deviation(&m), (nextafter(1e9, INFINITY) - 1e9) / 2));
}

/* Reads the values of an array of a data set as doubles; owned by the caller. */
static double *array_of(const char *path, const char *name, int64_t count)
{
    double *value = mem_new((size_t)count * sizeof *value);
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t array = H5Dopen2(file, name, H5P_DEFAULT);
    CU_ASSERT(H5Dread(array, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, value) >= 0);
    H5Dclose(array);
    H5Fclose(file);
    return value;
}

/* Unix seconds, Julian dates, a tiny number and two constants. */
static void columns(void)
{
    enum { COLUMNS = 5 };
    const char *schema = in_scratch("s.yaml"), *text = in_scratch("t.csv");
    const char *out = in_scratch("t.h5");
    const double right[COLUMNS] = {whole_deviation(COUNT), whole_deviation(COUNT) / 1024,
                                   whole_deviation(COUNT) * 1e-200, 1, 1};
    FILE *f = fopen(schema, "w");
    fprintf(f, "columns:\n  y: label\n");
    for (int c = 0; c < COLUMNS; ++c) fprintf(f, "  c%d: {type: number, scale: standard}\n", c);
    fclose(f);
    f = fopen(text, "w");
    fprintf(f, "y,c0,c1,c2,c3,c4\n");
    for (int64_t i = 0; i < COUNT; ++i)
        fprintf(f, "%d,%lld,%.10f,%llde-200,1000000000.1,1e-30\n", (int)(i % 2),
                (long long)(1700000000 + whole_of(i)), 2460000 + (double)whole_of(i) / 1024,
                (long long)whole_of(i));
    fclose(f);
    CHECK_OK(import_run("csv", text, "--schema", schema, "-o", out, NULL));
    double *deviation = array_of(out, "/dense_deviation", COLUMNS);
    double *dense = array_of(out, "/dense", COUNT * COLUMNS);
    for (int c = 0; c < COLUMNS; ++c) {
        double sum = 0, squares = 0;
        /* The tiny numbers are decimal fractions, each rounded. */
        CU_ASSERT_DOUBLE_EQUAL(deviation[c] / right[c], 1, 1e-12);
        for (int i = 0; i < COUNT; ++i) sum += dense[i * COLUMNS + c];
        for (int i = 0; i < COUNT; ++i) squares += pow(dense[i * COLUMNS + c] - sum / COUNT, 2);
        CU_ASSERT_DOUBLE_EQUAL(sum / COUNT, 0, 1e-6);
        CU_ASSERT_DOUBLE_EQUAL(sqrt(squares / COUNT), c < 3 ? 1 : 0, 1e-6);
    }
    mem_free(&deviation);
    mem_free(&dense);
}

/* Ages may be any number: for two users a year apart each is one deviation from the mean. */
static void ages(void)
{
    char *folder = mem_text(in_scratch("ml"));
    const char *out = in_scratch("ml.h5");
    static const char ratings[] = "1\t1\t5\t10\n2\t1\t1\t20\n1\t2\t4\t30\n2\t2\t3\t40\n";
    static const char users[] = "1|1700000000|M|writer|1\n2|1700000001|F|other|2\n";
    CU_ASSERT_EQUAL(mkdir(folder, 0777), 0);
    write_bytes(in_scratch("ml/u.data"), ratings, sizeof ratings - 1);
    write_bytes(in_scratch("ml/u.user"), users, sizeof users - 1);
    CHECK_OK(import_run("movielens", folder, "-o", out, NULL));
    double *dense = array_of(out, "/dense", 4), *deviation = array_of(out, "/dense_deviation", 1);
    CU_ASSERT_EQUAL(deviation[0], 0.5);
    for (int i = 0; i < 4; ++i) CU_ASSERT_EQUAL(dense[i], i % 2 ? 1 : -1);
    mem_free(&deviation);
    mem_free(&dense);
    mem_free(&folder);
}

/* A channel with one different pixel is not constant, however many pixels there are. */
static void pixels(void)
{
    float mean, deviation;
    for (int64_t n = 2; n <= INT64_C(1) << 40; n *= 1024) {
        pixel_stats((uint64_t)n * 200 + 1, (uint64_t)(n - 1) * 40000 + 40401, n, &mean, &deviation);
        double right = sqrt((double)(n - 1)) / (double)n / 255;
        CU_ASSERT_DOUBLE_EQUAL((double)deviation / right, 1, 1e-6);
        pixel_stats((uint64_t)n * 200, (uint64_t)n * 40000, n, &mean, &deviation);
        CU_ASSERT(deviation == 1 && fabs((double)mean - 200 / 255.0) < 1e-7);
    }
}

TEST_MAIN("moments", {"magnitudes", magnitudes}, {"outliers", outliers},
          {"from tiny to huge", from_tiny_to_huge}, {"constants", constants},
          {"columns of a table", columns}, {"ages of users", ages}, {"pixels", pixels})
