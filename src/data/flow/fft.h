/* Fourier transforms of two-dimensional complex fields whose sides are powers of two. The algorithm
 * is Stockham's with radix 4 (Van Loan: Computational Frameworks for the Fast Fourier Transform,
 * 1992). Real and imaginary parts are separate arrays, so that the compiler can vectorise all inner
 * loops. */
#ifndef WEFT_DATA_FLOW_FFT_H
#define WEFT_DATA_FLOW_FFT_H

/* A complex array: its real and its imaginary parts. */
typedef struct Complex2d {
    double *re, *im;
} Complex2d;

typedef struct Fft Fft;
/* Creates a plan, with scratch memory, for fields of this height and width, both powers of two and
 * at least 4. Owner: the caller, who releases it with fft_free. One thread at a time may use it. */
Fft *fft_new(int height, int width);
void fft_free(Fft **fft);
/* Computes the coefficients c (W,H), in transposed order, of the field f (H,W):
 *     f[y][x] = sum over k, l of c[k][l] exp(2 pi i (k x / W + l y / H)).
 * An index k above W / 2 means the wave number k - W, and an index l above H / 2 means l - H.
 * Overwrites the field. */
void fft_forward(Fft *fft, Complex2d field, Complex2d coef);
/* Computes the field (H,W) that has the coefficients `coef` (W,H). Overwrites the coefficients. */
void fft_inverse(Fft *fft, Complex2d coef, Complex2d field);

#endif
