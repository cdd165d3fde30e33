/* runtime/apps/microhttpd.c: finds libmicrohttpd. */
#include "apps/microhttpd.h"

#include "base/library.h"

static lt_microhttpd table;

#define ROW(field, name) \
  { offsetof(lt_microhttpd, field), "MHD_" name }
static const lt_function functions[] = {
    ROW(start, "start_daemon"),
    ROW(stop, "stop_daemon"),
    ROW(run, "run"),
    ROW(timeout, "get_timeout"),
    ROW(daemon_info, "get_daemon_info"),
    ROW(connection_info, "get_connection_info"),
    ROW(values, "get_connection_values"),
    ROW(suspend, "suspend_connection"),
    ROW(resume, "resume_connection"),
    ROW(from_buffer, "create_response_from_buffer"),
    ROW(from_reader, "create_response_from_callback"),
    ROW(header, "add_response_header"),
    ROW(queue, "queue_response"),
    ROW(release, "destroy_response"),
};
#undef ROW

static lt_library library = {.names = {"libmicrohttpd.so.12"},
                             .table = &table,
                             .functions = functions,
                             .n = sizeof functions / sizeof *functions,
                             .missing = "needs libmicrohttpd: apt install libmicrohttpd12"};

const lt_microhttpd *lt_microhttpd_open(lt_ctx *c, const char *op) {
  return lt_library_open(c, &library, op) ? &table : NULL;
}
