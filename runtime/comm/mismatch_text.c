/* runtime/comm/mismatch_text.c: collectives described in text: what one rank does, and how ranks
   disagree.

   Watchdogs call this while the main thread may be anywhere: no allocation, no locale. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "comm/comm.h"
#include "tensor/dtype.h"

static const char *const op_names[LT_COMM_OP_COUNT] = {[LT_COMM_BARRIER] = "barrier",
                                                       [LT_COMM_ALL_REDUCE] = "all_reduce",
                                                       [LT_COMM_BROADCAST] = "broadcast",
                                                       [LT_COMM_ALL_GATHER] = "all_gather",
                                                       [LT_COMM_REDUCE_SCATTER] = "reduce_scatter",
                                                       [LT_COMM_GATHER] = "gather",
                                                       [LT_COMM_SCATTER] = "scatter",
                                                       [LT_COMM_SEND] = "send",
                                                       [LT_COMM_RECV] = "recv",
                                                       [LT_COMM_SPLIT] = "split",
                                                       [LT_COMM_ALL_TO_ALL] = "all_to_all",
                                                       [LT_COMM_REDUCE] = "reduce"};
static const char *const reduce_names[LT_COMM_REDUCE_COUNT] = {"sum", "mean", "min", "max", "prod"};

const char *lt_comm_op_name(lt_comm_op op) {
  return (unsigned)op < LT_COMM_OP_COUNT ? op_names[op] : "?";
}

const char *lt_comm_reduce_name(lt_comm_reduce reduce) {
  return (unsigned)reduce < LT_COMM_REDUCE_COUNT ? reduce_names[reduce] : "";
}

/* Text that is cut where the buffer ends, and counts on as snprintf does. */
typedef struct text {
  char *out;
  size_t size, length;
} text;

__attribute__((format(printf, 2, 3))) static void add(text *t, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  size_t left = t->length < t->size ? t->size - t->length : 0;
  int n = vsnprintf(left > 0 ? t->out + t->length : NULL, left, format, arguments);
  va_end(arguments);
  if (n > 0) t->length += (size_t)n;
}

/* 1204 as "1,204". */
static void add_number(text *t, uint64_t n) {
  if (n >= 1000) add_number(t, n / 1000);
  if (n >= 1000)
    add(t, ",%03u", (unsigned)(n % 1000));
  else
    add(t, "%u", (unsigned)n);
}

static void add_place(text *t, const lt_mark *m, const char *before) {
  if (m->file[0] == 0) return;
  char file[LT_MARK_FILE + 1] = "";
  for (int i = 0; i < LT_MARK_FILE && m->file[i] != 0; i++) /* a name may have any bytes */
    file[i] = (unsigned char)m->file[i] < 0x20 || m->file[i] == 0x7f ? '?' : m->file[i];
  add(t, "%s%s", before, file);
  if (m->line > 0) add(t, ":%d", m->line);
}

static void add_shape(text *t, const lt_mark *m) {
  add(t, " [");
  for (int d = 0; d < m->ndim && d < LT_MARK_DIMS; d++)
    add(t, d > 0 ? ", %" PRId64 : "%" PRId64, m->size[d]);
  add(t, m->ndim > LT_MARK_DIMS ? ", ...]" : "]");
  if (m->dtype >= 0 && m->dtype < LT_DTYPE_COUNT) add(t, " %s", lt_dtype_name(m->dtype));
}

static void add_call(text *t, const lt_mark *m) {
  add(t, "%s", lt_comm_op_name(m->op));
  if (m->reduce < LT_COMM_REDUCE_COUNT) add(t, " %s", lt_comm_reduce_name(m->reduce));
  if (m->form == LT_FORM_CAT)
    add(t, m->op == LT_COMM_ALL_TO_ALL ? " {splits = ..}" : " {cat = true}");
  if (m->op != LT_COMM_BARRIER && m->op != LT_COMM_SPLIT) {
    if (m->form == LT_FORM_VALUE)
      add(t, " of a value");
    else
      add_shape(t, m);
  }
  if (m->op == LT_COMM_BROADCAST || m->op == LT_COMM_SCATTER || m->op == LT_COMM_RECV)
    add(t, " from %d", m->root);
  if (m->op == LT_COMM_GATHER || m->op == LT_COMM_REDUCE || m->op == LT_COMM_SEND)
    add(t, " to %d", m->root);
  if (m->status == LT_BY_DEVICE_LINK) add(t, " between devices");
  add_place(t, m, " at ");
  if (m->hook[0] != 0) add(t, " (%.*s)", LT_MARK_HOOK, m->hook);
}

static void add_activity(text *t, const lt_mark *m) {
  switch ((lt_mark_kind)m->kind) {
    case LT_MARK_CALL: add_call(t, m); break;
    case LT_MARK_RUNNING:
      if (m->hook[0] != 0)
        add(t, "in %.*s", LT_MARK_HOOK, m->hook);
      else
        add(t, "running");
      add_place(t, m, m->status == LT_LINE_PASSED ? ", last known line " : " at ");
      break;
    case LT_MARK_LEFT:
      add(t, "left %.*s", LT_MARK_HOOK, m->hook[0] != 0 ? m->hook : "the script");
      add_place(t, m, " at ");
      break;
    case LT_MARK_GONE:
      if (m->status > 128)
        add(t, "ended by signal %d", m->status - 128);
      else
        add(t, "ended with status %d", m->status);
      break;
    case LT_MARK_NONE:
    default: add(t, "unknown"); break;
  }
}

void lt_text_add(char *out, size_t size, const char *format, ...) {
  size_t used = strlen(out);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(out + used, size - used, format, arguments);
  va_end(arguments);
}

/* "rank 3", "ranks 0, 1", "ranks 0-62, 64": a run, as `next` gives it, is said by its ends. */
typedef struct run {
  int n, first, last;
} run;

static void end_run(text *t, run *r) {
  if (r->last > r->first) add(t, r->last == r->first + 1 ? ", %d" : "-%d", r->last);
}

static void next_rank(text *t, run *r, int rank) {
  if (r->n++ > 0 && rank == r->last + 1) {
    r->last = rank;
    return;
  }
  if (r->n > 1) end_run(t, r);
  add(t, r->n > 1 ? ", %d" : "%d", rank);
  r->first = r->last = rank;
}

static void add_ranks(text *t, const int *ranks, int n) {
  run r = {0};
  add(t, n == 1 ? "rank " : "ranks ");
  for (int k = 0; k < n; k++) next_rank(t, &r, ranks ? ranks[k] : k);
  end_run(t, &r);
}

int lt_ranks_text(const int *ranks, int n, char *out, size_t size) {
  text t = {out, size, 0};
  if (size > 0) out[0] = 0;
  add_ranks(&t, ranks, n);
  return (int)t.length;
}

int lt_mark_text(const lt_mark *mark, int rank, char *out, size_t size) {
  text t = {out, size, 0};
  if (size > 0) out[0] = 0;
  add(&t, "rank %d: ", rank);
  add_activity(&t, mark);
  return (int)t.length;
}

static bool are_equal(const lt_mark *a, const lt_mark *b) { return memcmp(a, b, sizeof *a) == 0; }

/* One entry for all ranks that do the same, in the place of the first of them. Quadratic in the
   ranks, without memory of its own: a few hundred ranks, at the end of a run. */
static void add_table(text *t, const lt_mark *marks, const int *ranks, int n) {
  for (int k = 0; k < n; k++) {
    run r = {0};
    int same = 0, before = 0;
    for (int j = 0; j < k; j++) before += are_equal(&marks[j], &marks[k]);
    for (int j = k; j < n; j++) same += are_equal(&marks[j], &marks[k]);
    if (before > 0) continue;
    add(t, "%s%s", k == 0 ? "" : "; ", same == 1 ? "rank " : "ranks ");
    for (int j = k; j < n; j++)
      if (are_equal(&marks[j], &marks[k])) next_rank(t, &r, ranks ? ranks[j] : j);
    end_run(t, &r);
    add(t, ": ");
    add_activity(t, &marks[k]);
  }
}

int lt_marks_text(const lt_mark *marks, const int *ranks, int n, char *out, size_t size) {
  text t = {out, size, 0};
  if (size > 0) out[0] = 0;
  add_table(&t, marks, ranks, n);
  return (int)t.length;
}

/* The first rank that is in a call says which one it is about. */
static void add_head(text *t, const lt_mark *marks, const int *ranks, int n) {
  const lt_mark *call = NULL;
  for (int k = n - 1; k >= 0; k--)
    if (marks[k].kind == LT_MARK_CALL) call = &marks[k];
  add(t, "ranks disagree");
  if (call == NULL) return;
  bool pair = n == 2 && (call->op == LT_COMM_SEND || call->op == LT_COMM_RECV);
  add(t, pair ? " at message " : " at collective ");
  add_number(t, call->seq);
  if (pair) {
    add(t, " between ranks %d and %d", ranks ? ranks[0] : 0, ranks ? ranks[1] : 1);
  } else if (call->group != 0) {
    add(t, " of the group of ");
    add_ranks(t, ranks, n);
  }
}

int lt_disagreement_text(const lt_mark *marks, const int *ranks, int n, char *out, size_t size) {
  static const char more[] = "...";
  text t = {out, size, 0};
  if (size > 0) out[0] = 0;
  add_head(&t, marks, ranks, n);
  add(&t, ": ");
  add_table(&t, marks, ranks, n);
  if (t.length >= size && size > sizeof more) memcpy(out + size - sizeof more, more, sizeof more);
  return (int)t.length;
}
