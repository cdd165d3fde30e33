/* runtime/cpu/radix.c: sorting by digits, from the lowest up (LSD radix sort).

   A value becomes a key, an unsigned number in the same order; a key of 32 bits and the position
   make one word, a key of 64 bits and the position a pair. Integers whose range fits take 32 bits.
   Digits that all keys share cost nothing. A long line is cut into chunks whose digits are counted
   and moved apart, which is as stable as one after the other.

   D. Knuth, The Art of Computer Programming, volume 3, section 5.2.5. Floats as unsigned numbers
   in the same order: a negative one has all bits flipped, another one its sign bit. */
#include "cpu/radix.h"

#include <omp.h>
#include <string.h>

#include "base/threads.h"

/* Digits of up to 8 bits: 256 places that are written to in turn are what the first cache and the
   table of pages still bear. */
enum { CHUNK = 1 << 16, MAX_BITS = 8 };

typedef struct wide {
  uint64_t key, index;
} wide;

typedef struct pass {
  const void *from;
  void *to;
  uint64_t *counts; /* [chunks, 2^bits] */
  int64_t n;
  int bits, shift;
} pass;

/* Without c on the calling thread. */
static void in_chunks(lt_ctx *c, int64_t chunks, void (*fn)(void *ud, int64_t chunk), void *ud) {
  if (c != NULL && chunks > 1)
    lt_parallel(c, chunks, fn, ud);
  else
    for (int64_t k = 0; k < chunks; k++) fn(ud, k);
}

/* Counts become the place where the first element of each digit of each chunk goes. Digits outside,
   chunks inside: elements of one digit come out in the order of the chunks, which is what makes the
   sort stable. */
static void add_up(pass *p, int64_t chunks) {
  uint64_t sum = 0;
  for (int64_t digit = 0; digit < (int64_t)1 << p->bits; digit++)
    for (int64_t k = 0; k < chunks; k++) {
      uint64_t *at = p->counts + (k << p->bits) + digit, n = *at;
      *at = sum;
      sum += n;
    }
}

#define E       uint64_t
#define KEY(e)  ((e) >> 32)
#define NAME(f) f##_narrow
#include "cpu/radix_type.h"
#undef E
#undef KEY
#undef NAME
#define E       wide
#define KEY(e)  (e).key
#define NAME(f) f##_wide
#include "cpu/radix_type.h"

/* Keys: -0 has that of 0, every NaN the highest. */

static inline uint32_t key_f32(float x) {
  uint32_t u;
  x = x == 0 ? 0 : x;
  memcpy(&u, &x, sizeof u);
  return x != x ? UINT32_MAX : u ^ ((u >> 31) != 0 ? UINT32_MAX : (uint32_t)1 << 31);
}

static inline uint64_t key_f64(double x) {
  uint64_t u;
  x = x == 0 ? 0 : x;
  memcpy(&u, &x, sizeof u);
  return x != x ? UINT64_MAX : u ^ ((u >> 63) != 0 ? UINT64_MAX : (uint64_t)1 << 63);
}

static inline uint64_t key_i64(int64_t x) { return (uint64_t)x ^ (uint64_t)1 << 63; }

/* Values come back from their keys, which are in order, not from x, which is not; but a zero has
   its sign there, a NaN its bits. */
static void line_f32(lt_ctx *c, const lt_radix *r, const float *x, float *value, int64_t *index,
                     uint64_t *work) {
  uint64_t *a = work, *b = a + r->n, *counts = b + r->n, varying = 0;
  uint32_t flip = r->descending ? UINT32_MAX : 0, first = key_f32(x[0]), zero = key_f32(0);
  for (int64_t i = 0; i < r->n; i++) {
    uint32_t key = key_f32(x[i]);
    varying |= key ^ first;
    a[i] = (uint64_t)(key ^ flip) << 32 | (uint64_t)i;
  }
  a = passes_narrow(c, a, b, counts, r->n, varying);
  for (int64_t i = 0; i < r->n; i++) {
    uint32_t key = (uint32_t)(a[i] >> 32) ^ flip, at = (uint32_t)a[i];
    uint32_t u = key ^ ((key >> 31) != 0 ? (uint32_t)1 << 31 : UINT32_MAX);
    index[i] = at;
    if (key == zero || key == UINT32_MAX)
      value[i] = x[at];
    else
      memcpy(&value[i], &u, sizeof u);
  }
}

static void line_f64(lt_ctx *c, const lt_radix *r, const double *x, double *value, int64_t *index,
                     uint64_t *work) {
  wide *a = (wide *)work, *b = a + r->n;
  uint64_t flip = r->descending ? UINT64_MAX : 0, first = key_f64(x[0]), zero = key_f64(0);
  uint64_t varying = 0;
  for (int64_t i = 0; i < r->n; i++) {
    uint64_t key = key_f64(x[i]);
    varying |= key ^ first;
    a[i] = (wide){key ^ flip, (uint64_t)i};
  }
  a = passes_wide(c, a, b, (uint64_t *)(b + r->n), r->n, varying);
  for (int64_t i = 0; i < r->n; i++) {
    uint64_t key = a[i].key ^ flip;
    uint64_t u = key ^ ((key >> 63) != 0 ? (uint64_t)1 << 63 : UINT64_MAX);
    index[i] = (int64_t)a[i].index;
    if (key == zero || key == UINT64_MAX)
      value[i] = x[a[i].index];
    else
      memcpy(&value[i], &u, sizeof u);
  }
}

/* Keys of 64 bits. */
static void line_i64(lt_ctx *c, const lt_radix *r, const int64_t *x, int64_t *value, int64_t *index,
                     uint64_t *work) {
  wide *a = (wide *)work, *b = a + r->n;
  uint64_t flip = r->descending ? UINT64_MAX : 0, varying = 0;
  for (int64_t i = 0; i < r->n; i++) {
    varying |= key_i64(x[i]) ^ key_i64(x[0]);
    a[i] = (wide){key_i64(x[i]) ^ flip, (uint64_t)i};
  }
  a = passes_wide(c, a, b, (uint64_t *)(b + r->n), r->n, varying);
  for (int64_t i = 0; i < r->n; i++) {
    value[i] = (int64_t)((a[i].key ^ flip) ^ (uint64_t)1 << 63);
    index[i] = (int64_t)a[i].index;
  }
}

/* Keys of 32 bits, counted from the smallest; with descending order from the largest down. Ids and
   counts are such: half the passes of 64 bits, and the highest digits mostly cost nothing. */
static void line_range(lt_ctx *c, const lt_radix *r, const int64_t *x, int64_t *value,
                       int64_t *index, uint64_t *work, int64_t least, int64_t most) {
  uint64_t *a = work, *b = a + r->n, *counts = b + r->n;
  uint64_t range = (uint64_t)most - (uint64_t)least, varying = range;
  for (int k = 1; k < 64; k *= 2) varying |= varying >> k; /* every bit below the highest */
  for (int64_t i = 0; i < r->n; i++) {
    uint64_t v = (uint64_t)x[i], key = r->descending ? (uint64_t)most - v : v - (uint64_t)least;
    a[i] = key << 32 | (uint64_t)i;
  }
  a = passes_narrow(c, a, b, counts, r->n, varying);
  for (int64_t i = 0; i < r->n; i++) {
    uint64_t key = a[i] >> 32;
    value[i] = (int64_t)(r->descending ? (uint64_t)most - key : (uint64_t)least + key);
    index[i] = (int64_t)(uint32_t)a[i];
  }
}

static void sort_line(lt_ctx *c, const lt_radix *r, int64_t line, uint64_t *work) {
  int64_t at = line * r->n, *index = r->index + at;
  if (r->dtype == LT_F32) {
    line_f32(c, r, (const float *)r->x + at, (float *)r->value + at, index, work);
  } else if (r->dtype == LT_F64) {
    line_f64(c, r, (const double *)r->x + at, (double *)r->value + at, index, work);
  } else {
    const int64_t *x = (const int64_t *)r->x + at;
    int64_t *value = (int64_t *)r->value + at, least = x[0], most = x[0];
    for (int64_t i = 1; i < r->n; i++) {
      least = x[i] < least ? x[i] : least;
      most = x[i] > most ? x[i] : most;
    }
    if ((uint64_t)most - (uint64_t)least <= UINT32_MAX)
      line_range(c, r, x, value, index, work, least, most);
    else
      line_i64(c, r, x, value, index, work);
  }
}

/* Words of memory that one line needs: two lists of elements, and the counts. Of a 32-bit key one
   word an element holds the position too; others need two. */
static size_t words_of(const lt_radix *r) {
  size_t n = (size_t)r->n, chunks = (n + CHUNK - 1) / CHUNK;
  return (r->dtype == LT_F32 ? 2 : 4) * n + (chunks << MAX_BITS);
}

/* Long lines use all threads within a line and need memory once; short ones are sorted side by
   side, each thread with memory of its own. */
static int threads_of(const lt_ctx *c, const lt_radix *r) {
  return r->n <= CHUNK && r->lines > 1 && c->threads > 1 ? c->threads : 1;
}

size_t lt_radix_scratch(const lt_ctx *c, const lt_radix *r) {
  return (size_t)threads_of(c, r) * words_of(r) * sizeof(uint64_t);
}

typedef struct job {
  const lt_radix *r;
  uint64_t *work;
  int64_t per_chunk;
  int threads;
} job;

static void some_lines(void *ud, int64_t chunk) {
  const job *j = ud;
  int64_t from = chunk * j->per_chunk, to = from + j->per_chunk;
  /* By thread, not by chunk: memory grows with the threads, not with the lines. */
  uint64_t *work = j->work + (size_t)(omp_get_thread_num() % j->threads) * words_of(j->r);
  for (int64_t line = from; line < to && line < j->r->lines; line++)
    sort_line(NULL, j->r, line, work);
}

void lt_radix_sort(lt_ctx *c, const lt_radix *r, void *scratch) {
  if (r->n > CHUNK || r->lines == 1) {
    for (int64_t line = 0; line < r->lines; line++) sort_line(c, r, line, scratch);
    return;
  }
  job j = {.r = r, .work = scratch, .per_chunk = CHUNK / r->n, .threads = threads_of(c, r)};
  lt_parallel(c, (r->lines + j.per_chunk - 1) / j.per_chunk, some_lines, &j);
}
