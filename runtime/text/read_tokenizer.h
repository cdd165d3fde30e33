/* runtime/text/read_tokenizer.h: reads the parts of a tokenizer.json; each function is in a file
   read_*.c. */
#ifndef LT_TEXT_READ_TOKENIZER_H
#define LT_TEXT_READ_TOKENIZER_H

#include "text/tokenizer.h"

/* A field being read: "model.vocab". */
enum { LT_FIELD = 160 };

typedef struct lt_reading {
  lt_ctx *c;
  const char *what; /* "text.tokenizer: a.json" */
  lt_tokenizer *t;
} lt_reading;

/* Fail with "what: field ..."; returns false. */
bool lt_read_refuse(lt_reading *r, const char *field, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The `type` of an object; NULL, a failure: it has none. */
const char *lt_read_type(lt_reading *r, const char *field, const json_t *value);

/* A flag of an object, `absent` where it has none. */
bool lt_read_flag(lt_reading *r, const char *field, const json_t *object, const char *name,
                  bool absent, bool *out);

bool lt_read_normalizer(lt_reading *r, const char *field, const json_t *value);
bool lt_read_pre_tokenizer(lt_reading *r, const char *field, const json_t *value);
bool lt_read_model(lt_reading *r, const json_t *value);
bool lt_read_added_tokens(lt_reading *r, const json_t *value);
bool lt_read_post_processor(lt_reading *r, const char *field, const json_t *value);
bool lt_read_decoder(lt_reading *r, const char *field, const json_t *value);

/* Call `each` for the members of a Sequence, the list named `list`. */
bool lt_read_sequence(lt_reading *r, const char *field, const json_t *value, const char *list,
                      bool (*each)(lt_reading *, const char *field, const json_t *value));

#endif
