/* runtime/text/token_file.c: files of token ids (token_file.h). */
#include "text/token_file.h"

#include <string.h>

enum { PIECE = 1 << 20, WRITTEN = 1 << 15 };

bool lt_token_file_open(lt_ctx *c, lt_token_file *f, const char *op, const char *path,
                        lt_dtype dtype) {
  *f = (lt_token_file){.op = op, .dtype = dtype};
  return lt_saving_open(c, &f->saving, op, path);
}

bool lt_token_file_commit(lt_ctx *c, lt_token_file *f) { return lt_saving_commit(c, &f->saving); }

bool lt_token_file_add(lt_ctx *c, lt_token_file *f, const int32_t *id, int64_t n) {
  size_t size = f->dtype == LT_U16 ? 2 : 4;
  uint8_t bytes[WRITTEN];
  size_t filled = 0;
  for (int64_t k = 0; k < n; k++) {
    if (size == 2 && id[k] > UINT16_MAX)
      return lt_fail(c, LT_EVALUE, "%s: token %d does not fit into u16: dtype = 'i32'", f->op,
                     (int)id[k]);
    for (size_t i = 0; i < size; i++) bytes[filled++] = (uint8_t)(id[k] >> 8 * i);
    if (filled + size <= sizeof bytes && k + 1 < n) continue;
    if (!lt_saving_write(c, &f->saving, bytes, filled)) return false;
    filled = 0;
  }
  f->count += n;
  return true;
}

bool lt_token_file_add_text(lt_ctx *c, lt_token_file *f, lt_tokenizer *t, const char *text,
                            size_t n) {
  lt_ids ids = {0};
  bool ok = lt_tokenizer_encode(c, t, text, n, &ids) && lt_token_file_add(c, f, ids.id, ids.n);
  lt_ids_free(c, &ids);
  return ok;
}

static bool is_visible(char byte) { return byte > ' ' && byte < 127; }

/* Where the text can be cut so that both parts have the tokens that they have together: behind the
   last line break that has visible ASCII on both sides, which no pattern of lt_tokenizer's
   `by_lines` crosses; 0: nowhere. GPT-2's and Llama's patterns keep a line break with the spaces
   beside it or with what precedes it, never with visible characters behind it. */
static size_t last_cut(const char *text, size_t n) {
  for (size_t at = n - 1; at >= 2; at--)
    if (text[at - 1] == '\n' && is_visible(text[at - 2]) && is_visible(text[at])) return at;
  return 0;
}

/* The file in pieces of about `capacity` bytes: what is behind the last cut comes before the next.
   A file without such a cut is read whole, the buffer doubling: slower, never wrong. */
static bool add_pieces(lt_ctx *c, lt_token_file *f, lt_tokenizer *t, const char *path, int fd,
                       int64_t size) {
  size_t capacity = t->by_lines && size > PIECE ? PIECE : (size_t)size, filled = 0;
  char *text = lt_alloc(c, capacity + 1);
  bool ok = text != NULL;
  for (int64_t at = 0; at < size && ok;) {
    size_t more = capacity - filled < (size_t)(size - at) ? capacity - filled : (size_t)(size - at);
    ok = lt_file_read_at(c, f->op, path, fd, text + filled, more, at);
    at += (int64_t)more;
    filled += more;
    size_t cut = at == size ? filled : last_cut(text, filled);
    ok = ok && lt_token_file_add_text(c, f, t, text, cut);
    filled -= cut;
    memmove(text, text + cut, filled);
    if (cut > 0 || !ok) continue;
    char *bigger = lt_realloc(c, text, capacity + 1, 2 * capacity + 1);
    ok = bigger != NULL;
    if (ok) text = bigger, capacity *= 2;
  }
  lt_free(c, text, capacity + 1);
  return ok;
}

bool lt_token_file_add_file(lt_ctx *c, lt_token_file *f, lt_tokenizer *t, const char *path) {
  int64_t size;
  int fd = lt_file_open(c, f->op, path, &size);
  if (fd < 0) return false;
  bool ok = add_pieces(c, f, t, path, fd, size);
  lt_file_close(c, fd);
  return ok;
}
