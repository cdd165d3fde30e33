/* runtime/image/warp_steps.c: rotation, affine maps, perspective: torchvision's draws. */
#include <math.h>
#include <string.h>

#include "image/chain.h"

static double radians(double degrees) { return degrees * 0.017453292519943295; }

/* From output to input, around the centre of each: x' = m0 x + m1 y + m2, y' = m3 x + m4 y + m5.
   torchvision's _get_inverse_affine_matrix: rotation, shears and scale are multiplied out by hand
   and inverted in closed form (the determinant is 1 before the scale). */
static void invert_affine(const lt_affine *a, double cx, double cy, double m[6]) {
  double angle = radians(a->angle), sx = radians(a->shear_x), sy = radians(a->shear_y);
  double p = cos(angle - sy) / cos(sy), q = -(p * tan(sx) + sin(angle));
  double r = sin(angle - sy) / cos(sy), t = cos(angle) - r * tan(sx);
  m[0] = t / a->scale, m[1] = -q / a->scale;
  m[3] = -r / a->scale, m[4] = p / a->scale;
  m[2] = cx - m[0] * (cx + a->move_x) - m[1] * (cy + a->move_y);
  m[5] = cy - m[3] * (cx + a->move_x) - m[4] * (cy + a->move_y);
}

/* The sides of all that the corners reach, whole pixels. As torchvision's
   _compute_affine_output_size, which cuts off at 1e-4 too. */
static void reach(const double m[6], int *height, int *width) {
  double low[2] = {0}, high[2] = {0}, half[2] = {0.5 * *width, 0.5 * *height};
  for (int k = 0; k < 4; k++) {
    double x = k % 2 == 0 ? half[0] : -half[0], y = k / 2 == 0 ? half[1] : -half[1];
    double at[2] = {m[0] * x + m[1] * y + m[2] + half[0], m[3] * x + m[4] * y + m[5] + half[1]};
    for (int i = 0; i < 2; i++) {
      at[i] = trunc(at[i] * 1e4) / 1e4; /* ceil must not see rounding errors */
      if (k == 0 || at[i] < low[i]) low[i] = at[i];
      if (k == 0 || at[i] > high[i]) high[i] = at[i];
    }
  }
  *width = (int)(ceil(high[0]) - floor(low[0]));
  *height = (int)(ceil(high[1]) - floor(low[1]));
}

/* The matrix works around the middle of the picture; pixels have their centres at whole numbers
   here, so the middle is (n - 1) / 2. */
bool lt_sample_affine(lt_ctx *c, lt_sample *s, const lt_affine *a, bool expand, lt_filter filter,
                      const float fill[LT_CHANNELS_MAX]) {
  int h = s->image.height, w = s->image.width, height = h, width = w;
  double m[6], cx = 0, cy = 0;
  if (a->centre != NULL) {
    cx = a->centre[0] - w * 0.5;
    cy = a->centre[1] - h * 0.5;
  }
  invert_affine(a, cx, cy, m);
  if (expand) reach(m, &height, &width);
  double ox = (width - 1) / 2.0, oy = (height - 1) / 2.0;
  lt_projection from = {{m[0], m[1], m[2] - m[0] * ox - m[1] * oy + (w - 1) / 2.0, m[3], m[4],
                         m[5] - m[3] * ox - m[4] * oy + (h - 1) / 2.0, 0, 0, 1}};
  return lt_sample_warp(c, s, &from, height, width, filter, fill);
}

/* Right angles take no sampling; true when that was it. Bits are kept, and a transpose costs
   nothing until the picture is read. */
static bool turned_squarely(lt_sample *s, double angle, bool expand) {
  angle = fmod(fmod(angle, 360) + 360, 360);
  bool quarter = angle == 90 || angle == 270;
  if (angle != 0 && angle != 180 && !quarter) return false;
  if (quarter && !expand && s->image.height != s->image.width) return false;
  if (quarter) lt_sample_transpose(s);
  if (angle == 90 || angle == 180) lt_sample_mirror(s, true);
  if (angle == 270 || angle == 180) lt_sample_mirror(s, false);
  return true;
}

/* degrees (2), filter, expand, whether there is a centre, its x and y. */
bool lt_step_rotation(lt_ctx *c, const lt_step *t, lt_sample *s, lt_random_stream *d) {
  lt_affine a = {.angle = -lt_random_stream_uniform(d, t->v[0], t->v[1]), .scale = 1};
  if (t->v[4] == 0 && turned_squarely(s, -a.angle, t->v[3] != 0)) return true;
  if (t->v[4] != 0) a.centre = t->v + 5;
  return lt_sample_affine(c, s, &a, t->v[3] != 0, (lt_filter)t->v[2], t->fill);
}

/* degrees (2), translate (2), scale (2), shear x (2), shear y (2), filter, whether there is a
   centre, its x and y. */
bool lt_step_affine(lt_ctx *c, const lt_step *t, lt_sample *s, lt_random_stream *d) {
  const double *v = t->v;
  lt_affine a = {.angle = lt_random_stream_uniform(d, v[0], v[1])};
  double dx = v[2] * s->image.width, dy = v[3] * s->image.height;
  a.move_x = rint(lt_random_stream_uniform(d, -dx, dx));
  a.move_y = rint(lt_random_stream_uniform(d, -dy, dy));
  a.scale = lt_random_stream_uniform(d, v[4], v[5]);
  a.shear_x = lt_random_stream_uniform(d, v[6], v[7]);
  a.shear_y = lt_random_stream_uniform(d, v[8], v[9]);
  if (v[11] != 0) a.centre = v + 12;
  return lt_sample_affine(c, s, &a, false, (lt_filter)v[10], t->fill);
}

/* Solves a [8, 8] x = b by Gaussian elimination with partial pivoting, without which a zero on the
   diagonal (corners that share a coordinate) would divide; false when the corners are in one
   line. */
static bool solve(double a[8][9], double x[8]) {
  for (int k = 0; k < 8; k++) {
    int best = k;
    for (int i = k + 1; i < 8; i++)
      if (fabs(a[i][k]) > fabs(a[best][k])) best = i;
    if (fabs(a[best][k]) < 1e-12) return false;
    double row[9];
    memcpy(row, a[k], sizeof row);
    memcpy(a[k], a[best], sizeof row);
    memcpy(a[best], row, sizeof row);
    for (int i = k + 1; i < 8; i++)
      for (int j = 8; j >= k; j--) a[i][j] -= a[k][j] * a[i][k] / a[k][k];
  }
  for (int k = 7; k >= 0; k--) {
    x[k] = a[k][8];
    for (int j = k + 1; j < 8; j++) x[k] -= a[k][j] * x[j];
    x[k] /= a[k][k];
  }
  return true;
}

/* The projection that takes the corners `to` to the corners of the image: eight unknowns, the ninth
   entry 1, two linear equations a corner (as PIL's and torchvision's perspective coefficients). */
static bool projection_of(const int to[4][2], int height, int width, lt_projection *out) {
  const int from[4][2] = {{0, 0}, {width - 1, 0}, {width - 1, height - 1}, {0, height - 1}};
  double a[8][9] = {{0}}, k[8];
  for (int i = 0; i < 4; i++)
    for (int axis = 0; axis < 2; axis++) {
      double *row = a[2 * i + axis], x = to[i][0], y = to[i][1], at = from[i][axis];
      row[3 * axis] = x, row[3 * axis + 1] = y, row[3 * axis + 2] = 1;
      row[6] = -at * x, row[7] = -at * y, row[8] = at;
    }
  if (!solve(a, k)) return false;
  /* of edges of pixels; ours is of their centres */
  double w = 0.5 * (k[6] + k[7]) + 1;
  *out = (lt_projection){{
      k[0] - 0.5 * k[6], k[1] - 0.5 * k[7], k[2] + 0.5 * (k[0] + k[1]) - 0.5 * w,
      k[3] - 0.5 * k[6], k[4] - 0.5 * k[7], k[5] + 0.5 * (k[3] + k[4]) - 0.5 * w, k[6], k[7], w}};
  return true;
}

/* distortion, p, filter. */
bool lt_step_perspective(lt_ctx *c, const lt_step *t, lt_sample *s, lt_random_stream *d) {
  if (!lt_random_stream_chance(d, t->v[1])) return true;
  int h = s->image.height, w = s->image.width;
  int dx = (int)(t->v[0] * (w / 2)), dy = (int)(t->v[0] * (h / 2)), to[4][2];
  for (int k = 0; k < 4; k++) {
    bool right = k == 1 || k == 2, bottom = k >= 2;
    to[k][0] = (right ? w - dx - 1 : 0) + lt_random_stream_below(d, dx + 1);
    to[k][1] = (bottom ? h - dy - 1 : 0) + lt_random_stream_below(d, dy + 1);
  }
  lt_projection from;
  if (!projection_of(to, h, w, &from)) return true; /* corners in one line: nothing would be seen */
  return lt_sample_warp(c, s, &from, h, w, (lt_filter)t->v[2], t->fill);
}
