/* runtime/xla/lower_recurrent_backward.c: gradients of the gates of recurrent layers, from the last
   step to the first, as cpu/recurrent_backward_type.h has them. */
#include "ops/args.h"
#include "ops/recurrent.h"
#include "xla/recurrent.h"

typedef struct layer {
  lt_cell kind;
  int64_t t, n, units, p, gates;
  lt_hlo w, w_hr, y, g_y;
  lt_hlo acts, cells, before; /* [T, N, ..]: saved; the state before each step */
} layer;

static lt_hlo part_of(lt_hlo_text *h, lt_hlo saved, int64_t from, const layer *r, int64_t width) {
  lt_hlo x = lt_hlo_slice(h, saved, 0, from, from + r->t * r->n * width, 1);
  return lt_hlo_reshape(h, x, 3, (int64_t[]){r->t, r->n, width});
}

/* States [T, N, H] one step later in the order of the loop, `first` in front. */
static lt_hlo shifted(lt_lowering *l, lt_hlo x, lt_hlo first) {
  bool reverse = lt_lower_flag(l, "reverse");
  int64_t t = x.size[0];
  first = lt_hlo_reshape(l->h, first, 3, (int64_t[]){1, x.size[1], x.size[2]});
  if (t == 1) return first;
  lt_hlo rest = lt_hlo_slice(l->h, x, 0, reverse, t - !reverse, 1);
  return reverse ? lt_hlo_join(l->h, 2, (lt_hlo[]){rest, first}, 0)
                 : lt_hlo_join(l->h, 2, (lt_hlo[]){first, rest}, 0);
}

/* y of a sequence before its first step from the end is 0, not its state. */
static lt_hlo begun(lt_lowering *l, const layer *r, lt_hlo before, lt_hlo first) {
  lt_hlo_text *h = l->h;
  if (!lt_has(l, LT_RECB_LENGTHS) || !lt_lower_flag(l, "reverse")) return before;
  lt_hlo at = lt_hlo_iota(h, LT_I64, lt_hlo_of(LT_I64, 2, (int64_t[]){r->t, r->n}), 0);
  lt_hlo last = LT_BY(h, at, "a == b - 1", at, l->in[LT_RECB_LENGTHS]);
  last = lt_hlo_spread(h, last, lt_hlo_typed(before, LT_BOOL), (int64_t[]){0, 1});
  return LT_BY(h, before, "a ? b : c", last, first, before);
}

static layer layer_of(lt_lowering *l) {
  lt_hlo_text *h = l->h;
  layer r = {.kind = lt_lower_is(l, "lstm_layer_backward") ? LT_CELL_LSTM
                     : lt_lower_is(l, "gru_layer_backward") ? LT_CELL_GRU : LT_CELL_RNN};
  int type = l->out[LT_RECB_GATES].type;
  r.gates = r.kind == LT_CELL_LSTM ? 4 : r.kind == LT_CELL_GRU ? 3 : 1;
  r.w = lt_hlo_convert(h, l->in[LT_RECB_W_HH], type);
  r.y = lt_hlo_convert(h, l->in[LT_RECB_Y], type);
  r.t = r.y.size[0], r.n = r.y.size[1], r.units = r.w.size[0] / r.gates, r.p = r.w.size[1];
  if (lt_has(l, LT_RECB_W_HR)) r.w_hr = lt_hlo_convert(h, l->in[LT_RECB_W_HR], type);
  if (lt_has(l, LT_RECB_G_Y)) r.g_y = lt_hlo_convert(h, l->in[LT_RECB_G_Y], type);
  if (r.kind == LT_CELL_RNN || r.t == 0 || r.n == 0) return r;
  lt_hlo saved = lt_hlo_convert(h, l->in[LT_RECB_SAVED], type);
  lt_hlo first = lt_hlo_number(h, 0, lt_hlo_of(type, 2, (int64_t[]){r.n, r.units}));
  if (lt_has(l, LT_RECB_STATE)) first = lt_hlo_convert(h, l->in[LT_RECB_STATE], type);
  r.acts = part_of(h, saved, 0, &r, 4 * r.units);
  if (r.kind == LT_CELL_LSTM) r.cells = part_of(h, saved, r.t * r.n * 4 * r.units, &r, r.units);
  r.before = shifted(l, r.kind == LT_CELL_LSTM ? r.cells : r.y, first);
  if (r.kind == LT_CELL_GRU) r.before = begun(l, &r, r.before, first);
  return r;
}

/* What a cell makes of the gradient dh of its outputs. */
typedef struct gradients {
  lt_hlo of_x, of_h, cell, carry; /* of_h: as of_x where there is none */
} gradients;

static gradients lstm(lt_hlo_text *h, const layer *r, lt_hlo at, lt_hlo dh, lt_hlo dc) {
  lt_hlo acts = lt_step_of(h, r->acts, at), a[4], to[4], d = dh;
  for (int k = 0; k < 4; k++) a[k] = lt_gate_of(h, acts, r->units, k);
  lt_hlo tc = lt_hlo_one(h, "tanh", lt_step_of(h, r->cells, at));
  d = LT_BY(h, d, "a + b * c * (1 - d * d)", dc, dh, a[3], tc);
  to[0] = LT_BY(h, d, "a * b * c * (1 - c)", d, a[2], a[0]);
  to[1] = LT_BY(h, d, "a * b * c * (1 - c)", d, lt_step_of(h, r->before, at), a[1]);
  to[2] = LT_BY(h, d, "a * b * (1 - c * c)", d, a[0], a[2]);
  to[3] = LT_BY(h, d, "a * b * c * (1 - c)", dh, tc, a[3]);
  lt_hlo all = lt_hlo_join(h, 4, to, 1);
  return (gradients){all, all, lt_hlo_two(h, "multiply", d, a[1]), lt_hlo_number(h, 0, dh)};
}

static gradients gru(lt_hlo_text *h, const layer *r, lt_hlo at, lt_hlo dh) {
  lt_hlo acts = lt_step_of(h, r->acts, at), a[4];
  for (int k = 0; k < 4; k++) a[k] = lt_gate_of(h, acts, r->units, k);
  lt_hlo dn = LT_BY(h, dh, "a * (1 - b) * (1 - c * c)", dh, a[1], a[2]);
  lt_hlo dr = LT_BY(h, dh, "a * b * c * (1 - c)", dn, a[3], a[0]);
  lt_hlo dz = LT_BY(h, dh, "a * (b - c) * d * (1 - d)", dh, lt_step_of(h, r->before, at), a[2],
                    a[1]);
  lt_hlo of_h = lt_hlo_two(h, "multiply", dn, a[0]);
  return (gradients){lt_hlo_join(h, 3, (lt_hlo[]){dr, dz, dn}, 1),
                     lt_hlo_join(h, 3, (lt_hlo[]){dr, dz, of_h}, 1), (lt_hlo){0},
                     lt_hlo_two(h, "multiply", dh, a[1])};
}

static lt_hlo where(lt_hlo_text *h, lt_hlo active, lt_hlo yes, lt_hlo no) {
  return active.id == 0 ? yes : LT_BY(h, yes, "a ? b : c", active, yes, no);
}

static lt_hlo zero_like(lt_hlo_text *h, lt_hlo x) { return lt_hlo_number(h, 0, x); }

LT_LOWERING(lstm_layer_backward) {
  enum { STEP, CARRY, AFTER, CELL, GATES, MORE, STATES };
  lt_hlo_text *h = l->h;
  layer r = layer_of(l);
  if (r.t == 0 || r.n == 0) return false;
  int type = r.w.type;
  bool projected = r.w_hr.id != 0, has_more = projected || r.kind == LT_CELL_GRU;
  lt_hlo first[STATES], now[STATES], next[STATES], out[STATES];
  lt_hlo rows = lt_hlo_of(type, 2, (int64_t[]){r.n, r.p});
  first[STEP] = lt_hlo_integer(h, 0, lt_hlo_scalar(LT_I64));
  first[CARRY] = lt_has(l, LT_RECB_G_H) ? lt_hlo_convert(h, l->in[LT_RECB_G_H], type)
                                        : zero_like(h, rows);
  rows.size[1] = r.w.size[0];
  first[AFTER] = zero_like(h, rows);
  rows.size[1] = r.units;
  bool of_cell = r.kind == LT_CELL_LSTM && lt_has(l, LT_RECB_G_C);
  first[CELL] = of_cell ? lt_hlo_convert(h, l->in[LT_RECB_G_C], type) : zero_like(h, rows);
  for (int k = GATES; k < STATES; k++) {
    lt_hlo shape = l->out[k == GATES ? LT_RECB_GATES : LT_RECB_MORE];
    if (k == MORE && !has_more) shape = lt_hlo_of(type, 3, (int64_t[]){1, 1, 1});
    first[k] = zero_like(h, lt_hlo_typed(shape, type));
  }
  lt_loop_begin(h, r.t, STATES, first, now, out);
  /* The loop counts from the last step. */
  lt_hlo step = lt_hlo_two(h, "subtract", lt_hlo_integer(h, r.t - 1, now[STEP]), now[STEP]);
  lt_hlo at = lt_step_at(l, r.t, step), active = lt_step_active(l, LT_RECB_LENGTHS, at);
  lt_hlo dh = lt_hlo_two(h, "add", lt_hlo_dot(h, now[AFTER], r.w, 0, 0, 2, 1), now[CARRY]);
  lt_hlo passed = dh;
  if (r.g_y.id != 0) {
    lt_hlo g = lt_step_of(h, r.g_y, at);
    dh = lt_hlo_two(h, "add", dh, where(h, active, g, zero_like(h, g)));
  }
  lt_hlo of_units = projected ? lt_hlo_dot(h, dh, r.w_hr, 0, 0, 2, 1) : dh;
  gradients g = {0};
  if (r.kind == LT_CELL_LSTM) g = lstm(h, &r, at, of_units, now[CELL]);
  else if (r.kind == LT_CELL_GRU) g = gru(h, &r, at, of_units);
  else {
    bool relu = lt_lower_int(l, "nonlinearity") == LT_NONLINEARITY_relu;
    g.of_x = LT_BY(h, dh, relu ? "b > 0 ? a : 0" : "a * (1 - b * b)", dh, lt_step_of(h, r.y, at));
    g.of_h = g.of_x;
  }
  if (r.kind != LT_CELL_GRU) g.carry = zero_like(h, dh);
  if (g.cell.id == 0) g.cell = now[CELL];
  lt_hlo none = zero_like(h, g.of_x);
  lt_hlo of_h = where(h, active, g.of_h, none);
  next[STEP] = lt_hlo_two(h, "add", now[STEP], lt_hlo_integer(h, 1, now[STEP]));
  next[CARRY] = where(h, active, g.carry, passed);
  next[AFTER] = of_h;
  next[CELL] = where(h, active, g.cell, now[CELL]);
  next[GATES] = lt_step_put(h, now[GATES], at, where(h, active, g.of_x, none));
  next[MORE] = now[MORE];
  if (projected) next[MORE] = lt_step_put(h, now[MORE], at, where(h, active, dh, zero_like(h, dh)));
  if (r.kind == LT_CELL_GRU) next[MORE] = lt_step_put(h, now[MORE], at, of_h);
  lt_loop_end(h, STATES, next);
  lt_hlo of_first = lt_hlo_dot(h, out[AFTER], r.w, 0, 0, 2, 1);
  l->out[LT_RECB_GATES] = out[GATES];
  l->out[LT_RECB_H0] = lt_hlo_two(h, "add", of_first, out[CARRY]);
  l->out[LT_RECB_C0] = r.kind == LT_CELL_LSTM ? out[CELL]
                                              : lt_hlo_integer(h, 0, l->out[LT_RECB_C0]);
  l->out[LT_RECB_MORE] = has_more ? out[MORE] : lt_hlo_integer(h, 0, l->out[LT_RECB_MORE]);
  return true;
}
