/* runtime/cpu/recurrent_type.h: the steps of recurrent layers in one compute type; included by
   recurrent.c with T, NAME, EXP defined. No guard. */

#include "cpu/packed_type.h"

#define SIGMOID(x) (1 / (1 + EXP(-(x))))

/* Panels of one block of units: the columns of each of its gates. */
static void NAME(pack_hh)(const lt_recurrent_job *j, const void *values, int64_t panel) {
  const T *weight = values;
  int64_t p = j->r.p, u = panel / j->r.gates * NAME(PANEL), g = panel % j->r.gates;
  int64_t n = j->r.h - u < NAME(PANEL) ? j->r.h - u : NAME(PANEL);
  NAME(pack)(weight + (g * j->r.h + u) * p, p, n, 1, p, (T *)j->panels + panel * p * NAME(PANEL));
}

static void NAME(pack_hr)(const lt_recurrent_job *j, const void *values, int64_t panel) {
  const T *weight = values;
  int64_t h = j->r.h, from = panel * NAME(PANEL);
  int64_t n = j->r.p - from < NAME(PANEL) ? j->r.p - from : NAME(PANEL);
  NAME(pack)(weight + from * h, h, n, 1, h, (T *)j->panels_hr + panel * h * NAME(PANEL));
}

/* Units u..u+n-1 of a sequence: their gates of x and of h (z), one every `apart`; what is saved. */
typedef struct NAME(part) {
  int64_t n, h, apart;
  const T *x, *z, *bias, *before; /* before: h of the step before */
  T *acts, *cell, *kept, *out;
} NAME(part);

/* c = f c + i g and h = o tanh(c) (S. Hochreiter, J. Schmidhuber, 1997; the forget gate f of F.
   Gers and others, 2000). Gates come in PyTorch's order i, f, g, o. The cell is updated in
   place. */
static void NAME(lstm)(const NAME(part) *p) {
  const T *x = p->x, *z = p->z;
  T *cell = p->cell, *out = p->out, *acts = p->acts, *kept = p->kept;
  int64_t h = p->h, apart = p->apart;
  T i_[LT_TILE_MOST], f_[LT_TILE_MOST], g_[LT_TILE_MOST], o_[LT_TILE_MOST];
  LT_INDEPENDENT for (int64_t u = 0; u < p->n; u++) {
    i_[u] = SIGMOID(x[u] + z[u]);
    f_[u] = SIGMOID(x[apart + u] + z[apart + u]);
    g_[u] = TANH(x[2 * apart + u] + z[2 * apart + u]);
    o_[u] = SIGMOID(x[3 * apart + u] + z[3 * apart + u]);
  }
  LT_INDEPENDENT for (int64_t u = 0; u < p->n; u++) {
    cell[u] = f_[u] * cell[u] + i_[u] * g_[u];
    out[u] = o_[u] * TANH(cell[u]);
  }
  if (acts == NULL) return;
  size_t bytes = (size_t)p->n * sizeof(T);
  memcpy(acts, i_, bytes), memcpy(acts + h, f_, bytes);
  memcpy(acts + 2 * h, g_, bytes), memcpy(acts + 3 * h, o_, bytes);
  memcpy(kept, cell, bytes);
}

/* h = (1 - u) n + u h (K. Cho and others, 2014), gates in PyTorch's order r, u, n. As there, and in
   cuDNN, r multiplies the product of h with its bias (q, which is saved), not h itself: then one
   product serves all three gates. */
static void NAME(gru)(const NAME(part) *p) {
  const T *x = p->x, *z = p->z, *before = p->before;
  int64_t h = p->h, apart = p->apart;
  T r_[LT_TILE_MOST], u_[LT_TILE_MOST], n_[LT_TILE_MOST], q_[LT_TILE_MOST], b_[3 * LT_TILE_MOST];
  memset(b_, 0, sizeof b_);
  for (int g = 0; g < 3 && p->bias != NULL; g++)
    memcpy(b_ + g * LT_TILE_MOST, p->bias + g * h, (size_t)p->n * sizeof(T));
  LT_INDEPENDENT for (int64_t u = 0; u < p->n; u++) {
    r_[u] = SIGMOID(x[u] + (z[u] + b_[u]));
    u_[u] = SIGMOID(x[apart + u] + (z[apart + u] + b_[LT_TILE_MOST + u]));
    q_[u] = z[2 * apart + u] + b_[2 * LT_TILE_MOST + u];
    n_[u] = TANH(x[2 * apart + u] + r_[u] * q_[u]);
    p->out[u] = n_[u] + u_[u] * (before[u] - n_[u]);
  }
  if (p->acts == NULL) return;
  size_t bytes = (size_t)p->n * sizeof(T);
  memcpy(p->acts, r_, bytes), memcpy(p->acts + h, u_, bytes);
  memcpy(p->acts + 2 * h, n_, bytes), memcpy(p->acts + 3 * h, q_, bytes);
}

/* h = tanh(x + z) or relu(x + z) (J. Elman, 1990). NaN must pass relu: a comparison alone would
   hide it. */
static void NAME(rnn)(const NAME(part) *p, bool relu) {
  const T *x = p->x, *z = p->z;
  T *out = p->out;
  if (relu)
    LT_INDEPENDENT for (int64_t u = 0; u < p->n; u++) {
      T v = x[u] + z[u];
      out[u] = v > 0 ? v : v != v ? v : 0; /* NaN passes */
    }
  else
    LT_INDEPENDENT for (int64_t u = 0; u < p->n; u++) out[u] = TANH(x[u] + z[u]);
}

static inline T *NAME(row)(void *data, int64_t at) { return data == NULL ? NULL : (T *)data + at; }

/* What a sequence is after its last step: its state as before, and y of zeros. */
static void NAME(pass_over)(const lt_recurrent_job *j, int64_t row, int64_t n, int64_t u,
                            int64_t count) {
  const lt_recurrent *r = &j->r;
  size_t bytes = (size_t)count * sizeof(T);
  T *cell = NAME(row)(j->cells, row * r->h + u), *kept = NAME(row)(j->hidden, row * r->h + u);
  if (cell != NULL) memcpy(cell, (T *)j->c + n * r->h + u, bytes);
  if (kept != NULL) memset(kept, 0, bytes);
  if (r->projected) return;
  memcpy((T *)j->h[!j->turn] + n * r->p + u, (T *)j->h[j->turn] + n * r->p + u, bytes);
  memset((T *)j->y.data + j->at * j->y.step + n * j->y.row + u, 0, bytes);
}

/* Units u..u+count-1 of sequence n, whose products with the inputs and with h are in x and z. */
static void NAME(cell)(const lt_recurrent_job *j, int64_t n, int64_t u, int64_t count, const T *x,
                       const T *z) {
  const lt_recurrent *r = &j->r;
  int64_t row = j->at * r->n + n;
  if (!lt_is_active(j, n)) {
    NAME(pass_over)(j, row, n, u, count);
    return;
  }
  NAME(part) p = {.n = count, .h = r->h, .apart = LT_GROUP_ROWS * NAME(PANEL), .x = x, .z = z,
                  .bias = j->bias == NULL ? NULL : (const T *)j->bias + u,
                  .before = (const T *)j->h[j->turn] + n * r->p + u,
                  .acts = NAME(row)(j->acts, row * r->acts * r->h + u),
                  .cell = NAME(row)(j->c, n * r->h + u),
                  .kept = NAME(row)(j->cells, row * r->h + u),
                  .out = r->projected ? (T *)j->m + n * r->h + u
                                      : (T *)j->h[!j->turn] + n * r->p + u};
  if (r->cell == LT_CELL_LSTM)
    NAME(lstm)(&p);
  else if (r->cell == LT_CELL_GRU)
    NAME(gru)(&p);
  else
    NAME(rnn)(&p, j->relu);
  T *to = r->projected ? NAME(row)(j->hidden, row * r->h + u)
                       : (T *)j->y.data + j->at * j->y.step + n * j->y.row + u;
  if (to != NULL) memcpy(to, p.out, (size_t)count * sizeof(T));
}

/* The gates of x of a group of sequences, all before the cells: what these save of one sequence
   would hold up the loads of the next where rows lie a multiple of 4096 bytes apart. */
static void NAME(take)(const lt_recurrent_job *j, int64_t n, int64_t rows, int64_t u,
                       int64_t count, T x[4][LT_GROUP_ROWS * NAME(PANEL)]) {
  const lt_recurrent *r = &j->r;
  const T *from = (const T *)j->gates + (j->at * r->n + n) * r->gates * r->h + u;
  for (int64_t k = 0; k < rows; k++)
    for (int64_t g = 0; g < r->gates; g++)
      memcpy(x[g] + k * NAME(PANEL), from + (k * r->gates + g) * r->h, (size_t)count * sizeof(T));
}

/* One step of a block of units. A panel stays in the nearest cache for the rows of a group. */
static void NAME(units)(const lt_recurrent_job *j, int64_t block) {
  T x[4][LT_GROUP_ROWS * NAME(PANEL)], z[4][LT_GROUP_ROWS * NAME(PANEL)];
  const lt_recurrent *r = &j->r;
  int64_t u = block * NAME(PANEL), size = r->p * NAME(PANEL);
  int64_t count = r->h - u < NAME(PANEL) ? r->h - u : NAME(PANEL);
  const T *panels = (const T *)j->panels + block * r->gates * size;
  for (int64_t n = 0; n < r->n; n += LT_GROUP_ROWS) {
    int64_t rows = r->n - n < LT_GROUP_ROWS ? r->n - n : LT_GROUP_ROWS;
    for (int64_t g = 0; g < r->gates; g++)
      for (int64_t k = 0; k < rows; k += NAME(ROWS))
        NAME(times_panel)(rows - k < NAME(ROWS) ? rows - k : NAME(ROWS), r->p,
                          (const T *)j->h[j->turn] + (n + k) * r->p, r->p, 1, panels + g * size,
                          z[g] + k * NAME(PANEL));
    NAME(take)(j, n, rows, u, count, x);
    for (int64_t k = 0; k < rows; k++)
      NAME(cell)(j, n + k, u, count, x[0] + k * NAME(PANEL), z[0] + k * NAME(PANEL));
  }
}

/* Outputs of one step by the projection. The projection of H. Sak and others, 2014: h = weight_hr
   m, with P outputs of H units, so that the product of the next step is smaller. A sequence that
   has ended keeps its state, and y is 0. */
static void NAME(project)(const lt_recurrent_job *j, int64_t block) {
  T z[LT_TILE_ROWS * NAME(PANEL)];
  const lt_recurrent *r = &j->r;
  int64_t from = block * NAME(PANEL);
  int64_t count = r->p - from < NAME(PANEL) ? r->p - from : NAME(PANEL);
  const T *panel = (const T *)j->panels_hr + block * r->h * NAME(PANEL);
  for (int64_t n = 0; n < r->n; n += NAME(ROWS)) {
    int64_t rows = r->n - n < NAME(ROWS) ? r->n - n : NAME(ROWS);
    NAME(times_panel)(rows, r->h, (const T *)j->m + n * r->h, r->h, 1, panel, z);
    for (int64_t k = n; k < n + rows; k++) {
      T *to = (T *)j->h[!j->turn] + k * r->p + from;
      T *y = (T *)j->y.data + j->at * j->y.step + k * j->y.row + from;
      size_t bytes = (size_t)count * sizeof(T);
      bool active = lt_is_active(j, k);
      memcpy(to, active ? z + (k - n) * NAME(PANEL) : (T *)j->h[j->turn] + k * r->p + from, bytes);
      if (active)
        memcpy(y, to, bytes);
      else
        memset(y, 0, bytes);
    }
  }
}
#undef SIGMOID
