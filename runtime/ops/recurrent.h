/* runtime/ops/recurrent.h: sizes of recurrent layers, and where their values lie, on all devices.

   T steps, N sequences, I inputs, H hidden units, P outputs (H unless they are projected), G gates.
   The order of the gates is PyTorch's: i f g o of an LSTM, r z n of a GRU.

   Forward saves one vector: [T, N, 4 H] of an LSTM's gates or a GRU's gates and what its n takes
   from h; then of an LSTM its cells [T, N, H] and, if projected, its outputs before that. */
#ifndef LT_OPS_RECURRENT_H
#define LT_OPS_RECURRENT_H

#include <stdbool.h>
#include <stdint.h>

#include "ops/ids.h"

/* Inputs of the kinds recurrent and recurrent_backward, and their outputs. */
enum {
  LT_REC_X, LT_REC_W_IH, LT_REC_W_HH, LT_REC_B_IH, LT_REC_B_HH, LT_REC_H0, LT_REC_C0, LT_REC_W_HR,
  LT_REC_LENGTHS, LT_REC_INPUTS
};
enum {
  LT_RECB_Y, LT_RECB_SAVED, LT_RECB_W_HH, LT_RECB_G_Y, LT_RECB_G_H, LT_RECB_G_C, LT_RECB_STATE,
  LT_RECB_W_HR, LT_RECB_LENGTHS
};
enum { LT_REC_Y, LT_REC_H, LT_REC_C, LT_REC_SAVED };
/* Gradients of x's part of the gates [T, N, G H], of h0 and c0; a GRU's of h's part of the gates,
   an LSTM's of the projected outputs [T, N, P]. */
enum { LT_RECB_GATES, LT_RECB_H0, LT_RECB_C0, LT_RECB_MORE };

typedef enum lt_cell { LT_CELL_LSTM, LT_CELL_GRU, LT_CELL_RNN } lt_cell;

typedef struct lt_recurrent {
  lt_cell cell;
  bool projected;
  int64_t t, n, h, p, gates, acts; /* gates: G; acts: values a unit that are saved of them */
} lt_recurrent;

static inline lt_cell lt_cell_of(int op) {
  if (op == LT_OP_lstm_layer || op == LT_OP_lstm_layer_backward) return LT_CELL_LSTM;
  return op == LT_OP_gru_layer || op == LT_OP_gru_layer_backward ? LT_CELL_GRU : LT_CELL_RNN;
}

/* By the sizes of x or y, and of weight_hh. */
static inline lt_recurrent lt_recurrent_of(int op, const int64_t *x, const int64_t *weight_hh,
                                           bool projected) {
  lt_cell cell = lt_cell_of(op);
  int64_t gates = cell == LT_CELL_LSTM ? 4 : cell == LT_CELL_GRU ? 3 : 1;
  lt_recurrent r = {cell, projected, x[0], x[1], weight_hh[0] / gates, weight_hh[1], gates,
                    cell == LT_CELL_RNN ? 0 : 4};
  return r;
}

/* Where the cells, the outputs before the projection and the end are in what is saved. */
static inline int64_t lt_recurrent_cells(const lt_recurrent *r) {
  return r->t * r->n * r->acts * r->h;
}
static inline int64_t lt_recurrent_hidden(const lt_recurrent *r) {
  return lt_recurrent_cells(r) + (r->cell == LT_CELL_LSTM ? r->t * r->n * r->h : 0);
}
static inline int64_t lt_recurrent_saved(const lt_recurrent *r) {
  return lt_recurrent_hidden(r) + (r->projected ? r->t * r->n * r->h : 0);
}

#endif
