/* runtime/image/blur.c: Gaussian blur and sharpness: weighted means of neighbouring pixels.

   A Gaussian in two dims is the product of two in one: rows first, then columns. */
#include <math.h>
#include <string.h>

#include "image/colour.h"
#include "image/resize.h"

static void load_row(const lt_picture *p, int ch, int y, float *out) {
  const void *row = lt_picture_row(p, ch, y);
  for (int x = 0; x < p->width; x++)
    out[x] = p->depth == LT_DEPTH_U8 ? ((const uint8_t *)row)[x] : ((const float *)row)[x];
}

/* A blur rounds to the nearest and does not clamp floats, a sharpened u8 is cut off: torchvision's
   two ways. */
static void store_row(lt_picture *p, int ch, int y, const float *in, bool round) {
  void *row = lt_picture_row(p, ch, y);
  float bound = lt_bound(p);
  for (int x = 0; x < p->width; x++) {
    float v = in[x] < 0 ? 0 : in[x] > bound ? bound : in[x];
    if (p->depth == LT_DEPTH_U8)
      ((uint8_t *)row)[x] = (uint8_t)(round ? rintf(v) : v);
    else
      ((float *)row)[x] = round ? in[x] : v; /* a blur keeps what is outside of 0..1 */
  }
}

/* Weights of n neighbours, as torchvision's v2 computes them: the points are spaced so that the
   outermost is at (n - 1) / 2 pixels over the square root of 2, which saves the factor 2 in
   exp(-x^2 / (2 sigma^2)). The sum makes up for the tails that are cut off. */
static void gaussian(float *w, int n, double sigma) {
  double end = (n - 1) / (2 * sqrt(2.0)), sum = 0;
  for (int k = 0; k < n; k++) {
    double x = n > 1 ? -end + 2 * end * k / (n - 1) : 0;
    w[k] = (float)exp(-(x / sigma) * (x / sigma));
    sum += w[k];
  }
  for (int k = 0; k < n; k++) w[k] = (float)(w[k] / sum);
}

enum { MOST = 255 };

/* A channel of floats [h, w] blurred along rows, then along columns. n_y + n_x products a pixel,
   not n_y n_x. At the edges neighbours are reflected, without the edge pixel. */
static void blur(float *plane, float *line, int h, int w, const float *wy, int ny, const float *wx,
                 int nx) {
  for (int y = 0; y < h; y++) {
    float *row = plane + (int64_t)y * w;
    for (int x = 0; x < w; x++) {
      line[x] = 0;
      for (int k = 0; k < nx; k++)
        line[x] += wx[k] * row[lt_pad_index(x + k - nx / 2, w, LT_PAD_REFLECT)];
    }
    memcpy(row, line, (size_t)w * sizeof *row);
  }
  for (int x = 0; x < w; x++) {
    for (int y = 0; y < h; y++) {
      line[y] = 0;
      for (int k = 0; k < ny; k++)
        line[y] += wy[k] *
                   plane[(int64_t)lt_pad_index(y + k - ny / 2, h, LT_PAD_REFLECT) * w + x];
    }
    for (int y = 0; y < h; y++) plane[(int64_t)y * w + x] = line[y];
  }
}

bool lt_gaussian_blur(lt_ctx *c, lt_picture *p, int height, int width, double sigma) {
  float wy[MOST], wx[MOST];
  if (height > MOST || width > MOST || height / 2 >= p->height || width / 2 >= p->width)
    return lt_fail(c, LT_ESHAPE, "transforms.GaussianBlur: a kernel of %d x %d for an image of "
                   "%d x %d", width, height, p->width, p->height);
  gaussian(wy, height, sigma);
  gaussian(wx, width, sigma);
  int h = p->height, w = p->width;
  size_t n = (size_t)lt_plane(p) + (size_t)(h > w ? h : w);
  float *plane = lt_alloc(c, n * sizeof *plane);
  for (int ch = 0; ch < p->channels && plane != NULL; ch++) {
    for (int y = 0; y < h; y++) load_row(p, ch, y, plane + (int64_t)y * w);
    blur(plane, plane + lt_plane(p), h, w, wy, height, wx, width);
    for (int y = 0; y < h; y++) store_row(p, ch, y, plane + (int64_t)y * w, true);
  }
  lt_free(c, plane, n * sizeof *plane);
  return plane != NULL;
}

/* Rows y-1..y+1 are in `rows`; the outermost pixels stay. PIL's SMOOTH filter, 1 1 1 / 1 5 1 / 1 1
   1 over 13; away from it by the factor, as torchvision blends. */
static void sharpen_row(float *const rows[3], int w, float factor, bool whole, float *out) {
  const float a = 1.0f / 13, b = 5.0f / 13;
  out[0] = rows[1][0];
  out[w - 1] = rows[1][w - 1];
  for (int x = 1; x < w - 1; x++) {
    float sum = 0;
    for (int k = 0; k < 3; k++)
      for (int j = -1; j < 2; j++) sum += rows[k][x + j] * (k == 1 && j == 0 ? b : a);
    if (whole) sum = rintf(sum);
    out[x] = rows[1][x] + (1 - factor) * (sum - rows[1][x]);
  }
}

bool lt_adjust_sharpness(lt_ctx *c, lt_picture *p, float factor) {
  int w = p->width;
  if (p->height <= 2 || w <= 2) return true;
  size_t bytes = (size_t)w * 4 * sizeof(float);
  float *block = lt_alloc(c, bytes);
  if (block == NULL) return false;
  float *rows[3] = {block, block + w, block + 2 * w}, *out = block + 3 * w;
  for (int ch = 0; ch < p->channels; ch++) {
    load_row(p, ch, 0, rows[0]);
    load_row(p, ch, 1, rows[1]);
    for (int y = 1; y < p->height - 1; y++) {
      load_row(p, ch, y + 1, rows[2]);
      sharpen_row(rows, w, factor, p->depth == LT_DEPTH_U8, out);
      store_row(p, ch, y, out, false);
      float *first = rows[0];
      rows[0] = rows[1], rows[1] = rows[2], rows[2] = first;
    }
  }
  lt_free(c, block, bytes);
  return true;
}
