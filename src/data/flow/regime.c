/* Labels the cells of a flow as in a vortex, under strain, or neither, by the Okubo-Weiss parameter
 * (flow.h). */
#include "flow.h"

#include <math.h>

void flow_regimes(int64_t height, int64_t width, bool walls, const double *u, const double *v,
                  double *w, int8_t *regime)
{
    double sum = 0;
    for (int64_t y = 0; y < height; ++y) {
        const int64_t south = y > 0 ? y - 1 : walls ? y : height - 1;
        const int64_t north = y + 1 < height ? y + 1 : walls ? y : 0;
        const double rows = walls && (y == 0 || y + 1 == height) ? 1 : 2;
        for (int64_t x = 0; x < width; ++x) {
            const int64_t at = y * width + x, west = y * width + (x > 0 ? x - 1 : width - 1);
            const int64_t east = y * width + (x + 1 < width ? x + 1 : 0);
            const int64_t below = south * width + x, above = north * width + x;
            const double ux = (u[east] - u[west]) / 2, vx = (v[east] - v[west]) / 2;
            const double uy = (u[above] - u[below]) / rows, vy = (v[above] - v[below]) / rows;
            const double normal = ux - vy, shear = vx + uy, vorticity = vx - uy;
            w[at] = normal * normal + shear * shear - vorticity * vorticity;
            sum += w[at] * w[at];
        }
    }
    const double bound = 0.2 * sqrt(sum / (double)(height * width));
    for (int64_t i = 0; i < height * width; ++i)
        regime[i] = w[i] < -bound ? 1 : w[i] > bound ? 2 : 0;
}
