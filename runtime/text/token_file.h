/* runtime/text/token_file.h: text files as one file of token ids: numbers of two or four bytes,
   little-endian, nothing else (nanoGPT's .bin). */
#ifndef LT_TEXT_TOKEN_FILE_H
#define LT_TEXT_TOKEN_FILE_H

#include "io/file.h"
#include "text/tokenizer.h"

typedef struct lt_token_file {
  lt_saving saving;
  const char *op;
  lt_dtype dtype; /* LT_U16 or LT_I32 */
  int64_t count;  /* tokens so far */
} lt_token_file;

/* Open, add as often as needed, commit: as lt_saving, which see. */
bool lt_token_file_open(lt_ctx *c, lt_token_file *f, const char *op, const char *path,
                        lt_dtype dtype);

/* Add the tokens of a text file, read in pieces where that gives the same tokens. */
bool lt_token_file_add_file(lt_ctx *c, lt_token_file *f, lt_tokenizer *t, const char *path);
bool lt_token_file_add_text(lt_ctx *c, lt_token_file *f, lt_tokenizer *t, const char *text,
                            size_t n);
bool lt_token_file_add(lt_ctx *c, lt_token_file *f, const int32_t *id, int64_t n);
bool lt_token_file_commit(lt_ctx *c, lt_token_file *f);

#endif
