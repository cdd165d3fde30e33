/* runtime/net/microhttpd.c: finds libmicrohttpd. */
#include "net/microhttpd.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

static lt_microhttpd library;
static bool is_there;

static void open_library(void) {
  static const struct {
    size_t at;
    const char *name;
  } rows[] = {
      {offsetof(lt_microhttpd, start), "MHD_start_daemon"},
      {offsetof(lt_microhttpd, stop), "MHD_stop_daemon"},
      {offsetof(lt_microhttpd, run), "MHD_run"},
      {offsetof(lt_microhttpd, timeout), "MHD_get_timeout"},
      {offsetof(lt_microhttpd, daemon_info), "MHD_get_daemon_info"},
      {offsetof(lt_microhttpd, connection_info), "MHD_get_connection_info"},
      {offsetof(lt_microhttpd, values), "MHD_get_connection_values"},
      {offsetof(lt_microhttpd, suspend), "MHD_suspend_connection"},
      {offsetof(lt_microhttpd, resume), "MHD_resume_connection"},
      {offsetof(lt_microhttpd, from_buffer), "MHD_create_response_from_buffer"},
      {offsetof(lt_microhttpd, from_reader), "MHD_create_response_from_callback"},
      {offsetof(lt_microhttpd, header), "MHD_add_response_header"},
      {offsetof(lt_microhttpd, queue), "MHD_queue_response"},
      {offsetof(lt_microhttpd, release), "MHD_destroy_response"},
  };
  void *file = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL);
  if (file == NULL) return;
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    void *f = dlsym(file, rows[k].name);
    if (f == NULL) return;
    memcpy((char *)&library + rows[k].at, &f, sizeof f);
  }
  is_there = true;
}

const lt_microhttpd *lt_microhttpd_open(lt_ctx *c, const char *op) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, open_library);
  if (!is_there)
    lt_fail(c, LT_EIO, "%s: needs libmicrohttpd: apt install libmicrohttpd12", op);
  return is_there ? &library : NULL;
}
