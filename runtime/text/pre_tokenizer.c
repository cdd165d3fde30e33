/* runtime/text/pre_tokenizer.c: pre-tokenizers (pre_tokenizer.h).

   The steps of a Sequence call each other for every segment, depth first, and the last one hands
   its pieces to `to`: nothing is collected. */
#include "text/pre_tokenizer.h"

#include <string.h>

/* From `begin` to `end` of the text. */
typedef struct segment {
  size_t begin, end;
  bool match;
} segment;

/* One step over one text. Matches and what is between them come as segments; the last one waits
   for whether the next belongs to it. */
typedef struct cut {
  lt_ctx *c;
  const lt_split *steps; /* this one and those after it */
  int n_steps;
  const char *text;
  lt_pieces to;
  segment pending;
  bool last_matched; /* the last segment within `held` */
} cut;

/* The segment is complete: it goes to the next step, unless matches are to be removed. */
static bool give(cut *k) {
  segment s = k->pending;
  if (s.begin == s.end || (s.match && k->steps->behavior == LT_REMOVED)) return true;
  return lt_split_text(k->c, k->steps + 1, k->n_steps - 1, k->text + s.begin, s.end - s.begin,
                       k->to);
}

/* Whether the next segment joins the one that waits. The behaviours are Hugging Face's
   SplitDelimiterBehavior: of "the-final--countdown" and the pattern "-" MERGED_WITH_PREVIOUS makes
   "the-", "final-", "-", "countdown". */
static bool belongs(const cut *k, const segment *next) {
  switch (k->steps->behavior) {
  case LT_REMOVED:
  case LT_ISOLATED:
    return false;
  case LT_MERGED_WITH_PREVIOUS:
    return next->match && !k->last_matched;
  case LT_MERGED_WITH_NEXT:
    return k->last_matched && !next->match;
  case LT_CONTIGUOUS:
    return next->match == k->last_matched;
  }
  return false;
}

/* `invert` exchanges what matches and what is between. Empty segments are nothing. */
static bool add(cut *k, size_t begin, size_t end, bool match) {
  segment next = {begin, end, match != k->steps->invert};
  if (begin == end) return true;
  if (k->pending.end > k->pending.begin && belongs(k, &next)) {
    k->pending.end = end;
  } else {
    if (!give(k)) return false;
    k->pending = next;
  }
  k->last_matched = next.match;
  return true;
}

/* Matches are found from left to right and do not overlap, so that a text of n bytes costs one pass
   and the matcher's own backtracking, which MATCH_LIMIT bounds. */
static bool by_pattern(cut *k, size_t n) {
  size_t at = 0, from = 0, begin, end;
  int found;
  while (from <= n &&
         (found = lt_regex_find(k->c, k->steps->pattern, k->text, n, from, &begin, &end)) != 0) {
    if (found < 0) return false;
    if (begin < at) begin = at; /* \K within an assertion */
    if (end < begin) end = begin;
    if (!add(k, at, begin, false) || !add(k, begin, end, true)) return false;
    at = from = end;
    if (begin == end) /* an empty match cuts; the search goes on behind the next character */
      do from++;
      while (from < n && ((uint8_t)k->text[from] & 0xc0) == 0x80);
  }
  return add(k, at, n, false) && give(k);
}

/* The steps on " text". */
static bool with_space(lt_ctx *c, const lt_split *s, int n_steps, const char *text, size_t n,
                       lt_pieces to) {
  lt_split now = *s;
  now.prefix_space = false;
  char *copy = lt_alloc(c, n + 1);
  lt_split *steps = lt_alloc(c, (size_t)n_steps * sizeof *steps);
  bool ok = copy != NULL && steps != NULL;
  if (ok) {
    copy[0] = ' ';
    memcpy(copy + 1, text, n);
    memcpy(steps, s, (size_t)n_steps * sizeof *steps);
    steps[0] = now;
    ok = lt_split_text(c, steps, n_steps, copy, n + 1, to);
  }
  lt_free(c, copy, n + 1);
  lt_free(c, steps, (size_t)n_steps * sizeof *steps);
  return ok;
}

/* The pieces point into `text` (or the copy with a space, which lives as long as the calls below
   it): `to` must copy what it keeps. Recursion is as deep as there are steps. */
bool lt_split_text(lt_ctx *c, const lt_split *s, int n_steps, const char *text, size_t n,
                   lt_pieces to) {
  if (n == 0) return true;
  if (n_steps == 0) return to.each(c, to.ud, text, n);
  if (s->prefix_space && text[0] != ' ') return with_space(c, s, n_steps, text, n, to);
  if (s->pattern == NULL) return lt_split_text(c, s + 1, n_steps - 1, text, n, to);
  cut k = {.c = c, .steps = s, .n_steps = n_steps, .text = text, .to = to};
  return by_pattern(&k, n);
}
