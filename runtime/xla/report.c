/* runtime/xla/report.c: counts what the device does, and writes it as JSON.

   A run that is slow on such a device compiles again and again, or waits for values within its
   steps: the script's line is warned of, once each. */
#include "xla/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xla/cache.h"
#include "xla/plugin.h"

enum {
  LINES = 1 << 14, /* of calls: places in a table, the last one to take a place has it */
  SITES = 256,     /* of cuts */
  OFTEN = 3        /* the last batch of a loop, and that of its validation, are expected */
};

lt_program_record *lt_report_programs;

typedef struct site {
  lt_cut_reason reason;
  char line[128];
  int64_t count, batches, batch; /* batches in a row that it was in, the last of them */
  bool warned;
} site;

static site sites[SITES];
static size_t n_sites;
static int64_t batch; /* number */
static int64_t uploaded, n_uploads, read_bytes, n_reads;

static char notes[LT_NOTES][LT_NOTE];
static int n_notes;

void lt_report_warn(const char *format, ...) {
  va_list args;
  if (n_notes == LT_NOTES) return;
  va_start(args, format);
  vsnprintf(notes[n_notes++], LT_NOTE, format, args);
  va_end(args);
}

int lt_report_take(char out[LT_NOTES][LT_NOTE]) {
  int n = n_notes;
  if (n > 0) memcpy(out, notes, sizeof notes);
  n_notes = 0;
  return n;
}

uint32_t lt_report_line(lt_ctx *c, uint64_t hash) {
  static struct { uint64_t hash; uint32_t line; } lines[LINES];
  size_t k = (hash ^ hash >> 32) % LINES;
  if (lines[k].hash == hash) return lines[k].line;
  if (lt_xla_host->root(c) != (const void *)c) return 0;
  lines[k].hash = hash;
  return lines[k].line = lt_xla_host->line(c);
}

static const char *op_name(int64_t op) {
  return op == LT_NODE_COPY ? "copy" : lt_xla_host->op_name((int)op);
}

/* The op of a node: the stream has it. */
static bool op_of(const lt_graph *g, size_t node, int64_t *op) {
  const int64_t *end = g->stream.at + g->stream.n, *at = lt_stream_next(g->stream.at, end);
  for (size_t k = 0; k < node && at != NULL; k++) at = lt_stream_next(lt_stream_after(at), end);
  if (at != NULL) *op = at[0];
  return at != NULL;
}

bool lt_report_call(lt_ctx *c, const lt_graph *g, size_t node, char *text, size_t size) {
  int64_t op;
  char line[128];
  if (!op_of(g, node, &op)) return false;
  lt_xla_host->line_text(c, g->nodes.at[node].line, line, sizeof line);
  snprintf(text, size, "%s%s%s", op_name(op), line[0] != 0 ? " at " : "", line);
  return true;
}

static void first_line(lt_ctx *c, const lt_graph *g, char *text, size_t size) {
  text[0] = 0;
  for (size_t k = 0; k < g->nodes.n && text[0] == 0; k++)
    lt_xla_host->line_text(c, g->nodes.at[k].line, text, size);
}

const char *lt_report_program(lt_ctx *c, const lt_graph *g, char *text, size_t size) {
  char line[128];
  first_line(c, g, line, sizeof line);
  snprintf(text, size, "a program of %zu operation%s%s%s", g->nodes.n, g->nodes.n == 1 ? "" : "s",
           line[0] != 0 ? " that begins at " : "", line);
  return text;
}

static site *site_of(lt_cut_reason reason, const char *line) {
  for (size_t k = 0; k < n_sites; k++)
    if (sites[k].reason == reason && strcmp(sites[k].line, line) == 0) return &sites[k];
  if (n_sites == SITES) return &sites[SITES - 1];
  sites[n_sites] = (site){.reason = reason, .batch = -1};
  snprintf(sites[n_sites].line, sizeof sites->line, "%s", line);
  return &sites[n_sites++];
}

/* Waits of the library itself, which ends each batch, need no line. */
void lt_report_cut(lt_ctx *c, lt_cut_reason reason) {
  char line[128] = "";
  bool is_script = reason != LT_CUT_BATCH && lt_xla_host->root(c) == (const void *)c;
  if (is_script) lt_xla_host->line_text(c, lt_xla_host->line(c), line, sizeof line);
  site *s = site_of(reason, line);
  s->count++;
  if (s->batch != batch) s->batches = s->batch == batch - 1 ? s->batches + 1 : 1;
  s->batch = batch;
  if (s->warned || line[0] == 0 || s->batches < OFTEN || reason != LT_CUT_READ || batch == 0)
    return;
  s->warned = true;
  lt_report_warn("xla: %s reads a value in each step: the step runs as several programs, and waits "
                 "for each; self:log reads later", line);
}

void lt_report_batch(void) { batch++; }

void lt_report_compiled(lt_ctx *c, const lt_graph *g, lt_program_record *r) {
  int64_t times = 1;
  static bool noted;
  first_line(c, g, r->line, sizeof r->line);
  for (const lt_program_record *p = lt_report_programs; p != NULL; p = p->before)
    times += r->changed[0] != 0 && strcmp(p->changed, r->changed) == 0;
  r->before = lt_report_programs;
  lt_report_programs = r;
  if (times == OFTEN)
    lt_report_warn("xla: shapes change from step to step, and each new one is compiled: %s: pad to "
                   "few sizes, or drop_last", r->reason);
  if (!noted && lt_cache_problem()[0] != 0)
    lt_report_warn("xla: programs are not kept for the next run: %s", lt_cache_problem());
  noted = noted || lt_cache_problem()[0] != 0;
}

void lt_report_uploaded(size_t bytes) {
  uploaded += (int64_t)bytes;
  n_uploads++;
}

void lt_report_read(size_t bytes) {
  read_bytes += (int64_t)bytes;
  n_reads++;
}

/* What is beyond its end is counted alone. */
typedef struct json {
  char *text;
  size_t size, n;
} json;

static void put(json *j, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(json *j, const char *format, ...) {
  va_list args;
  bool full = j->n >= j->size;
  va_start(args, format);
  int n = vsnprintf(full ? NULL : j->text + j->n, full ? 0 : j->size - j->n, format, args);
  va_end(args);
  j->n += n > 0 ? (size_t)n : 0;
}

static void put_string(json *j, const char *name, const char *text) {
  put(j, "\"%s\":\"", name);
  for (; *text != 0; text++) {
    unsigned char byte = (unsigned char)*text;
    if (byte == '"' || byte == '\\') put(j, "\\%c", byte);
    else if (byte < 32) put(j, "\\u%04x", byte);
    else put(j, "%c", byte);
  }
  put(j, "\",");
}

static void put_programs(json *j) {
  put(j, "\"programs\":[");
  for (const lt_program_record *p = lt_report_programs; p != NULL; p = p->before) {
    put(j, "{");
    put_string(j, "line", p->line);
    put_string(j, "reason", p->reason);
    put(j, "\"operations\":%zu,\"seconds\":%.6f,\"loaded\":%s,\"runs\":%lld}%s", p->operations,
        p->seconds, p->is_loaded ? "true" : "false", (long long)p->runs,
        p->before != NULL ? "," : "");
  }
  put(j, "],");
}

static void put_cuts(json *j) {
  static const char *const names[] = {
      [LT_CUT_BATCH] = "batch", [LT_CUT_READ] = "read", [LT_CUT_WAIT] = "wait",
      [LT_CUT_BOUND] = "bound", [LT_CUT_CONTEXT] = "context"};
  put(j, "\"cuts\":[");
  for (size_t k = 0; k < n_sites; k++) {
    put(j, "%s{", k > 0 ? "," : "");
    put_string(j, "reason", names[sites[k].reason]);
    put_string(j, "line", sites[k].line);
    put(j, "\"count\":%lld}", (long long)sites[k].count);
  }
  put(j, "],");
}

static void put_memory(json *j) {
  put(j, "\"memory\":[");
  for (int k = 0; k < lt_xla_partitions(); k++) {
    pjrt_memory_stats m;
    if (!lt_xla_memory(k, &m)) break;
    put(j, "%s{\"in_use\":%lld", k > 0 ? "," : "", (long long)m.in_use);
    if (m.peak.is_known) put(j, ",\"peak\":%lld", (long long)m.peak.value);
    if (m.limit.is_known) put(j, ",\"limit\":%lld", (long long)m.limit.value);
    put(j, "}");
  }
  put(j, "],");
}

size_t lt_report_text(char *text, size_t size) {
  json j = {text, size, 0};
  put(&j, "{");
  put_string(&j, "platform", lt_xla_platform());
  put_string(&j, "version", lt_xla_version());
  put_string(&j, "cache", lt_cache_folder());
  put_string(&j, "cache_problem", lt_cache_problem());
  put_memory(&j);
  put_programs(&j);
  put_cuts(&j);
  put(&j, "\"uploads\":%lld,\"uploaded\":%lld,\"reads\":%lld,\"read\":%lld}",
      (long long)n_uploads, (long long)uploaded, (long long)n_reads, (long long)read_bytes);
  return j.n;
}
