/* runtime/text/tokenizer.h: tokenizers as tokenizer.json describes them.

   Added tokens are found first; what is between them is normalised, cut into pieces, and each
   piece becomes tokens of the model. What is computed of a word is kept. One thread at a time. */
#ifndef LT_TEXT_TOKENIZER_H
#define LT_TEXT_TOKENIZER_H

#include "base/string_table.h"
#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/id_list.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"

typedef enum lt_model { LT_BPE, LT_WORDPIECE, LT_WORDLEVEL } lt_model;
typedef enum lt_decoder {
  LT_DECODE_SPACES, LT_DECODE_BYTES, LT_DECODE_WORDPIECE, LT_DECODE_FUSE
} lt_decoder;

enum { LT_TEXT_STEPS = 16 };

typedef struct lt_tokenizer {
  lt_model model;
  lt_decoder decoder;
  bool bytes;         /* byte-level: tokens are bytes, not characters */
  lt_string_table vocab; /* tokens of the model, as they stand in texts; value: id */
  lt_string_table names; /* all tokens, as they stand in the file; value: id */
  int64_t *name_of;   /* by id: number in `names` + 1; 0: none */
  int64_t n_ids;      /* one more than the largest id */
  lt_merges merges;
  int32_t byte_id[256]; /* of the symbol of one byte; -1: none */
  int32_t unk;        /* -1: none */
  bool fuse_unk, ignore_merges, cleanup;
  char *prefix;       /* of WordPiece's tokens within words, and of the decoder */
  size_t n_prefix;
  int64_t max_chars;  /* WordPiece: longer words are unknown */
  size_t longest;     /* of the tokens, in bytes */
  lt_normalizer normalizer[LT_TEXT_STEPS];
  int n_normalizers;
  lt_split split[LT_TEXT_STEPS];
  int n_splits;
  bool by_lines;      /* no token crosses a line break between visible characters */
  lt_added_tree added, added_normalised; /* found before, after normalising */
  lt_added *special;  /* by id: what is known of an added token */
  lt_ids before, after; /* what a sequence begins and ends with */
  lt_string_table seen; /* words; value: where their ids begin in seen_ids */
  lt_ids seen_ids;
  char *buffer;       /* WordPiece: the prefix and a word */
  size_t buffer_capacity;
} lt_tokenizer;

/* Read the text of a tokenizer.json; NULL, and a failure (LT_EIO) that begins with `what` and
   names the field, when it is none, or has what is not supported. */
lt_tokenizer *lt_tokenizer_read(lt_ctx *c, const char *what, const char *text, size_t n);
void lt_tokenizer_free(lt_ctx *c, lt_tokenizer *t);

/* Add the ids of a text: any bytes. Without what sequences begin and end with. */
bool lt_tokenizer_encode(lt_ctx *c, lt_tokenizer *t, const char *text, size_t n, lt_ids *out);

/* The ids of one piece of text, for the model alone (model.c). */
bool lt_tokenizer_piece(lt_ctx *c, lt_tokenizer *t, const char *text, size_t n, lt_ids *out);

/* Add the text of ids, each of 0..n_ids-1; `skip`: special tokens are left out. */
bool lt_tokenizer_decode(lt_ctx *c, const lt_tokenizer *t, const int64_t *id, int64_t n, bool skip,
                         lt_json *out);

/* The id of a token as the file names it; -1: there is none. */
int64_t lt_tokenizer_id(const lt_tokenizer *t, const char *token, size_t n);
/* The name of an id; NULL: it has none. */
const lt_string_entry *lt_tokenizer_name(const lt_tokenizer *t, int64_t id);

#endif
