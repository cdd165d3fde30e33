/* runtime/text/normalizer.h: normalizers: changes to texts before they are split. */
#ifndef LT_TEXT_NORMALIZER_H
#define LT_TEXT_NORMALIZER_H

#include "io/json.h"

/* BERT's normalizer is several of these. */
typedef enum lt_normalizer {
  LT_CLEAN_TEXT,      /* no control characters; each white space becomes ' ' */
  LT_SPACE_CHINESE,   /* spaces around CJK characters */
  LT_STRIP_ACCENTS,   /* no nonspacing marks */
  LT_STRIP_MARKS,     /* no marks at all */
  LT_LOWERCASE,
  LT_NFC, LT_NFD, LT_NFKC, LT_NFKD
} lt_normalizer;

/* Add what becomes of valid UTF-8 to `out`. */
bool lt_normalise(lt_ctx *c, lt_normalizer step, const char *text, size_t n, lt_json *out);

/* The same by several steps, one after the other: *text and *n become the result, which stands in
   one of the two texts `made`, or is what came where there are no steps. */
bool lt_normalise_by(lt_ctx *c, const lt_normalizer *steps, int n_steps, const char **text,
                     size_t *n, lt_json made[2]);

#endif
