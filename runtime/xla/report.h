/* runtime/xla/report.h: what was compiled, run and copied, and why: counted for the report of the
   device, and warned of where a script makes it compile or wait again and again.

   Functions are called with the graph's lock, unless they say otherwise. */
#ifndef LT_XLA_REPORT_H
#define LT_XLA_REPORT_H

#include "xla/graph.h"

/* Of a program that was compiled. */
typedef struct lt_program_record {
  struct lt_program_record *before;
  const int64_t *stream; /* the program's */
  size_t n_stream, operations;
  char line[128];    /* of its first operation */
  char reason[512];  /* why it was compiled */
  char changed[160]; /* the call whose shapes differed; "": another reason */
  double seconds;
  bool is_loaded; /* from the cache */
  int64_t runs;
} lt_program_record;

extern lt_program_record *lt_report_programs; /* the newest first */

/* The line of the script that recorded a call, by the hash of the graph up to it: finding it walks
   the script's stack, so that it is looked up for structures that are new. */
uint32_t lt_report_line(lt_ctx *c, uint64_t hash);

/* "matmul at model.lua:12" of a node of the graph; false: there is none. */
bool lt_report_call(lt_ctx *c, const lt_graph *g, size_t node, char *text, size_t size);
/* "a program of 412 operations that begins at model.lua:12" */
const char *lt_report_program(lt_ctx *c, const lt_graph *g, char *text, size_t size);

/* A graph with nodes ends. */
void lt_report_cut(lt_ctx *c, lt_cut_reason reason);
/* A batch has ended, also without a graph. */
void lt_report_batch(void);
/* Fills `reason` and `changed` by the program so far that is most alike (changes.c). */
void lt_report_find_change(lt_ctx *c, const lt_graph *g, lt_program_record *r);
/* The graph's program has been made; `r` stays. */
void lt_report_compiled(lt_ctx *c, const lt_graph *g, lt_program_record *r);

void lt_report_uploaded(size_t bytes);
void lt_report_read(size_t bytes);

/* Warnings to be issued when the lock is released, which leave the list; returns how many. */
enum { LT_NOTES = 4, LT_NOTE = 600 };
void lt_report_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
int lt_report_take(char out[LT_NOTES][LT_NOTE]);

/* A JSON object (lt_device_ops.report). */
size_t lt_report_text(char *text, size_t size);

#endif
