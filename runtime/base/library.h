/* runtime/base/library.h: shared libraries opened at run time (dlopen), when they are first needed.

   What we call of them is declared where it is called, so that a build needs neither their headers
   nor them, and a start of the program pays nothing. */
#ifndef LT_BASE_LIBRARY_H
#define LT_BASE_LIBRARY_H

#include <stdatomic.h>
#include <stddef.h>

#include "base/ctx.h"

/* A function of a library, and where its address goes in a table of pointers to functions. */
typedef struct lt_function {
  size_t offset;
  const char *name;
} lt_function;

typedef struct lt_library {
  const char *names[4]; /* files; the first that has all the functions is taken */
  void *table;
  const lt_function *functions;
  size_t n;
  const char *missing;           /* why it is needed, and the command that installs it */
  void (*prepare)(void *handle); /* called once after opening; NULL: nothing to prepare */
  atomic_int state;              /* enum of library.c; starts as 0 */
} lt_library;

/* Open the library unless it is open, and fill its table. False, with LT_EDEVICE and "op: missing",
   where it is not installed, which the first call finds out. From any thread. */
bool lt_library_open(lt_ctx *c, lt_library *l, const char *op);

#endif
