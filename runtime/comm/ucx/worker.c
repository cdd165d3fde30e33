/* runtime/comm/ucx/worker.c: UCX's start and end.

   UCX would print to standard output and handle signals of crashes by itself; both are left to the
   process, unless the user has set the variables of these (UCX_LOG_LEVEL, UCX_HANDLE_ERRORS). */
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucs/debug/debug.h>
#include <ucs/debug/log_def.h>
#include <unistd.h>

#include "comm/ucx/link.h"

/* What UCX said last on this thread: its status codes alone do not name what is wrong. */
static _Thread_local char said[LT_COMM_TEXT];

static ucs_log_func_rc_t on_log(const char *file, unsigned line, const char *function,
                                ucs_log_level_t level, const ucs_log_component_config_t *component,
                                const char *format, va_list ap) {
  (void)file, (void)line, (void)function, (void)component;
  if (level == UCS_LOG_LEVEL_FATAL) return UCS_LOG_FUNC_RC_CONTINUE;
  if (level == UCS_LOG_LEVEL_ERROR) vsnprintf(said, sizeof said, format, ap);
  return UCS_LOG_FUNC_RC_STOP;
}

static void be_quiet(void) {
  static const int signals[] = {SIGILL, SIGSEGV, SIGBUS, SIGFPE};
  static bool done;
  if (done) return;
  done = true;
  if (getenv("UCX_LOG_LEVEL") == NULL) ucs_log_push_handler(on_log);
  if (getenv("UCX_HANDLE_ERRORS") != NULL || getenv("UCX_ERROR_SIGNALS") != NULL) return;
  for (size_t k = 0; k < sizeof signals / sizeof *signals; k++)
    ucs_debug_disable_signal(signals[k]);
}

static bool good(ucs_status_t status, const char *call, char *text) {
  if (status == UCS_OK) return true;
  snprintf(text, LT_COMM_TEXT, "%s: %s%s%.160s", call, ucs_status_string(status),
           said[0] != '\0' ? ": " : "", said);
  return false;
}

/* Names of hosts are not unique (containers, images of clouds): two ranks are on one machine only
   if their kernels were also booted as one. */
static uint64_t machine(void) {
  char name[128] = "";
  int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  ssize_t n = fd >= 0 ? read(fd, name, 40) : 0;
  if (fd >= 0) close(fd);
  gethostname(name + (n > 0 ? n : 0), sizeof name - 41);
  return lt_ucx_hash(name);
}

static bool take_address(lt_ucx_world *w, char *text) {
  ucp_address_t *address = NULL;
  size_t n = 0;
  uint64_t here = machine();
  if (!good(ucp_worker_get_address(w->worker, &address, &n), "ucp_worker_get_address", text))
    return false;
  w->own_bytes = LT_UCX_MACHINE + n;
  w->own = malloc(w->own_bytes);
  if (w->own != NULL) {
    memcpy(w->own, &here, LT_UCX_MACHINE);
    memcpy(w->own + LT_UCX_MACHINE, address, n);
  } else {
    snprintf(text, LT_COMM_TEXT, "out of memory for an address");
  }
  ucp_worker_release_address(w->worker, address);
  return w->own != NULL;
}

static bool start(lt_ucx_world *w, char *text) {
  enum { SENDER = 0xffff }; /* the bits of a tag that differ between senders: requests.c */
  ucp_config_t *config = NULL;
  ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_TAG_SENDER_MASK |
                                       UCP_PARAM_FIELD_ESTIMATED_NUM_EPS,
                         .features = UCP_FEATURE_TAG,
                         .tag_sender_mask = SENDER,
                         .estimated_num_eps = (size_t)w->size};
  ucp_worker_params_t worker = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                .thread_mode = UCS_THREAD_MODE_SINGLE};
  said[0] = '\0';
  if (!good(ucp_config_read(NULL, NULL, &config), "ucp_config_read", text)) return false;
  bool ok = good(ucp_init(&params, config, &w->context), "ucp_init", text);
  ucp_config_release(config);
  ok = ok && good(ucp_worker_create(w->context, &worker, &w->worker), "ucp_worker_create", text);
  return ok && take_address(w, text);
}

static void world_free(lt_ucx_world *w) {
  if (w->worker != NULL) ucp_worker_destroy(w->worker);
  if (w->context != NULL) ucp_cleanup(w->context);
  free(w->own);
  free(w->addresses);
  free(w->peers);
  free(w);
}

lt_ucx_world *lt_ucx_world_new(int rank, int size, char *text) {
  lt_ucx_world *w = calloc(1, sizeof *w);
  lt_ucx_peer *peers = calloc((size_t)size, sizeof *peers);
  if (w == NULL || peers == NULL) {
    free(w);
    free(peers);
    snprintf(text, LT_COMM_TEXT, "out of memory for %d ranks", size);
    return NULL;
  }
  be_quiet();
  w->rank = rank;
  w->size = size;
  w->peers = peers;
  if (start(w, text)) return w;
  world_free(w);
  return NULL;
}

/* By force: all ranks have left, so that nothing is on its way, and a flush would wait for those
   that have closed before. */
void lt_ucx_world_close(lt_ucx_world *w) {
  ucp_request_param_t force = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                               .flags = UCP_EP_CLOSE_FLAG_FORCE};
  for (int r = 0; r < w->size; r++) {
    if (w->peers[r].endpoint == NULL || w->peers[r].is_here) continue; /* ends with the worker */
    void *ucx = ucp_ep_close_nbx(w->peers[r].endpoint, &force);
    if (ucx == NULL || UCS_PTR_IS_ERR(ucx)) continue;
    while (ucp_request_check_status(ucx) == UCS_INPROGRESS) ucp_worker_progress(w->worker);
    ucp_request_free(ucx);
  }
  world_free(w);
}
