/* runtime/xla/changes.c: why a program was compiled: how it differs from one before it.

   Of the programs so far that one is compared whose operations agree with the new ones for longest:
   its first call with other shapes, arguments or another operation is the reason. */
#include <stdio.h>
#include <string.h>

#include "xla/plugin.h"
#include "xla/report.h"

/* A stream's calls; leaves and zeros between them follow from the calls. */
typedef struct calls {
  const int64_t *at, *end;
} calls;

/* The next call; NULL: none. */
static const int64_t *next(calls *s) {
  const int64_t *call = lt_stream_next(s->at, s->end);
  if (call != NULL) s->at = lt_stream_after(call);
  return call;
}

static calls calls_of(const int64_t *stream, size_t n) { return (calls){stream, stream + n}; }

/* How many operations two programs begin with alike. */
static size_t alike(const lt_program_record *a, const lt_program_record *b) {
  calls of_a = calls_of(a->stream, a->n_stream), of_b = calls_of(b->stream, b->n_stream);
  for (size_t n = 0;; n++) {
    const int64_t *x = next(&of_a), *y = next(&of_b);
    if (x == NULL || y == NULL || x[0] != y[0]) return n;
  }
}

static const char *shape_text(const int64_t *shape, char *text, size_t size) {
  size_t at = (size_t)snprintf(text, size, "[");
  for (int64_t d = 0; d < shape[1] && at < size; d++)
    at += (size_t)snprintf(text + at, size - at, "%s%lld", d > 0 ? ", " : "",
                           (long long)shape[2 + d]);
  if (at < size) snprintf(text + at, size - at, "]");
  return text;
}

static bool are_equal(const int64_t *a, const int64_t *b) {
  size_t n = (size_t)(lt_stream_after_shape(a) - a);
  return a[0] == b[0] && (a[0] < 0 || a[1] == b[1]) && memcmp(a, b, n * sizeof *a) == 0;
}

/* The first tensor in which two calls of an op differ; false: none has another shape. */
static bool shapes_differ(const int64_t *now, const int64_t *before, char *text, size_t size) {
  const int64_t *a = lt_stream_shapes(now), *b = lt_stream_shapes(before);
  char old[128], new[128];
  int64_t n = now[1] + now[2];
  for (; n > 0 && are_equal(a, b); n--) {
    a = lt_stream_after_shape(a);
    b = lt_stream_after_shape(b);
  }
  if (n > 0 && a[0] != b[0])
    snprintf(text, size, "another dtype than before");
  else if (n > 0)
    snprintf(text, size, "%s, before %s", shape_text(a, new, sizeof new),
             shape_text(b, old, sizeof old));
  return n > 0;
}

static bool arguments_differ(const int64_t *a, const int64_t *b) {
  return a[1] != b[1] || a[2] != b[2] || a[3] != b[3] ||
         memcmp(a + 4, b + 4, (size_t)a[3] * sizeof *a) != 0;
}

/* Two programs of one sequence of operations. */
static void compare(lt_ctx *c, const lt_graph *g, lt_program_record *r,
                    const lt_program_record *old) {
  calls now = calls_of(r->stream, r->n_stream), before = calls_of(old->stream, old->n_stream);
  char call[160] = "", what[280];
  for (size_t node = 0;; node++) {
    const int64_t *a = next(&now), *b = next(&before);
    if (a == NULL || b == NULL) break;
    bool other = arguments_differ(a, b);
    bool shapes = a[1] == b[1] && a[2] == b[2] && shapes_differ(a, b, what, sizeof what);
    if (!other && !shapes) continue;
    lt_report_call(c, g, node, call, sizeof call);
    snprintf(r->reason, sizeof r->reason, "%s: %s", call, shapes ? what : "other arguments");
    if (shapes) snprintf(r->changed, sizeof r->changed, "%s", call);
    return;
  }
  snprintf(r->reason, sizeof r->reason, "%s", "other tensors are needed afterwards, or are views "
           "at other positions");
}

void lt_report_find_change(lt_ctx *c, const lt_graph *g, lt_program_record *r) {
  const lt_program_record *best = NULL;
  size_t most = 0;
  char call[160];
  for (const lt_program_record *p = lt_report_programs; p != NULL; p = p->before) {
    size_t n = alike(p, r);
    if (n > most) {
      most = n;
      best = p;
    }
  }
  if (best != NULL && most == r->operations && best->operations == most)
    compare(c, g, r, best);
  else if (2 * most > r->operations && lt_report_call(c, g, most, call, sizeof call))
    snprintf(r->reason, sizeof r->reason, "other operations, from %s on", call);
  else
    snprintf(r->reason, sizeof r->reason, "new");
}
