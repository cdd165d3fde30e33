/* runtime/data/digits.c: renders the generated digits: strokes, distorted and drawn with a pen of
   some width.

   Strokes are on a grid of 100 x 100, y down. A point moves a little on its own, the whole is
   bent, slanted and scaled; the pen's distance to a pixel's centre gives the pixel's value.

   A stand-in for MNIST that needs no file: digits of the same size and kind, drawn from strokes.
   Each image is a function of (seed, split, index), so that it can be made in any order by any
   number of threads; changing a draw would change the data set, with all results in specs. */
#include "data/digits.h"

#include <math.h>
#include <string.h>

#include "base/threads.h"
#include "data/strokes.h"

enum { SIDE = LT_DIGITS_SIDE, STEPS = 4, CHUNK = 64 };

/* Random numbers of one image, in order. */
typedef struct dice {
  lt_rng_key rng_key;
  uint64_t block;
  lt_random4 words;
  int left;
} dice;

static uint32_t roll(dice *d) {
  if (d->left == 0) {
    d->words = lt_philox(d->rng_key, d->block++);
    d->left = 4;
  }
  return d->words.word[4 - d->left--];
}

static float uniform(dice *d, float low, float high) {
  return low + (high - low) * lt_uniform_f32(roll(d));
}

/* Nearly normal with standard deviation 1: the sum of four bytes. Four bytes sum to a mean of 510
   and a variance of 4 (256^2 - 1) / 12, which is 147.8 squared. Cheaper than Box-Muller, and exact
   arithmetic on every machine. */
static float normal(dice *d) {
  uint32_t w = roll(d);
  int sum = (int)(w & 255) + (int)(w >> 8 & 255) + (int)(w >> 16 & 255) + (int)(w >> 24);
  return ((float)sum - 510.0f) * (1.0f / 147.8f);
}

typedef struct point {
  float x, y;
} point;

/* How this image places the grid, and its pen. */
typedef struct hand {
  float a, b, c, d, x, y; /* pixel = (a b; c d) (p - 50) + (x, y) */
  float bend, bend_phase; /* in grid units */
  float shake;
  float radius, soft, ink;
} hand;

/* One draw a statement: the order of draws is part of the data set. */
static hand hand_roll(dice *d) {
  float angle = uniform(d, -0.25f, 0.25f), slant = uniform(d, -0.3f, 0.35f);
  float width = uniform(d, 0.15f, 0.24f), height = uniform(d, 0.185f, 0.25f);
  float cosine = cosf(angle), sine = sinf(angle);
  hand h = {.a = width * cosine,
            .b = -width * cosine * slant - height * sine,
            .c = width * sine,
            .d = -width * sine * slant + height * cosine};
  float middle = (SIDE - 1) / 2.0f;
  h.x = middle + uniform(d, -2.2f, 2.2f);
  h.y = middle + uniform(d, -2.2f, 2.2f);
  h.bend = uniform(d, -6, 6);
  h.bend_phase = uniform(d, 0, 6.2831853f);
  h.shake = uniform(d, 1.5f, 4.5f);
  h.radius = uniform(d, 0.75f, 1.75f);
  h.soft = uniform(d, 0.8f, 1.5f);
  h.ink = uniform(d, 0.7f, 1);
  return h;
}

static point place(const hand *h, float px, float py) {
  float x = px - 50 + h->bend * sinf(py * 0.06f + h->bend_phase), y = py - 50;
  return (point){h->a * x + h->b * y + h->x, h->c * x + h->d * y + h->y};
}

static int lower(float v) { return v < 0 ? 0 : (int)v; }
static int upper(float v) { return v > SIDE - 1 ? SIDE - 1 : (int)ceilf(v); }

/* Keep in each pixel the largest cover of any segment. The distance of a pixel's centre to the
   segment: its projection on the line, limited to the ends. Cover falls linearly over `soft` pixels
   around the pen's radius, which antialiases. */
static void draw_segment(float *canvas, const hand *h, point p, point q) {
  float reach = h->radius + h->soft;
  float dx = q.x - p.x, dy = q.y - p.y, length2 = dx * dx + dy * dy;
  int x0 = lower(fminf(p.x, q.x) - reach), x1 = upper(fmaxf(p.x, q.x) + reach);
  int y0 = lower(fminf(p.y, q.y) - reach), y1 = upper(fmaxf(p.y, q.y) + reach);
  for (int y = y0; y <= y1; y++)
    for (int x = x0; x <= x1; x++) {
      float ex = (float)x - p.x, ey = (float)y - p.y;
      float t = length2 > 0 ? (ex * dx + ey * dy) / length2 : 0;
      t = t < 0 ? 0 : t > 1 ? 1 : t;
      ex -= t * dx, ey -= t * dy;
      float distance2 = ex * ex + ey * ey;
      if (distance2 >= reach * reach) continue;
      float cover = (h->radius - sqrtf(distance2)) / h->soft + 0.5f;
      cover = cover < 0 ? 0 : cover > 1 ? 1 : cover;
      if (cover > canvas[y * SIDE + x]) canvas[y * SIDE + x] = cover;
    }
}

/* Catmull-Rom: through b and c, in the directions of their neighbours. E. Catmull and R. Rom, A
   Class of Local Interpolating Splines, 1974. */
static float spline(float a, float b, float c, float d, float t) {
  return 0.5f * (2 * b + t * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a))));
}

static void draw_stroke(float *canvas, const hand *h, const lt_stroke *s, dice *d) {
  point p[LT_STROKE_POINTS];
  for (int i = 0; i < s->n; i++) {
    p[i].x = (float)s->at[i][0] + h->shake * normal(d);
    p[i].y = (float)s->at[i][1] + h->shake * normal(d);
  }
  point pen = place(h, p[0].x, p[0].y);
  for (int i = 0; i + 1 < s->n; i++) {
    point a = p[i > 0 ? i - 1 : 0], b = p[i], e = p[i + 1], f = p[i + 2 < s->n ? i + 2 : i + 1];
    for (int k = 1; k <= STEPS; k++) {
      float t = (float)k / STEPS;
      point next = s->smooth
                       ? place(h, spline(a.x, b.x, e.x, f.x, t), spline(a.y, b.y, e.y, f.y, t))
                       : place(h, b.x + t * (e.x - b.x), b.y + t * (e.y - b.y));
      draw_segment(canvas, h, pen, next);
      pen = next;
    }
  }
}

/* A stray line near the edge, in one image of five. */
static void draw_stray(float *canvas, hand h, dice *d) {
  float at = uniform(d, -2, 5), along = uniform(d, 0, SIDE), length = uniform(d, 3, 8);
  uint32_t side = roll(d);
  if (side % 5 != 0) return;
  h.radius *= 0.8f;
  if ((side >> 8 & 1) != 0) at = SIDE - 1 - at;
  point p = {at, along}, q = {at + uniform(d, -2, 2), along + length};
  bool turned = (side >> 9 & 1) != 0;
  draw_segment(canvas, &h, turned ? (point){p.y, p.x} : p, turned ? (point){q.y, q.x} : q);
}

/* Ink on paper: both uneven. */
static void develop(const float *canvas, const hand *h, dice *d, uint8_t *image) {
  float grain = uniform(d, 0, 0.16f), paper = uniform(d, 0, 0.12f);
  for (int i = 0; i < LT_DIGITS_PIXELS; i++) {
    float v = paper + (h->ink - paper) * canvas[i] + grain * normal(d);
    v = v < 0 ? 0 : v > 1 ? 1 : v;
    image[i] = (uint8_t)(v * 255 + 0.5f);
  }
}

static lt_rng_key key_of(uint64_t seed, int split, int64_t index, int use) {
  return (lt_rng_key){.seed = seed,
                      .position = (uint64_t)index << 16 | (uint64_t)LT_RNG_DIGITS |
                                  (uint64_t)split << 4 | (uint64_t)use << 8};
}

/* The digit at `index`: its ten's order is a permutation that depends on the seed. Each ten has
   every digit once: any prefix of the data set is balanced. */
static int label_of(uint64_t seed, int split, int64_t index) {
  dice d = {.rng_key = key_of(seed, split, index / 10, 1)};
  int order[10];
  for (int i = 0; i < 10; i++) {
    int k = (int)(((uint64_t)roll(&d) * (uint64_t)(i + 1)) >> 32);
    order[i] = order[k];
    order[k] = i;
  }
  return order[index % 10];
}

static void draw_one(uint64_t seed, int split, int64_t index, uint8_t *image, int64_t *label) {
  float canvas[LT_DIGITS_PIXELS] = {0};
  dice d = {.rng_key = key_of(seed, split, index, 0)};
  *label = label_of(seed, split, index);
  const lt_glyph *glyphs = lt_glyphs[*label];
  hand h = hand_roll(&d);
  const lt_glyph *g = &glyphs[roll(&d) % LT_GLYPH_FORMS];
  for (int i = 0; i < g->n; i++) draw_stroke(canvas, &h, &g->stroke[i], &d);
  draw_stray(canvas, h, &d);
  develop(canvas, &h, &d, image);
}

typedef struct job {
  uint64_t seed;
  int split;
  int64_t first, n;
  uint8_t *images;
  int64_t *labels;
} job;

static void draw_chunk(void *ud, int64_t chunk) {
  const job *j = ud;
  int64_t end = (chunk + 1) * CHUNK < j->n ? (chunk + 1) * CHUNK : j->n;
  for (int64_t i = chunk * CHUNK; i < end; i++)
    draw_one(j->seed, j->split, j->first + i, j->images + i * LT_DIGITS_PIXELS, j->labels + i);
}

void lt_digits_draw(lt_ctx *c, uint64_t seed, int split, int64_t first, int64_t n, uint8_t *images,
                    int64_t *labels) {
  job j = {seed, split, first, n, images, labels};
  lt_parallel(c, (n + CHUNK - 1) / CHUNK, draw_chunk, &j);
}
