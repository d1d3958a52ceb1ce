/* Computes Fourier transforms of fields. One pass of Stockham's method computes four rows of an
 * array from four rows of another, element by element. So all columns of a field are transformed
 * together; the rows are transformed as columns, after a transposition. The inverse transform is
 * the forward transform with the real and the imaginary array exchanged. */
#include "fft.h"

#include "flow.h"

#include <string.h>

struct Fft {
    int height, width;
    /* owned: cosines and sines of i / height turns, [height] */
    double *height_cos, *height_sin;
    /* owned: cosines and sines of i / width turns, [width] */
    double *width_cos, *width_sin;
    /* owned: real and imaginary parts of a scratch field */
    double *re, *im;
};

static void fill_circle(int n, double **cosine, double **sine)
{
    *cosine = mem_new((size_t)n * sizeof(double));
    *sine = mem_new((size_t)n * sizeof(double));
    for (int i = 0; i < n; ++i) flow_sine((double)i / n, &(*sine)[i], &(*cosine)[i]);
}

Fft *fft_new(int height, int width)
{
    Fft *f = mem_new(sizeof *f);
    size_t bytes = (size_t)height * (size_t)width * sizeof(double);
    f->height = height, f->width = width;
    fill_circle(height, &f->height_cos, &f->height_sin);
    fill_circle(width, &f->width_cos, &f->width_sin);
    f->re = mem_new(bytes);
    f->im = mem_new(bytes);
    return f;
}

void fft_free(Fft **fft)
{
    Fft *f = *fft;
    if (!f) return;
    mem_free(&f->height_cos);
    mem_free(&f->height_sin);
    mem_free(&f->width_cos);
    mem_free(&f->width_sin);
    mem_free(&f->re);
    mem_free(&f->im);
    mem_free(fft);
}

/* Transforms four blocks of `length` elements, which are `distance` elements apart, to four blocks
 * that follow each other: element i of each block by a transform of four numbers. Multiplies block
 * j + 1 of the result by c[j] - i s[j], for j = 0, 1 and 2. */
static void combine_four(int64_t length, int64_t distance, Complex2d from, Complex2d to,
                         const double c[3], const double s[3])
{
    const double *restrict xr = from.re, *restrict xi = from.im;
    double *restrict yr = to.re, *restrict yi = to.im;
    const double c1 = c[0], c2 = c[1], c3 = c[2], s1 = s[0], s2 = s[1], s3 = s[2];
#pragma omp simd
    for (int64_t i = 0; i < length; ++i) {
        double sum_r = xr[i] + xr[i + 2 * distance], sum_i = xi[i] + xi[i + 2 * distance];
        double dif_r = xr[i] - xr[i + 2 * distance], dif_i = xi[i] - xi[i + 2 * distance];
        double odd_r = xr[i + distance] + xr[i + 3 * distance],
               odd_i = xi[i + distance] + xi[i + 3 * distance];
        /* -i times the difference of blocks 1 and 3 */
        double turn_r = xi[i + distance] - xi[i + 3 * distance];
        double turn_i = xr[i + 3 * distance] - xr[i + distance];
        double r1 = dif_r + turn_r, i1 = dif_i + turn_i;
        double r2 = sum_r - odd_r, i2 = sum_i - odd_i;
        double r3 = dif_r - turn_r, i3 = dif_i - turn_i;
        yr[i] = sum_r + odd_r;
        yi[i] = sum_i + odd_i;
        yr[i + length] = r1 * c1 + i1 * s1;
        yi[i + length] = i1 * c1 - r1 * s1;
        yr[i + 2 * length] = r2 * c2 + i2 * s2;
        yi[i + 2 * length] = i2 * c2 - r2 * s2;
        yr[i + 3 * length] = r3 * c3 + i3 * s3;
        yi[i + 3 * length] = i3 * c3 - r3 * s3;
    }
}

/* Transforms two blocks of `length` elements, which follow each other: the last pass if the number
 * of points is not a power of four. */
static void combine_two(int64_t length, Complex2d from, Complex2d to)
{
    const double *restrict xr = from.re, *restrict xi = from.im;
    double *restrict yr = to.re, *restrict yi = to.im;
#pragma omp simd
    for (int64_t i = 0; i < length; ++i) {
        yr[i] = xr[i] + xr[i + length];
        yi[i] = xi[i] + xi[i + length];
        yr[i + length] = xr[i] - xr[i + length];
        yi[i + length] = xi[i] - xi[i + length];
    }
}

static Complex2d array_at(Complex2d p, int64_t at)
{
    return (Complex2d){p.re + at, p.im + at};
}

/* Transforms the columns of x, which has n rows and `columns` columns. Overwrites x and scratch,
 * and returns the one that has the result. cosine[i], sine[i]: cosine and sine of i / n turns. */
static Complex2d transform_columns(int n, int columns, const double *cosine, const double *sine,
                                   Complex2d x, Complex2d scratch)
{
    int64_t length = columns;
    int left = n;
    for (; left >= 4; left /= 4, length *= 4) {
        int quarter = left / 4, turn = n / left;
        for (int p = 0; p < quarter; ++p) {
            double c[3], s[3];
            for (int j = 0; j < 3; ++j) {
                c[j] = cosine[turn * p * (j + 1)];
                s[j] = sine[turn * p * (j + 1)];
            }
            combine_four(length, length * quarter, array_at(x, length * p),
                         array_at(scratch, length * 4 * p), c, s);
        }
        Complex2d swap = x;
        x = scratch, scratch = swap;
    }
    if (left == 1) return x;
    combine_two(length, x, scratch);
    return scratch;
}

/* Writes the transposed array `from`, (rows, columns), to `to`, in blocks that fit a cache. */
static void transpose(int rows, int columns, const double *restrict from, double *restrict to)
{
    enum { BLOCK = 8 };
    for (int r = 0; r < rows; r += BLOCK)
        for (int c = 0; c < columns; c += BLOCK)
            for (int j = c; j < columns && j < c + BLOCK; ++j)
                for (int i = r; i < rows && i < r + BLOCK; ++i)
                    to[(int64_t)j * rows + i] = from[(int64_t)i * columns + j];
}

static void scale(int64_t n, double by, const double *from, double *to)
{
    for (int64_t i = 0; i < n; ++i) to[i] = from[i] * by;
}

void fft_forward(Fft *f, Complex2d field, Complex2d coef)
{
    int h = f->height, w = f->width;
    int64_t n = (int64_t)h * w;
    Complex2d scratch = {f->re, f->im};
    Complex2d first = transform_columns(h, w, f->height_cos, f->height_sin, field, scratch);
    transpose(h, w, first.re, coef.re);
    transpose(h, w, first.im, coef.im);
    Complex2d second = transform_columns(w, h, f->width_cos, f->width_sin, coef, scratch);
    scale(n, 1.0 / (double)n, second.re, coef.re);
    scale(n, 1.0 / (double)n, second.im, coef.im);
}

static Complex2d exchanged(Complex2d p)
{
    return (Complex2d){p.im, p.re};
}

void fft_inverse(Fft *f, Complex2d coef, Complex2d field)
{
    int h = f->height, w = f->width;
    size_t bytes = (size_t)h * (size_t)w * sizeof(double);
    Complex2d scratch = {f->re, f->im}, in = exchanged(coef), out = exchanged(field);
    Complex2d first = transform_columns(w, h, f->width_cos, f->width_sin, in, scratch);
    transpose(w, h, first.re, out.re);
    transpose(w, h, first.im, out.im);
    Complex2d second = transform_columns(h, w, f->height_cos, f->height_sin, out, scratch);
    if (second.re == out.re) return;
    memcpy(out.re, second.re, bytes);
    memcpy(out.im, second.im, bytes);
}
