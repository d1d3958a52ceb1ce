/* Simulates the time of sums between many ranks (sums_network.h describes the model).
 *
 *   sums_simulate                                   checks the simulation (takes a second)
 *   sums_simulate time RANKS MB [KEY=VALUE ...]     milliseconds of each algorithm; KEY: see usage
 *   sums_simulate page [FILE.svg]                   the tables of docs/sums.md, and its curves */
#include "sums_network.h"
#include "base.h"
#include "parallel/sums.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- check ---- */

static int passed, failed;

static void expect(bool condition, const char *what, Way way, int ranks)
{
    if (condition) {
        ++passed;
        return;
    }
    ++failed;
    printf("FAILED: %s: %s between %d ranks\n", what, way_names[way], ranks);
}

static bool is_near(double a, double b, double tolerance)
{
    return fabs(a - b) <= tolerance * fabs(b);
}

/* A simulation of one leaf switch instead of all gives the same bits. */
static void check_one_switch(void)
{
    static const double sizes[] = {3e4, 1.7e6, 2.2e7};
    for (Way way = ALL; way < WAYS; ++way)
        for (int i = 0; i < 18; ++i) {
            int ranks = 32 << i % 3;
            Net net = {.latency_s = 3e-6,
                       .overhead_s = 1e-6,
                       .s_per_byte = 1e-9,
                       .group = 4 << i / 3 % 2,
                       .over = i / 6 % 2 ? 3.5 : 1,
                       .one_thread = i / 12 > 0};
            double bytes = sizes[i / 6];
            double one = sum_simulated(way, ranks, bytes, &net, false).seconds;
            double all = sum_simulated(way, ranks, bytes, &net, true).seconds;
            expect(one == all && one > 0, "one leaf switch for all of them", way, ranks);
        }
}

/* Without leaf switches, and in one piece, there are formulas for the times. */
static void check_formulas(void)
{
    const Net net = {.latency_s = 3e-5, .overhead_s = 2e-5, .s_per_byte = 1e-8};
    for (int rounds = 1; rounds <= 6; ++rounds) {
        int n = 1 << rounds;
        double bytes = 1e6, both = net.latency_s + net.overhead_s, all = bytes * net.s_per_byte;
        double part = all / n, all_but_one = all - part;
        const double expected[WAYS] = {
            [RING] = 2 * (n - 1) * (both + part),
            [DOUBLING] = rounds * (both + all),
            [RABENSEIFNER] = 2 * (rounds * both + all_but_one),
        };
        for (Way way = RING; way < WAYS; ++way) {
            double s = sum_simulated(way, n, bytes, &net, false).seconds;
            expect(is_near(s, expected[way], 1e-9), "the formula of its time", way, n);
        }
    }
}

/* A single thread first prepares a message, then sends its bytes. */
static void check_one_thread(void)
{
    const Net net = {.latency_s = 3e-5, .overhead_s = 2e-5, .s_per_byte = 1e-8, .one_thread = true};
    for (int n = 2; n <= 40; ++n) {
        double bytes = 8e4, message = net.overhead_s + bytes / n * net.s_per_byte;
        double s = sum_simulated(ALL, n, bytes, &net, false).seconds;
        expect(is_near(s, 2 * ((n - 1) * message + net.latency_s), 1e-9), "the formula of its time",
               ALL, n);
    }
}

/* Halving ends for any number of ranks; if it is a power of two, each rank sends 2 log2(ranks)
 * messages for a piece. */
static void check_messages(void)
{
    const Net net = {.latency_s = 2e-6, .overhead_s = 1e-6, .s_per_byte = 1e-9};
    for (int n = 2; n <= 64; ++n) {
        SimulatedSum sum = sum_simulated(HALVING, n, 4e6, &net, false);
        int rounds = 31 - __builtin_clz((unsigned)n);
        double piece = (double)sum_piece_elements(n, 1, 1000000), pieces = ceil(1e6 / piece);
        expect(isfinite(sum.seconds) && sum.seconds > 0, "an end", HALVING, n);
        if (n == 1 << rounds)
            expect(sum.messages == 2 * rounds * pieces, "2 log2 messages a piece", HALVING, n);
    }
}

/* The extrapolated time of a long sum is that of simulating all its pieces. */
static void check_extrapolation(void)
{
    const Net net = {
        .latency_s = 2e-6, .overhead_s = 1e-6, .s_per_byte = 8e-11, .group = 32, .over = 2};
    int most = sums_pieces_most;
    for (Way way = ALL; way <= HALVING; ++way) {
        double extrapolated = sum_simulated(way, 64, 1.4e8, &net, false).seconds;
        sums_pieces_most = 1000;
        double whole = sum_simulated(way, 64, 1.4e8, &net, false).seconds;
        sums_pieces_most = most;
        expect(is_near(extrapolated, whole, 0.01), "the extrapolation of a long sum", way, 64);
    }
}

static int check(void)
{
    check_one_switch();
    check_formulas();
    check_one_thread();
    check_messages();
    check_extrapolation();
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}

/* ---- one time ---- */

/* The default network: 100 Gbit/s. */
static Net plain_net(void)
{
    return (Net){.latency_s = 3e-6, .overhead_s = 1e-6, .s_per_byte = 8e-11, .over = 1};
}

static bool set_key(Net *net, const char *word)
{
    double value = 0, *at = NULL, scale = 1e-6;
    if (sscanf(word, "latency_us=%lf", &value) == 1) at = &net->latency_s;
    if (sscanf(word, "overhead_us=%lf", &value) == 1) at = &net->overhead_s;
    if (sscanf(word, "over=%lf", &value) == 1) at = &net->over, scale = 1;
    if (at) *at = scale * value;
    if (sscanf(word, "mbit=%lf", &value) == 1) at = &net->s_per_byte, *at = 8e-6 / value;
    if (sscanf(word, "switch=%d", &net->group) == 1) return net->group >= 0;
    if (strcmp(word, "one_thread") == 0) {
        net->one_thread = true;
        return true;
    }
    return at && *at >= 0;
}

static int print_times(int ranks, double bytes, const Net *net)
{
    for (Way way = ALL; way < WAYS; ++way) {
        SimulatedSum sum = sum_simulated(way, ranks, bytes, net, false);
        if (isnan(sum.seconds)) continue;
        printf("%s: %.3f ms, %.0f messages, %.3f MB a rank\n", way_names[way], 1e3 * sum.seconds,
               sum.messages, 1e-6 * sum.bytes);
    }
    return 0;
}

/* ---- the page ---- */

/* COUNTS numbers of ranks: RANKS_MIN, 2 * RANKS_MIN, 4 * RANKS_MIN, ... */
enum { RANKS_MIN = 64, COUNTS = 9, SIZES = 3 };
static const double size_mb[SIZES] = {1, 45, 1400};

/* seconds of each algorithm for each number of ranks */
typedef struct Curves {
    double seconds[WAYS][COUNTS];
} Curves;

static void simulate_curves(Curves *curves, double bytes, const Net *net)
{
    for (Way way = ALL; way < WAYS; ++way)
        for (int i = 0; i < COUNTS; ++i)
            curves->seconds[way][i] = sum_simulated(way, RANKS_MIN << i, bytes, net, false).seconds;
}

static void print_table(const Curves *curves, double megabytes)
{
    printf("\n%g MB, milliseconds:\n\n| ranks |", megabytes);
    for (Way way = ALL; way < WAYS; ++way) printf(" %s |", way_names[way]);
    printf("\n|---|---|---|---|---|---|\n");
    for (int i = 0; i < COUNTS; ++i) {
        printf("| %d |", RANKS_MIN << i);
        for (Way way = ALL; way < WAYS; ++way) printf(" %.3g |", 1e3 * curves->seconds[way][i]);
        printf("\n");
    }
}

/* Draws the curves with logarithmic axes: ranks from 64 on, and seconds, where a factor of 10 is 80
 * points high. */
static void draw(const Curves *curves, FILE *out)
{
    static const char *const color[WAYS] = {"#c22", "#16c", "#888", "#2a2", "#c80"};
    const double left = 70, wide = 70, bottom = 330, decade = 80, first = -3;
    fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 820 370\" "
                 "font-family=\"sans-serif\" font-size=\"12\">\n"
                 "<rect width=\"820\" height=\"370\" fill=\"#fff\"/>\n");
    for (int d = 0; d <= 4; ++d)
        fprintf(out,
                "<path d=\"M%g %gh%g\" stroke=\"#ddd\"/><text x=\"%g\" y=\"%g\" "
                "text-anchor=\"end\">%g ms</text>\n",
                left, bottom - d * decade, wide * (COUNTS - 1), left - 6, bottom - d * decade + 4,
                1e3 * pow(10, first + d));
    for (int i = 0; i < COUNTS; ++i)
        fprintf(out, "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">%d</text>\n", left + i * wide,
                bottom + 20, RANKS_MIN << i);
    for (Way way = ALL; way < WAYS; ++way) {
        const double *seconds = curves->seconds[way];
        double y = 0;
        fprintf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"",
                color[way]);
        for (int i = 0; i < COUNTS; ++i) {
            y = bottom - decade * (log10(seconds[i]) - first);
            fprintf(out, "%s%g,%.1f", i > 0 ? " " : "", left + i * wide, y);
        }
        fprintf(out, "\"/><text x=\"%g\" y=\"%.1f\" fill=\"%s\">%s</text>\n",
                left + (COUNTS - 1) * wide + 8, y + 4, color[way], way_names[way]);
    }
    fprintf(out, "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">ranks</text>\n</svg>\n",
            left + wide * (COUNTS - 1) / 2, bottom + 38);
}

/* Prints the page for 100 Gbit/s and 32 ranks per leaf switch, whose uplinks have half the
 * bandwidth of its ranks. A third of the latency is the sender's overhead, as in weft plan. */
static int print_page(const char *svg)
{
    const Net net = {
        .latency_s = 2e-6, .overhead_s = 1e-6, .s_per_byte = 8e-11, .group = 32, .over = 2};
    for (int i = 0; i < SIZES; ++i) {
        Curves curves;
        simulate_curves(&curves, 1e6 * size_mb[i], &net);
        print_table(&curves, size_mb[i]);
        if (!svg || size_mb[i] != 45) continue;
        FILE *out = fopen(svg, "w");
        if (!out) die("%s cannot be written", svg);
        draw(&curves, out);
        if (fclose(out) != 0) die("%s cannot be written", svg);
    }
    return 0;
}

static int usage(void)
{
    fprintf(stderr, "usage: sums_simulate [time RANKS MB [latency_us=3] [overhead_us=1] "
                    "[mbit=100000] [switch=0] [over=1] [one_thread] | page [FILE.svg]]\n");
    return ERR_USAGE;
}

int main(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "";
    if (argc == 1) return check();
    if (strcmp(verb, "page") == 0 && argc <= 3) return print_page(argv[2]);
    if (strcmp(verb, "time") != 0 || argc < 4) return usage();
    int ranks = atoi(argv[2]);
    double bytes = 1e6 * atof(argv[3]);
    Net net = plain_net();
    for (int i = 4; i < argc; ++i)
        if (!set_key(&net, argv[i])) return usage();
    return ranks > 1 && bytes >= 4 ? print_times(ranks, bytes, &net) : usage();
}
