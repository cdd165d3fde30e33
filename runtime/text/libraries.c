/* runtime/text/libraries.c: finds PCRE2 and utf8proc (libraries.h). */
#include "text/libraries.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

typedef struct row {
  size_t at;
  const char *name;
} row;

/* The functions named by n rows into `table`, of the first of the libraries that is there. */
static bool find(const char *const *libraries, void *table, const row *rows, size_t n) {
  void *library = NULL;
  for (; *libraries != NULL && library == NULL; libraries++)
    library = dlopen(*libraries, RTLD_NOW | RTLD_LOCAL);
  for (size_t k = 0; k < n && library != NULL; k++) {
    void *f = dlsym(library, rows[k].name);
    if (f == NULL) return false;
    memcpy((char *)table + rows[k].at, &f, sizeof f);
  }
  return library != NULL;
}

static lt_pcre2 pcre2;
static bool has_pcre2;

static void open_pcre2(void) {
#define ROW(name) {offsetof(lt_pcre2, name), "pcre2_" #name "_8"}
  static const char *const libraries[] = {"libpcre2-8.so.0", "libpcre2-8.so", NULL};
  static const row rows[] = {
      ROW(compile), ROW(jit_compile), ROW(match), ROW(match_data_create_from_pattern),
      ROW(get_ovector_pointer), ROW(match_context_create), ROW(set_match_limit),
      ROW(get_error_message), ROW(code_free), ROW(match_data_free), ROW(match_context_free)};
#undef ROW
  has_pcre2 = find(libraries, &pcre2, rows, sizeof rows / sizeof *rows);
}

static lt_utf8proc utf8proc;
static bool has_utf8proc;

static void open_utf8proc(void) {
  static const char *const libraries[] = {"libutf8proc.so.2", "libutf8proc.so.3", "libutf8proc.so",
                                          NULL};
  static const row rows[] = {{offsetof(lt_utf8proc, category), "utf8proc_category"},
                             {offsetof(lt_utf8proc, to_lower), "utf8proc_tolower"},
                             {offsetof(lt_utf8proc, map), "utf8proc_map"}};
  has_utf8proc = find(libraries, &utf8proc, rows, sizeof rows / sizeof *rows);
}

const lt_pcre2 *lt_pcre2_open(lt_ctx *c) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, open_pcre2);
  if (!has_pcre2) lt_fail(c, LT_EIO, "text: needs PCRE2: apt install libpcre2-8-0");
  return has_pcre2 ? &pcre2 : NULL;
}

const lt_utf8proc *lt_utf8proc_open(lt_ctx *c) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, open_utf8proc);
  if (!has_utf8proc) lt_fail(c, LT_EIO, "text: needs utf8proc: apt install libutf8proc2");
  return has_utf8proc ? &utf8proc : NULL;
}
