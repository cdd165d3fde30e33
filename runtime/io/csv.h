/* runtime/io/csv.h: tables in text files, read by column (RFC 4180; any delimiter of one byte).

   A field may be in quotes, which are doubled within it, and is text then, unless names have quotes
   that they do not need: then all fields are in quotes, and these say nothing. A line ends with LF
   or CRLF; blank lines and a byte order mark are skipped. Line numbers in messages are those of the
   file. */
#ifndef LT_IO_CSV_H
#define LT_IO_CSV_H

#include "tensor/tensor.h"

/* LT_CSV_GUESS: whole numbers, else numbers, else text: the first that all fields are. */
typedef enum lt_csv_kind { LT_CSV_GUESS, LT_CSV_INTEGER, LT_CSV_NUMBER, LT_CSV_TEXT } lt_csv_kind;

typedef struct lt_csv_text {
  const char *text;
  size_t n;
} lt_csv_text;

typedef struct lt_csv_options {
  char delimiter;
  bool header;                /* the first row has the names */
  int n_missing;
  const lt_csv_text *missing; /* fields that say that there is no value */
  int64_t most; /* read only the rows that end within so many bytes; 0: all (optional) */
} lt_csv_options;

typedef struct lt_csv lt_csv;

/* The file in memory, with its names read; NULL on failure. `op` and `path` live as long as it. */
lt_csv *lt_csv_open(lt_ctx *c, const char *op, const char *path, const lt_csv_options *o);
void lt_csv_free(lt_ctx *c, lt_csv *t);

/* The bytes of the rows that are read, with the names, and those of the file. */
int64_t lt_csv_bytes(const lt_csv *t);
int64_t lt_csv_file_bytes(const lt_csv *t);

int lt_csv_columns(const lt_csv *t);
/* "" without a header. */
lt_csv_text lt_csv_name(const lt_csv *t, int column);

/* What a column must be; LT_CSV_GUESS is where all begin. */
void lt_csv_set_kind(lt_csv *t, int column, lt_csv_kind kind);
lt_csv_kind lt_csv_kind_of(const lt_csv *t, int column); /* after reading no guess */

/* Read all rows: out[k], in the open frame, has column k's values: i64; f64 (missing: NaN); ids of
   texts, i64 (missing: -1), in the order in which texts first occur. Whole numbers of which one is
   missing are numbers. A row with too few or too many fields, and a field that is not what its
   column must be, fail with their line. */
bool lt_csv_read(lt_ctx *c, lt_csv *t, lt_tensor **out);

/* The different texts of a column of texts, by id. */
int64_t lt_csv_words(const lt_csv *t, int column);
lt_csv_text lt_csv_word(const lt_csv *t, int column, int64_t id);

#endif
