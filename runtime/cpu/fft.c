/* runtime/cpu/fft.c: Fourier transforms of lines, of any length.

   A length of factors 2, 3, 4 and 5 is cut into them (J. Cooley, J. Tukey, 1965), with butterflies
   for 2 and 4; any other is a convolution of a power of 2 (L. Bluestein, 1970). Real lines of an
   even length are taken as complex ones of half of it. All is computed in doubles, numbers are
   pairs of them. An inverse is the same with real and imaginary parts exchanged. */
#include <math.h>
#include <string.h>

#include "base/threads.h"
#include "cpu/scratch.h"

enum { FACTORS = 64 };

typedef struct plan {
  int64_t n;          /* the length of a transform */
  int radix[FACTORS]; /* its factors, the last one 0 */
  const double *turn; /* e^(-2 pi i k / n) */
  /* Of Bluestein's convolution, of length m: */
  int64_t m;          /* 0: there is none */
  int inner[FACTORS];
  const double *inner_turn, *chirp, *kernel; /* [m], [n], [m] */
} plan;

static double *numbers(lt_ctx *c, int64_t n) { return lt_cpu_scratch(c, LT_F64, 2 * n); }

/* k <- a b. Through locals, as k may be a or b. */
static inline void multiply(double *k, const double *a, const double *b) {
  double re = a[0] * b[0] - a[1] * b[1], im = a[0] * b[1] + a[1] * b[0];
  k[0] = re, k[1] = im;
}

/* ---- powers of small factors ---- */

static bool factors_of(int64_t n, int *radix) {
  static const int known[] = {4, 2, 3, 5};
  for (int k = 0; k < 4; k++)
    for (; n % known[k] == 0; n /= known[k]) *radix++ = known[k];
  *radix = 0;
  return n == 1;
}

/* e^(-pi i k / (2 n)): from a quarter of a circle, so that its corners are exact. cos(pi / 2)
   and sin(pi) are not 0 in doubles: in a transform of ones that error would be seen everywhere. */
static void turn_of(int64_t k, int64_t n, double *v) {
  double angle = 1.57079632679489661923 * (double)(k % n) / (double)n;
  double re = cos(angle), im = -sin(angle);
  int64_t quarters = k / n % 4;
  v[0] = quarters == 0 ? re : quarters == 1 ? im : quarters == 2 ? -re : -im;
  v[1] = quarters == 0 ? im : quarters == 1 ? -re : quarters == 2 ? -im : re;
}

/* All powers from one table, each computed by itself: a recurrence (multiplying by the first one
   again and again) would lose digits as n grows (W. Press and others, Numerical Recipes, 1992,
   section 5.5). */
static const double *turns(lt_ctx *c, int64_t n) {
  double *turn = numbers(c, n);
  for (int64_t k = 0; k < n && turn != NULL; k++) turn_of(4 * k, n, turn + 2 * k);
  return turn;
}

/* `out` holds 2 transforms of length m, interleaved by `step`. The second half of the turns are the
   first with the other sign, so each product serves both. */
static void butterflies_2(double *out, const double *turn, int64_t step, int64_t m) {
  for (int64_t k = 0; k < m; k++) {
    double *a = out + 2 * k, *b = a + 2 * m, t[2];
    multiply(t, b, turn + 2 * step * k);
    b[0] = a[0] - t[0], b[1] = a[1] - t[1];
    a[0] += t[0], a[1] += t[1];
  }
}

/* A multiplication by -i is an exchange of parts with one sign: three products instead of the six
   that two steps of radix 2 take. */
static void butterflies_4(double *out, const double *turn, int64_t step, int64_t m) {
  for (int64_t k = 0; k < m; k++) {
    double *a = out + 2 * k, *b = a + 2 * m, *c = b + 2 * m, *d = c + 2 * m, p[2], q[2], r[2];
    multiply(p, b, turn + 2 * step * k);
    multiply(q, c, turn + 4 * step * k);
    multiply(r, d, turn + 6 * step * k);
    double even[2] = {a[0] + q[0], a[1] + q[1]}, odd[2] = {a[0] - q[0], a[1] - q[1]};
    double sum[2] = {p[0] + r[0], p[1] + r[1]}, turned[2] = {p[1] - r[1], r[0] - p[0]};
    a[0] = even[0] + sum[0], a[1] = even[1] + sum[1];
    c[0] = even[0] - sum[0], c[1] = even[1] - sum[1];
    b[0] = odd[0] + turned[0], b[1] = odd[1] + turned[1];
    d[0] = odd[0] - turned[0], d[1] = odd[1] - turned[1];
  }
}

/* Of any radix p of a transform of length n = step p m. The definition, p^2 products: p is 3 or 5.
   Powers of the turn are taken modulo n from the table. */
static void butterflies(double *out, const double *turn, int64_t step, int64_t m, int p,
                        int64_t n) {
  double part[10];
  for (int64_t k = 0; k < m; k++) {
    for (int q = 0; q < p; q++)
      multiply(part + 2 * q, out + 2 * (k + q * m), turn + 2 * step * q * k);
    for (int j = 0; j < p; j++) {
      double re = 0, im = 0, t[2];
      for (int q = 0; q < p; q++) {
        multiply(t, part + 2 * q, turn + 2 * (step * m * q * j % n));
        re += t[0], im += t[1];
      }
      out[2 * (k + j * m)] = re, out[2 * (k + j * m) + 1] = im;
    }
  }
}

/* The transform of every `step`-th number of `in`, of which there are n / step. Decimation in time:
   p transforms of each p-th number, joined by butterflies. Recursive, so that a part which fits
   into the cache is finished while it is there. */
static void transform(double *out, const double *in, const double *turn, const int *radix,
                      int64_t step, int64_t n) {
  int p = radix[0];
  if (p == 0) {
    out[0] = in[0], out[1] = in[1];
    return;
  }
  int64_t m = n / step / p;
  for (int q = 0; q < p; q++)
    transform(out + 2 * q * m, in + 2 * step * q, turn, radix + 1, step * p, n);
  if (p == 2)
    butterflies_2(out, turn, step, m);
  else if (p == 4)
    butterflies_4(out, turn, step, m);
  else
    butterflies(out, turn, step, m, p, n);
}

/* ---- any length ---- */

static void exchange(double *x, int64_t n) {
  for (int64_t k = 0; k < n; k++) {
    double re = x[2 * k];
    x[2 * k] = x[2 * k + 1], x[2 * k + 1] = re;
  }
}

/* The chirp e^(-pi i k^2 / n), and the transform of its inverse around 0, divided by m. The kernel
   is transformed once for all lines. A length of at least 2 n - 1 keeps the cyclic convolution from
   wrapping onto its own start, and a power of 2 is the fastest one. k^2 is reduced modulo 2 n in
   integers: as a double it would lose the digits that the angle needs. */
static bool prepare_convolution(lt_ctx *c, plan *p) {
  for (p->m = 1; p->m < 2 * p->n - 1;) p->m *= 2;
  /* Of a power of 2 this cannot fail. */
  factors_of(p->m, p->inner);
  double *chirp = numbers(c, p->n), *around = numbers(c, p->m), *kernel = numbers(c, p->m);
  p->inner_turn = turns(c, p->m);
  if (!lt_ok(c)) return false;
  memset(around, 0, (size_t)p->m * 2 * sizeof *around);
  for (int64_t k = 0; k < p->n; k++) {
    turn_of(2 * (k * k % (2 * p->n)), p->n, chirp + 2 * k);
    double *ahead = around + 2 * k, *behind = around + 2 * ((p->m - k) % p->m);
    ahead[0] = behind[0] = chirp[2 * k] / (double)p->m;
    ahead[1] = behind[1] = -chirp[2 * k + 1] / (double)p->m;
  }
  transform(kernel, around, p->inner_turn, p->inner, 1, p->m);
  p->chirp = chirp, p->kernel = kernel;
  return true;
}

static bool plan_make(lt_ctx *c, plan *p, int64_t n) {
  *p = (plan){.n = n};
  if (!factors_of(n, p->radix)) return prepare_convolution(c, p);
  p->turn = turns(c, n);
  return lt_ok(c);
}

/* Numbers that plan_run works in. */
static int64_t scratch_of(const plan *p) { return p->m > 0 ? 2 * p->m : 0; }

/* out = the transform of in, both [n]. */
static void plan_run(const plan *p, double *out, const double *in, double *scratch) {
  if (p->m == 0) {
    transform(out, in, p->turn, p->radix, 1, p->n);
    return;
  }
  double *a = scratch, *b = scratch + 2 * p->m;
  memset(a, 0, (size_t)p->m * 2 * sizeof *a);
  for (int64_t k = 0; k < p->n; k++) multiply(a + 2 * k, in + 2 * k, p->chirp + 2 * k);
  transform(b, a, p->inner_turn, p->inner, 1, p->m);
  for (int64_t k = 0; k < p->m; k++) multiply(b + 2 * k, b + 2 * k, p->kernel + 2 * k);
  /* The inverse transform: exchanging parts before and after it is the same as conjugating
     twice. */
  exchange(b, p->m);
  transform(a, b, p->inner_turn, p->inner, 1, p->m);
  for (int64_t k = 0; k < p->n; k++) {
    const double value[2] = {a[2 * k + 1], a[2 * k]};
    multiply(out + 2 * k, value, p->chirp + 2 * k);
  }
}

/* ---- lines of a tensor ---- */

typedef enum shape { COMPLEX, REAL, REAL_INVERSE } shape;

typedef struct job {
  plan p;
  shape shape;
  bool wide, inverse, halved; /* halved: a real line is a complex one of n / 2 */
  int64_t n, lines, per_chunk, from, to; /* from, to: numbers of a line of x and of y */
  double scale;
  const void *x;
  void *y;
  const double *turn; /* of n, where it is halved */
  double *scratch;    /* of each chunk */
  int64_t scratch_size;
} job;

static inline double load(const job *j, int64_t i) {
  return j->wide ? ((const double *)j->x)[i] : (double)((const float *)j->x)[i];
}
static inline void store(const job *j, int64_t i, double v) {
  if (j->wide)
    ((double *)j->y)[i] = v * j->scale;
  else
    ((float *)j->y)[i] = (float)(v * j->scale);
}

/* The first half of the transform of the real line of which Z, of its pairs, is the transform. A
   real line as n / 2 complex numbers has half the work (Numerical Recipes, 1992, section 12.3): the
   transforms of its even and odd elements are Z's symmetric and antisymmetric halves. */
static void unpack(const job *j, const double *z, int64_t at) {
  int64_t h = j->n / 2;
  for (int64_t k = 0; k <= h; k++) {
    const double *a = z + 2 * (k % h), *b = z + 2 * ((h - k) % h);
    double even[2] = {(a[0] + b[0]) / 2, (a[1] - b[1]) / 2};
    double odd[2] = {(a[1] + b[1]) / 2, (b[0] - a[0]) / 2}, t[2];
    multiply(t, odd, j->turn + 2 * k);
    store(j, at + 2 * k, even[0] + t[0]);
    store(j, at + 2 * k + 1, even[1] + t[1]);
  }
}

/* Number k of a half; what a real line makes real counts as real. */
static void half_of(const job *j, int64_t at, int64_t k, double *v) {
  bool real = k == 0 || 2 * k == j->n;
  v[0] = load(j, at + 2 * k), v[1] = real ? 0 : load(j, at + 2 * k + 1);
}

/* The same backwards: Z of the pairs. */
static void pack(const job *j, double *z, int64_t at) {
  int64_t h = j->n / 2;
  for (int64_t k = 0; k < h; k++) {
    double a[2], b[2], t[2];
    half_of(j, at, k, a);
    half_of(j, at, h - k, b);
    const double *turn = j->turn + 2 * k;
    const double odd[2] = {a[0] - b[0], a[1] + b[1]}, back[2] = {turn[0], -turn[1]};
    multiply(t, odd, back);
    z[2 * k] = a[0] + b[0] - t[1];
    z[2 * k + 1] = a[1] - b[1] + t[0];
  }
}

/* One line into z. */
static void fetch(const job *j, double *z, int64_t at) {
  if (j->shape == REAL && j->halved) {
    for (int64_t i = 0; i < j->n; i++) z[i] = load(j, at + i);
  } else if (j->shape == REAL) {
    for (int64_t i = 0; i < j->n; i++) z[2 * i] = load(j, at + i), z[2 * i + 1] = 0;
  } else if (j->shape == COMPLEX) {
    for (int64_t i = 0; i < 2 * j->n; i++) z[i] = load(j, at + i);
  } else if (j->halved) {
    pack(j, z, at);
  } else {
    for (int64_t k = 0; k < j->n; k++) {
      bool second = k > j->n / 2;
      half_of(j, at, second ? j->n - k : k, z + 2 * k);
      if (second) z[2 * k + 1] = -z[2 * k + 1];
    }
  }
}

/* One line out of z. */
static void give(const job *j, const double *z, int64_t at) {
  if (j->shape == REAL && j->halved) {
    unpack(j, z, at);
  } else if (j->shape == REAL_INVERSE && !j->halved) {
    for (int64_t i = 0; i < j->n; i++) store(j, at + i, z[2 * i]);
  } else {
    for (int64_t i = 0; i < j->to; i++) store(j, at + i, z[i]);
  }
}

static void run_chunk(void *ud, int64_t chunk) {
  const job *j = ud;
  double *in = j->scratch + 2 * chunk * j->scratch_size, *out = in + 2 * j->p.n,
         *scratch = out + 2 * j->p.n;
  int64_t first = chunk * j->per_chunk, end = first + j->per_chunk;
  for (int64_t line = first; line < end && line < j->lines; line++) {
    fetch(j, in, line * j->from);
    if (j->inverse) exchange(in, j->p.n);
    plan_run(&j->p, out, in, scratch);
    if (j->inverse) exchange(out, j->p.n);
    give(j, out, line * j->to);
  }
}

static bool compute(lt_ctx *c, const lt_call *call, job *j) {
  lt_dtype dtype = (lt_dtype)call->in[0]->dtype;
  lt_tensor *x = lt_cpu_contiguous(c, call->in[0], dtype);
  lt_tensor *y = lt_cpu_result(c, call->out[0], dtype, NULL);
  if (!lt_ok(c) || !plan_make(c, &j->p, j->halved ? j->n / 2 : j->n)) return false;
  if (j->halved && (j->turn = turns(c, j->n)) == NULL) return false;
  j->wide = dtype == LT_F64;
  j->lines = x->numel / j->from;
  j->per_chunk = j->n < LT_CHUNK ? LT_CHUNK / j->n : 1;
  int64_t chunks = (j->lines + j->per_chunk - 1) / j->per_chunk;
  j->scratch_size = 2 * j->p.n + scratch_of(&j->p);
  j->scratch = numbers(c, chunks * j->scratch_size);
  j->x = lt_data(x), j->y = lt_data(y);
  if (!lt_ok(c)) return false;
  lt_parallel_work(c, j->lines * j->n * 8, chunks, run_chunk, j);
  return y == call->out[0] || lt_cpu_move(c, call->out[0], y);
}

static bool run(lt_ctx *c, const lt_call *call, job j) {
  if (call->out[0]->numel == 0) return true;
  lt_frame frame = lt_frame_open(c);
  j.halved = j.shape != COMPLEX && j.n % 2 == 0;
  bool ok = compute(c, call, &j);
  lt_frame_close(c, frame, 0, NULL);
  return ok;
}

LT_KERNEL(fft_complex) {
  const lt_args_fft_complex *a = call->args;
  int64_t n = call->in[0]->size[call->in[0]->ndim - 2];
  return run(c, call, (job){.shape = COMPLEX, .n = n, .from = 2 * n, .to = 2 * n,
                            .inverse = a->inverse, .scale = a->scale});
}

LT_KERNEL(fft_real) {
  const lt_args_fft_real *a = call->args;
  int64_t n = call->in[0]->size[call->in[0]->ndim - 1];
  return run(c, call, (job){.shape = REAL, .n = n, .from = n, .to = 2 * (n / 2 + 1),
                            .scale = a->scale});
}

LT_KERNEL(fft_real_inverse) {
  const lt_args_fft_real_inverse *a = call->args;
  return run(c, call, (job){.shape = REAL_INVERSE, .n = a->n, .from = 2 * (a->n / 2 + 1),
                            .to = a->n, .inverse = true, .scale = a->scale});
}
