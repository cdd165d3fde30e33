/* runtime/xla/lower_recurrent.c: recurrent layers: the inputs' part of all gates is one product,
   the steps are a loop. Layouts of what is saved: ops/recurrent.h.

   T steps, N sequences, H units, P outputs, G gates. */
#include "ops/args.h"
#include "ops/recurrent.h"
#include "xla/recurrent.h"

void lt_loop_begin(lt_hlo_text *h, int64_t steps, int n, const lt_hlo *first, lt_hlo *state,
                   lt_hlo *out) {
  int id = ++h->values;
  for (int k = 0; k < n; k++) {
    state[k] = out[k] = first[k];
    out[k].id = id, out[k].part = k;
    state[k].id = ++h->values, state[k].part = -1;
  }
  lt_hlo_put(h, "%%%d:%d = stablehlo.while(", (int64_t)id, (int64_t)n);
  for (int k = 0; k < n; k++) lt_hlo_put(h, "%s$ = $", k > 0 ? ", " : "", &state[k], &first[k]);
  lt_hlo_put(h, ") : %t\ncond {\n", state, n);
  lt_hlo more = lt_hlo_compare(h, "LT", state[0], lt_hlo_integer(h, steps, state[0]));
  lt_hlo_put(h, "stablehlo.return $ : @\n} do {\n", &more, &more);
}

void lt_loop_end(lt_hlo_text *h, int n, const lt_hlo *next) {
  lt_hlo_put(h, "stablehlo.return %v : %t\n}\n", next, n, next, n);
}

lt_hlo lt_step_of(lt_hlo_text *h, lt_hlo x, lt_hlo at) {
  lt_hlo zero = lt_hlo_integer(h, 0, at), part = x;
  part.size[0] = 1;
  part =
      lt_hlo_line(h, part, "stablehlo.dynamic_slice $, $, $, $, sizes = [%l] : (@, @, @, @) -> @",
                  &x, &at, &zero, &zero, part.size, 3, &x, &at, &zero, &zero, &part);
  return lt_hlo_reshape(h, part, 2, x.size + 1);
}

lt_hlo lt_step_put(lt_hlo_text *h, lt_hlo x, lt_hlo at, lt_hlo part) {
  lt_hlo zero = lt_hlo_integer(h, 0, at);
  part = lt_hlo_reshape(h, part, 3, (int64_t[]){1, x.size[1], x.size[2]});
  return lt_hlo_line(h, x, "stablehlo.dynamic_update_slice $, $, $, $, $ : (@, @, @, @, @) -> @",
                     &x, &part, &at, &zero, &zero, &x, &part, &at, &zero, &zero, &x);
}

lt_hlo lt_step_at(lt_lowering *l, int64_t t, lt_hlo step) {
  return lt_lower_flag(l, "reverse")
             ? lt_hlo_two(l->h, "subtract", lt_hlo_integer(l->h, t - 1, step), step)
             : step;
}

lt_hlo lt_step_active(lt_lowering *l, int lengths, lt_hlo at) {
  if (!lt_has(l, lengths)) return (lt_hlo){0};
  lt_hlo n = l->in[lengths], on = lt_hlo_compare(l->h, "GT", n, lt_hlo_expand(l->h, at, n));
  return lt_hlo_reshape(l->h, on, 2, (int64_t[]){n.size[0], 1});
}

lt_hlo lt_gate_of(lt_hlo_text *h, lt_hlo gates, int64_t units, int64_t k) {
  return lt_hlo_slice(h, gates, gates.ndim - 1, k * units, (k + 1) * units, 1);
}

static lt_hlo state_of(lt_lowering *l, int k, int type, int64_t rows, int64_t columns) {
  if (lt_has(l, k)) return lt_hlo_convert(l->h, l->in[k], type);
  return lt_hlo_number(l->h, 0, lt_hlo_of(type, 2, (int64_t[]){rows, columns}));
}

static lt_hlo plus(lt_hlo_text *h, lt_hlo x, lt_hlo bias) {
  return bias.id == 0 ? x : LT_BY(h, x, "a + b", x, bias);
}

/* One step: what a cell makes of its gates of x and of h. */
typedef struct cell {
  lt_hlo h, c;    /* in and out: outputs and cells; h before a projection */
  lt_hlo acts;    /* [N, 4 H] to save */
} cell;

#define SIGMOID(x) "1 / (1 + exp(-(" x ")))"

static void lstm(lt_hlo_text *h, cell *s, lt_hlo x, lt_hlo z, int64_t units) {
  lt_hlo all = lt_hlo_two(h, "add", x, z), a[4];
  for (int k = 0; k < 4; k++) {
    a[k] = lt_gate_of(h, all, units, k);
    a[k] = LT_BY(h, a[k], k == 2 ? "tanh(a)" : SIGMOID("a"), a[k]);
  }
  s->c = LT_BY(h, s->c, "a * b + c * d", a[1], s->c, a[0], a[2]);
  s->h = LT_BY(h, s->c, "a * tanh(b)", a[3], s->c);
  s->acts = lt_hlo_join(h, 4, a, 1);
}

static void gru(lt_hlo_text *h, cell *s, lt_hlo x, lt_hlo z, int64_t units) {
  lt_hlo xs[3], zs[3], r, u, n;
  for (int k = 0; k < 3; k++)
    xs[k] = lt_gate_of(h, x, units, k), zs[k] = lt_gate_of(h, z, units, k);
  r = LT_BY(h, s->h, SIGMOID("a + b"), xs[0], zs[0]);
  u = LT_BY(h, s->h, SIGMOID("a + b"), xs[1], zs[1]);
  n = LT_BY(h, s->h, "tanh(a + b * c)", xs[2], r, zs[2]);
  s->h = LT_BY(h, s->h, "a + b * (c - a)", n, u, s->h);
  s->acts = lt_hlo_join(h, 4, (lt_hlo[]){r, u, n, zs[2]}, 1);
}

static lt_hlo chosen(lt_hlo_text *h, lt_hlo active, lt_hlo yes, lt_hlo no) {
  return active.id == 0 ? yes : LT_BY(h, yes, "a ? b : c", active, yes, no);
}

LT_LOWERING(lstm_layer) {
  enum { STEP, OUT, CELL, Y, ACTS, CELLS, HIDDEN, STATES };
  lt_hlo_text *h = l->h;
  lt_cell kind = lt_lower_is(l, "lstm_layer") ? LT_CELL_LSTM
                 : lt_lower_is(l, "gru_layer") ? LT_CELL_GRU : LT_CELL_RNN;
  lt_hlo x = lt_lower_float(l, LT_REC_X), w = lt_lower_float(l, LT_REC_W_HH);
  lt_hlo w_hr = lt_lower_float(l, LT_REC_W_HR), bias = lt_lower_float(l, LT_REC_B_HH);
  int64_t gates = kind == LT_CELL_LSTM ? 4 : kind == LT_CELL_GRU ? 3 : 1;
  int64_t t = x.size[0], n = x.size[1], units = w.size[0] / gates, p = w.size[1];
  bool keeps = kind != LT_CELL_RNN && lt_hlo_numel(l->out[LT_REC_SAVED]) > 0;
  if (t == 0 || n == 0) return false;
  lt_hlo of_x = plus(h, lt_hlo_dot(h, x, lt_lower_float(l, LT_REC_W_IH), 0, 0, 4, 2),
                     lt_lower_float(l, LT_REC_B_IH));
  if (kind != LT_CELL_GRU) of_x = plus(h, of_x, bias);
  lt_hlo none = lt_hlo_number(h, 0, lt_hlo_of(x.type, 3, (int64_t[]){1, 1, 1}));
  lt_hlo first[STATES], now[STATES], next[STATES], out[STATES];
  int64_t sizes[STATES] = {[Y] = p, [ACTS] = keeps ? 4 * units : 0,
                           [CELLS] = keeps && kind == LT_CELL_LSTM ? units : 0,
                           [HIDDEN] = keeps && w_hr.id != 0 ? units : 0};
  first[STEP] = lt_hlo_integer(h, 0, lt_hlo_scalar(LT_I64));
  first[OUT] = state_of(l, LT_REC_H0, x.type, n, p);
  first[CELL] = state_of(l, LT_REC_C0, x.type, n, units);
  for (int k = Y; k < STATES; k++)
    first[k] = sizes[k] == 0
                   ? none
                   : lt_hlo_number(h, 0, lt_hlo_of(x.type, 3, (int64_t[]){t, n, sizes[k]}));
  lt_loop_begin(h, t, STATES, first, now, out);
  lt_hlo at = lt_step_at(l, t, now[STEP]), active = lt_step_active(l, LT_REC_LENGTHS, at);
  lt_hlo z = lt_hlo_dot(h, now[OUT], w, 0, 0, 2, 2), gate = lt_step_of(h, of_x, at);
  cell s = {.h = now[OUT], .c = now[CELL]};
  if (kind == LT_CELL_GRU) z = plus(h, z, bias);
  if (kind == LT_CELL_LSTM) lstm(h, &s, gate, z, units);
  else if (kind == LT_CELL_GRU) gru(h, &s, gate, z, units);
  else
    s.h = LT_BY(h, z, lt_lower_int(l, "nonlinearity") == LT_NONLINEARITY_relu
                          ? "a + b > 0 ? a + b : a + b != a + b ? a + b : 0" : "tanh(a + b)",
                gate, z);
  lt_hlo hidden = s.h, zero = lt_hlo_number(h, 0, now[OUT]);
  if (w_hr.id != 0) s.h = lt_hlo_dot(h, s.h, w_hr, 0, 0, 2, 2);
  memcpy(next, now, sizeof next);
  next[STEP] = lt_hlo_two(h, "add", now[STEP], lt_hlo_integer(h, 1, now[STEP]));
  next[OUT] = chosen(h, active, s.h, now[OUT]);
  next[CELL] = chosen(h, active, s.c, now[CELL]);
  next[Y] = lt_step_put(h, now[Y], at, chosen(h, active, s.h, zero));
  if (sizes[ACTS] > 0) next[ACTS] = lt_step_put(h, now[ACTS], at, s.acts);
  if (sizes[CELLS] > 0) next[CELLS] = lt_step_put(h, now[CELLS], at, next[CELL]);
  if (sizes[HIDDEN] > 0) {
    hidden = chosen(h, active, hidden, lt_hlo_number(h, 0, hidden));
    next[HIDDEN] = lt_step_put(h, now[HIDDEN], at, hidden);
  }
  lt_loop_end(h, STATES, next);
  l->out[LT_REC_Y] = out[Y];
  l->out[LT_REC_H] = out[OUT];
  l->out[LT_REC_C] = kind == LT_CELL_LSTM ? out[CELL] : lt_hlo_integer(h, 0, l->out[LT_REC_C]);
  lt_hlo saved[3];
  int parts = 0;
  for (int k = ACTS; k < STATES; k++)
    if (sizes[k] > 0) saved[parts++] = lt_hlo_flat(h, out[k]);
  l->out[LT_REC_SAVED] = parts > 0 ? lt_hlo_join(h, parts, saved, 0)
                                   : lt_hlo_integer(h, 0, l->out[LT_REC_SAVED]);
  return true;
}
