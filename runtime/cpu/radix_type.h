/* runtime/cpu/radix_type.h: the passes of cpu/radix.c for one kind of element.

   Included with E (element), KEY(e), NAME(f). No guard. */

/* How often each digit stands in a chunk. */
static void NAME(count)(void *ud, int64_t chunk) {
  const pass *p = ud;
  const E *from = p->from;
  int64_t start = chunk * CHUNK, end = start + CHUNK < p->n ? start + CHUNK : p->n;
  uint64_t *counts = p->counts + (chunk << p->bits), mask = ((uint64_t)1 << p->bits) - 1;
  memset(counts, 0, sizeof *counts << p->bits);
  for (int64_t i = start; i < end; i++) counts[(uint64_t)KEY(from[i]) >> p->shift & mask]++;
}

/* Each element of a chunk to its place; counts hold the next place of each digit. */
static void NAME(scatter)(void *ud, int64_t chunk) {
  const pass *p = ud;
  const E *from = p->from;
  E *to = p->to;
  int64_t start = chunk * CHUNK, end = start + CHUNK < p->n ? start + CHUNK : p->n;
  uint64_t *places = p->counts + (chunk << p->bits), mask = ((uint64_t)1 << p->bits) - 1;
  for (int64_t i = start; i < end; i++)
    to[places[(uint64_t)KEY(from[i]) >> p->shift & mask]++] = from[i];
}

/* Sorts `a` by the digits that `varying` says differ; returns where the result lies. */
static E *NAME(passes)(lt_ctx *c, E *a, E *b, uint64_t *counts, int64_t n, uint64_t varying) {
  pass p = {.n = n, .bits = n < 4096 ? 6 : 8, .counts = counts};
  int64_t chunks = (n + CHUNK - 1) / CHUNK;
  uint64_t mask = ((uint64_t)1 << p.bits) - 1;
  for (; p.shift < 64; p.shift += p.bits) {
    if ((varying >> p.shift & mask) == 0) continue;
    p.from = a, p.to = b;
    in_chunks(c, chunks, NAME(count), &p);
    add_up(&p, chunks);
    in_chunks(c, chunks, NAME(scatter), &p);
    E *t = a;
    a = b, b = t;
  }
  return a;
}
