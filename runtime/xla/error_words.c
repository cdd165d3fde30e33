/* runtime/xla/error_words.c: the error word of each root ctx, as a value of the device.

   Programs with checks take the word of the root that recorded them and give its successor, so that
   the first error stays; the host reads it late (take_error). */
#include <stdlib.h>

#include "xla/graph.h"
#include "xla/plugin.h"

enum { WORDS = 5 }; /* set, op, line, value, limit */

typedef struct error_word {
  struct error_word *next;
  const void *root;
  lt_leaf *leaf; /* NULL: empty */
  bool unread;   /* written since it was read last */
} error_word;

static error_word *list;

static error_word *find(const void *root) {
  error_word *e = list;
  while (e != NULL && e->root != root) e = e->next;
  return e;
}

static error_word *find_or_add(const void *root) {
  error_word *e = find(root);
  if (e != NULL || (e = calloc(1, sizeof *e)) == NULL) return e;
  *e = (error_word){.next = list, .root = root};
  return list = e;
}

lt_leaf *lt_xla_error_word(lt_ctx *c, const void *root) {
  static const int64_t empty[WORDS] = {0};
  error_word *e = find_or_add(root);
  if (e != NULL && e->leaf != NULL)
    return lt_leaf_spread(c, e->leaf, LT_I64, WORDS) ? e->leaf : NULL;
  if (e == NULL) lt_xla_host->fail(c, LT_EMEMORY, "xla: out of memory");
  return e != NULL ? e->leaf = lt_leaf_upload(c, empty, LT_I64, WORDS, false) : NULL;
}

void lt_xla_error_put(const void *root, lt_leaf *successor) {
  error_word *e = find(root);
  lt_leaf_release(e->leaf);
  e->leaf = successor;
  e->unread = true;
}

/* A new root may have the address of one that has gone. */
void lt_xla_error_forget(const void *root) {
  error_word *e = find(root);
  if (e == NULL) return;
  lt_leaf_release(e->leaf);
  e->leaf = NULL;
  e->unread = false;
}

bool lt_xla_take_error(lt_ctx *c, lt_device_error *out) {
  int64_t word[WORDS] = {0};
  pjrt_event *event = NULL;
  error_word *e = find(lt_xla_host->root(c));
  if (e == NULL || !e->unread || e->leaf == NULL) return false;
  e->unread = false;
  if (!lt_leaf_download(c, e->leaf, word, sizeof word, &event) ||
      !lt_xla_event_wait(c, event, "xla: error word") || word[0] == 0)
    return false;
  lt_leaf_release(e->leaf);
  e->leaf = NULL;
  *out = (lt_device_error){(int)word[1], (uint32_t)word[2], word[3], word[4]};
  return true;
}
