/* runtime/image/chain.h: transforms of a sample, one after the other.

   A chain is plain data: threads run it without Lua. What it does to a sample is a function of the
   sample and of the key of its random numbers. */
#ifndef LT_IMAGE_CHAIN_H
#define LT_IMAGE_CHAIN_H

#include <stdatomic.h>

#include "image/sample.h"

typedef enum lt_step_kind {
#define LT_STEP(name) LT_STEP_##name,
#include "image/steps.def"
#undef LT_STEP
  LT_STEP_COUNT
} lt_step_kind;

enum { LT_STEP_VALUES = 16, LT_CHAIN_MAX = 1000 };

typedef struct lt_step {
  lt_step_kind kind;
  int span; /* how many of the steps behind it are within it */
  double v[LT_STEP_VALUES];
  float fill[LT_CHANNELS_MAX];
} lt_step;

/* Release with lt_release. */
typedef struct lt_chain {
  lt_object object;
  _Atomic int64_t result_bytes; /* of an image that it has made, for who allocates ahead; 0: none */
  int n;
  lt_step step[];
} lt_chain;

/* n steps, to be filled in by the caller. */
lt_chain *lt_chain_new(lt_ctx *c, int n);

/* LT_STEP_COUNT: there is none of that name. */
lt_step_kind lt_step_named(const char *name);

bool lt_chain_run(lt_ctx *c, const lt_chain *chain, lt_sample *s, lt_rng_key key);

/* One function a step. */
#define LT_STEP(name) \
  bool lt_step_##name(lt_ctx *c, const lt_step *t, lt_sample *s, lt_random_stream *d);
#include "image/steps.def"
#undef LT_STEP

/* Whether an image has 1 or 3 channels; fails. */
bool lt_step_colours(lt_ctx *c, const lt_sample *s, const char *name);

/* Rotates, scales and shears around (x, y) (NULL: the centre), then moves, as torchvision's affine:
   degrees anticlockwise are negative. */
typedef struct lt_affine {
  double angle, move_x, move_y, scale, shear_x, shear_y;
  const double *centre;
} lt_affine;
bool lt_sample_affine(lt_ctx *c, lt_sample *s, const lt_affine *a, bool expand, lt_filter filter,
                      const float fill[LT_CHANNELS_MAX]);

#endif
