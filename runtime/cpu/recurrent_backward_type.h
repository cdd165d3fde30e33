/* runtime/cpu/recurrent_backward_type.h: the steps of recurrent layers backwards in one compute
   type; included by recurrent_backward.c with T, NAME defined. No guard.

   Backpropagation through time (P. Werbos, 1990): dh of a step is the gradient of y there, plus the
   gates' gradients of the step after times weight_hh, plus what is carried past the gates.
   Derivatives of the gates come from their saved values: s (1 - s) of a sigmoid, 1 - t^2 of
   tanh. */

#include "cpu/packed_type.h"

/* Columns of weight_hh [G H, P] and weight_hr [P, H], by outputs and by units. */
static void NAME(pack_hh)(const lt_recurrent_job *j, const void *values, int64_t panel) {
  const T *weight = values;
  int64_t terms = j->r.gates * j->r.h, from = panel * NAME(PANEL);
  int64_t n = j->r.p - from < NAME(PANEL) ? j->r.p - from : NAME(PANEL);
  NAME(pack)(weight + from, terms, n, j->r.p, 1, (T *)j->panels + panel * terms * NAME(PANEL));
}

static void NAME(pack_hr)(const lt_recurrent_job *j, const void *values, int64_t panel) {
  const T *weight = values;
  int64_t from = panel * NAME(PANEL);
  int64_t n = j->r.h - from < NAME(PANEL) ? j->r.h - from : NAME(PANEL);
  NAME(pack)(weight + from, j->r.p, n, j->r.h, 1,
             (T *)j->panels_hr + panel * j->r.p * NAME(PANEL));
}

/* Units of a sequence at a step: gradients dh of its outputs, what was saved, what is made. */
typedef struct NAME(part) {
  int64_t n, h;
  const T *dh, *acts, *cell, *before, *y; /* before: the state of the step before */
  T *dc, *of_x, *of_h, *carry;
} NAME(part);

/* d is the gradient of c, which the next (earlier) step receives through f: no product in between,
   the reason why gradients of an LSTM last over many steps. */
static void NAME(lstm)(const NAME(part) *p) {
  int64_t h = p->h;
  const T *acts = p->acts, *dh = p->dh, *cell = p->cell, *before = p->before;
  T *dc = p->dc, *to = p->of_x;
  LT_INDEPENDENT for (int64_t u = 0; u < p->n; u++) {
    T i = acts[u], f = acts[h + u], g = acts[2 * h + u], o = acts[3 * h + u];
    T tc = TANH(cell[u]), d = dc[u] + dh[u] * o * (1 - tc * tc);
    to[u] = d * g * i * (1 - i);
    to[h + u] = d * before[u] * f * (1 - f);
    to[2 * h + u] = d * i * (1 - g * g);
    to[3 * h + u] = dh[u] * tc * o * (1 - o);
    dc[u] = d * f;
  }
}

/* The gradient of the candidate's product with h is r times that of its sum (of_h); all else is
   shared. carry: what h passes on directly, u of h = (1 - u) n + u h. */
static void NAME(gru)(const NAME(part) *p) {
  int64_t h = p->h;
  const T *acts = p->acts, *dh = p->dh, *before = p->before;
  T *to = p->of_x, *of_h = p->of_h, *carry = p->carry;
  LT_INDEPENDENT for (int64_t u = 0; u < p->n; u++) {
    T r = acts[u], z = acts[h + u], n = acts[2 * h + u], q = acts[3 * h + u];
    T dn = dh[u] * (1 - z) * (1 - n * n), dr = dn * q * r * (1 - r);
    T dz = dh[u] * (before[u] - n) * z * (1 - z);
    to[u] = dr, to[h + u] = dz, to[2 * h + u] = dn;
    of_h[u] = dr, of_h[h + u] = dz, of_h[2 * h + u] = dn * r;
    carry[u] = dh[u] * z;
  }
}

static void NAME(rnn)(const NAME(part) *p, bool relu) {
  const T *dh = p->dh, *y = p->y;
  T *to = p->of_x;
  if (relu)
    LT_INDEPENDENT for (int64_t u = 0; u < p->n; u++) to[u] = y[u] > 0 ? dh[u] : 0;
  else
    LT_INDEPENDENT for (int64_t u = 0; u < p->n; u++) to[u] = dh[u] * (1 - y[u] * y[u]);
}

static void NAME(clear)(T *to, int64_t gates, int64_t h, int64_t n) {
  for (int64_t g = 0; g < gates && to != NULL; g++) memset(to + g * h, 0, (size_t)n * sizeof(T));
}

/* The state before this step of the units, zeros where none was passed. */
static const T *NAME(state_before)(const lt_recurrent_job *j, int64_t n, int64_t u,
                                   const T *zeros) {
  const lt_recurrent *r = &j->r;
  bool gru = r->cell == LT_CELL_GRU;
  bool first = j->before < 0 || (gru && j->reverse && j->lengths != NULL &&
                                 j->at == j->lengths[n] - 1); /* y there is 0 */
  if (first) return j->state == NULL ? zeros : (const T *)j->state + n * r->h + u;
  if (gru) return (const T *)j->y.data + j->before * j->y.step + n * j->y.row + u;
  return (const T *)j->cells + (j->before * r->n + n) * r->h + u;
}

/* Units u..u+count-1 of sequence n; dh: gradients of their outputs at this step. */
static void NAME(cell)(const lt_recurrent_job *j, int64_t n, int64_t u, int64_t count,
                       const T *dh) {
  static const T zeros[LT_TILE_MOST] = {0};
  const lt_recurrent *r = &j->r;
  int64_t row = j->at * r->n + n, gate = row * r->gates * r->h + u;
  NAME(part) p = {.n = count, .h = r->h, .dh = dh, .of_x = (T *)j->g_gates + gate,
                  .acts = (const T *)j->acts + row * r->acts * r->h + u};
  if (r->cell == LT_CELL_GRU) p.of_h = (T *)j->g_h + gate;
  if (!lt_is_active(j, n)) {
    NAME(clear)(p.of_x, r->gates, r->h, count);
    NAME(clear)(p.of_h, r->gates, r->h, count);
    return;
  }
  if (r->cell != LT_CELL_RNN) p.before = NAME(state_before)(j, n, u, zeros);
  if (r->cell == LT_CELL_LSTM) {
    p.cell = (const T *)j->cells + row * r->h + u;
    p.dc = (T *)j->g_c + n * r->h + u;
    NAME(lstm)(&p);
  } else if (r->cell == LT_CELL_GRU) {
    p.carry = (T *)j->carry + n * r->p + u;
    NAME(gru)(&p);
  } else {
    p.y = (const T *)j->y.data + j->at * j->y.step + n * j->y.row + u;
    NAME(rnn)(&p, j->relu);
  }
}

/* Gradients of outputs u..u+count-1 of sequence n: z of the step after, what is carried, and at an
   active step y's; dh gets them. What is carried on past this step is what no gate takes. */
static void NAME(gather)(const lt_recurrent_job *j, int64_t n, int64_t u, int64_t count,
                         const T *z, T *dh) {
  bool active = j->at >= 0 && lt_is_active(j, n);
  const T *g = j->g_y.data == NULL || !active
                   ? NULL : (const T *)j->g_y.data + j->at * j->g_y.step + n * j->g_y.row + u;
  T *carry = (T *)j->carry + n * j->r.p + u;
  for (int64_t k = 0; k < count; k++) dh[k] = z[k] + carry[k];
  for (int64_t k = 0; k < count && g != NULL; k++) dh[k] += g[k];
  if (active)
    memset(carry, 0, (size_t)count * sizeof(T));
  else
    memcpy(carry, dh, (size_t)count * sizeof(T));
}

/* Products of the gates' gradients at the step after with a panel; without one zeros. */
static void NAME(from_after)(const lt_recurrent_job *j, int64_t n, int64_t rows, int64_t block,
                             T *z) {
  int64_t terms = j->r.gates * j->r.h;
  const T *gates = j->r.cell == LT_CELL_GRU ? j->g_h : j->g_gates;
  if (j->after < 0)
    memset(z, 0, LT_TILE_ROWS * NAME(PANEL) * sizeof(T));
  else
    NAME(times_panel)(rows, terms, gates + (j->after * j->r.n + n) * terms, terms, 1,
                      (const T *)j->panels + block * terms * NAME(PANEL), z);
}

/* One step of a block of outputs: their gradients, and without a projection the cells below. */
static void NAME(outputs)(const lt_recurrent_job *j, int64_t block) {
  T z[LT_TILE_ROWS * NAME(PANEL)], dh[NAME(PANEL)];
  const lt_recurrent *r = &j->r;
  int64_t u = block * NAME(PANEL);
  int64_t count = r->p - u < NAME(PANEL) ? r->p - u : NAME(PANEL);
  for (int64_t n = 0; n < r->n; n += NAME(ROWS)) {
    int64_t rows = r->n - n < NAME(ROWS) ? r->n - n : NAME(ROWS);
    NAME(from_after)(j, n, rows, block, z);
    for (int64_t k = n; k < n + rows; k++) {
      T *to = r->projected && j->at >= 0 ? (T *)j->g_p + (j->at * r->n + k) * r->p + u : dh;
      NAME(gather)(j, k, u, count, z + (k - n) * NAME(PANEL), to);
      if (j->at >= 0 && !r->projected) NAME(cell)(j, k, u, count, dh);
      if (to != dh && !lt_is_active(j, k)) memset(to, 0, (size_t)count * sizeof(T));
    }
  }
}

/* With a projection: the cells of a block of units. */
static void NAME(units)(const lt_recurrent_job *j, int64_t block) {
  T z[LT_TILE_ROWS * NAME(PANEL)];
  const lt_recurrent *r = &j->r;
  int64_t u = block * NAME(PANEL);
  int64_t count = r->h - u < NAME(PANEL) ? r->h - u : NAME(PANEL);
  const T *panel = (const T *)j->panels_hr + block * r->p * NAME(PANEL);
  for (int64_t n = 0; n < r->n; n += NAME(ROWS)) {
    int64_t rows = r->n - n < NAME(ROWS) ? r->n - n : NAME(ROWS);
    NAME(times_panel)(rows, r->p, (const T *)j->g_p + (j->at * r->n + n) * r->p, r->p, 1, panel, z);
    for (int64_t k = 0; k < rows; k++) NAME(cell)(j, n + k, u, count, z + k * NAME(PANEL));
  }
}
