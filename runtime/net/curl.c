/* runtime/net/curl.c: finds libcurl. */
#include "net/curl.h"

#include <dlfcn.h>
#include <string.h>

#include "base/library.h"

static lt_curl table;

#define ROW(field, name) \
  { offsetof(lt_curl, field), "curl_" name }
static const lt_function functions[] = {
    ROW(easy_init, "easy_init"),
    ROW(easy_setopt, "easy_setopt"),
    ROW(easy_perform, "easy_perform"),
    ROW(easy_getinfo, "easy_getinfo"),
    ROW(easy_cleanup, "easy_cleanup"),
    ROW(easy_strerror, "easy_strerror"),
    ROW(multi_init, "multi_init"),
    ROW(multi_add, "multi_add_handle"),
    ROW(multi_remove, "multi_remove_handle"),
    ROW(multi_perform, "multi_perform"),
    ROW(multi_poll, "multi_poll"),
    ROW(multi_read, "multi_info_read"),
    ROW(multi_cleanup, "multi_cleanup"),
    ROW(slist_append, "slist_append"),
    ROW(slist_free, "slist_free_all"),
};
#undef ROW

/* Once, before threads can meet in it. */
static void prepare(void *handle) {
  int (*init)(long);
  void *f = dlsym(handle, "curl_global_init");
  memcpy(&init, &f, sizeof f);
  if (f != NULL) init(LT_CURL_GLOBAL_ALL);
}

static lt_library library = {.names = {"libcurl.so.4", "libcurl-gnutls.so.4"},
                             .table = &table,
                             .functions = functions,
                             .n = sizeof functions / sizeof *functions,
                             .missing = "needs libcurl: apt install libcurl4",
                             .prepare = prepare};

const lt_curl *lt_curl_open(lt_ctx *c, const char *op) {
  return lt_library_open(c, &library, op) ? &table : NULL;
}
