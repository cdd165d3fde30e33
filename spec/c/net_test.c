/* spec/c/net_test.c: the numbers of libmicrohttpd, files below a folder, inboxes. */
#include "io_test.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apps/http.h"
#include "apps/microhttpd.h"
#include "io/confined_files.h"
#include "io/inbox.h"

#if __has_include(<microhttpd.h>)
#include <microhttpd.h>

_Static_assert((int)LT_MHD_EPOLL == (int)MHD_USE_EPOLL, "flag");
_Static_assert((int)LT_MHD_SUSPEND == (int)MHD_ALLOW_SUSPEND_RESUME, "flag");
_Static_assert((int)LT_MHD_END == (int)MHD_OPTION_END, "option");
_Static_assert((int)LT_MHD_MEMORY_LIMIT == (int)MHD_OPTION_CONNECTION_MEMORY_LIMIT, "option");
_Static_assert((int)LT_MHD_CONNECTIONS == (int)MHD_OPTION_CONNECTION_LIMIT, "option");
_Static_assert((int)LT_MHD_COMPLETED == (int)MHD_OPTION_NOTIFY_COMPLETED, "option");
_Static_assert((int)LT_MHD_URI_LOG == (int)MHD_OPTION_URI_LOG_CALLBACK, "option");
_Static_assert((int)LT_MHD_LISTEN_SOCKET == (int)MHD_OPTION_LISTEN_SOCKET, "option");
_Static_assert((int)LT_MHD_NOTIFY_CONNECTION == (int)MHD_OPTION_NOTIFY_CONNECTION, "option");
_Static_assert((int)LT_MHD_STRICT == (int)MHD_OPTION_STRICT_FOR_CLIENT, "option");
_Static_assert((int)LT_MHD_YES == (int)MHD_YES, "result");
_Static_assert((int)LT_MHD_STARTED == (int)MHD_CONNECTION_NOTIFY_STARTED, "moment");
_Static_assert((int)LT_MHD_HEADERS == (int)MHD_HEADER_KIND, "kind");
_Static_assert((int)LT_MHD_MUST_COPY == (int)MHD_RESPMEM_MUST_COPY, "memory");
_Static_assert((int)LT_MHD_OF_FD == (int)MHD_CONNECTION_INFO_CONNECTION_FD, "info");
_Static_assert((int)LT_MHD_OF_CONTEXT == (int)MHD_CONNECTION_INFO_SOCKET_CONTEXT, "info");
_Static_assert((int)LT_MHD_OF_EPOLL == (int)MHD_DAEMON_INFO_EPOLL_FD, "info");
_Static_assert(LT_MHD_STREAM_ENDS == MHD_CONTENT_READER_END_OF_STREAM, "end");
_Static_assert(LT_MHD_STREAM_FAILS == MHD_CONTENT_READER_END_WITH_ERROR, "end");
#endif

static int open_below(lt_ctx *c, const char *folder, const char *path) {
  struct stat info;
  lt_failure f;
  int fd = lt_below_open(c, "read", folder, path, &info);
  assert_int_equal(fd < 0, lt_take_failure(c, &f));
  if (fd >= 0) close(fd);
  return fd;
}

static void no_path_leaves_its_folder(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  const char *folder = IO_PATH("below");
  char text[4096];
  struct stat info;
  assert_int_equal(mkdir(folder, 0700), 0);
  int at = open(folder, O_RDONLY | O_DIRECTORY);
  assert_int_equal(mkdirat(at, "in", 0700), 0);
  assert_true(snprintf(text, sizeof text, "%s/in/a", folder) > 0);
  io_write(text, "x", 1);
  assert_int_equal(symlinkat("/etc", at, "etc"), 0);
  assert_int_equal(symlinkat("in/a", at, "link"), 0);
  assert_int_equal(symlinkat("in", at, "inner"), 0);
  assert_int_equal(mkfifoat(at, "pipe", 0600), 0);
  assert_true(open_below(c, folder, "in/a") >= 0);
  assert_true(open_below(c, folder, "in") >= 0);
  assert_true(open_below(c, folder, "") >= 0);
  static const char *const refused[] = {"etc/passwd", "link",   "inner/a", "pipe",    "../x",
                                        "in/../in/a", "./in/a", "/in/a",   "in//a",   "in/a/b",
                                        "..",         "/",      "none",    "in/none", "etc"};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
    assert_true(open_below(c, folder, refused[i]) < 0);
  assert_true(lt_below_stat(c, folder, "in/a", &info) && S_ISREG(info.st_mode));
  assert_false(lt_below_stat(c, folder, "link", &info));
  assert_false(lt_below_stat(c, folder, "etc/passwd", &info));
  assert_false(lt_below_stat(c, folder, "in/../in/a", &info));
  memset(text, 'a', 300);
  text[300] = 0;
  assert_true(open_below(c, folder, text) < 0);
  static const char *const made[] = {"in/a", "etc", "link", "inner", "pipe"};
  for (size_t i = 0; i < sizeof made / sizeof *made; i++)
    assert_int_equal(unlinkat(at, made[i], 0), 0);
  assert_int_equal(unlinkat(at, "in", AT_REMOVEDIR), 0);
  close(at);
  lt_ctx_release(c);
}

static void words_come_through_an_inbox(void **state) {
  (void)state;
  lt_ctx *c = io_ctx();
  lt_failure f;
  const char *folder = IO_PATH("inbox");
  char word[LT_INBOX_WORD];
  struct stat info;
  assert_int_equal(mkdir(folder, 0700), 0);
  assert_false(lt_inbox_send(c, "control", folder, "", "s", "stop")); /* nobody is there */
  assert_true(lt_take_failure(c, &f));
  int fd = lt_inbox_open(c, "control", folder, "s");
  assert_true(fd >= 0);
  assert_true(lt_below_stat(c, folder, "s", &info) && S_ISSOCK(info.st_mode));
  assert_int_equal(info.st_mode & 0777, 0600);
  assert_false(lt_inbox_take(fd, word));
  assert_true(lt_inbox_send(c, "control", folder, "", "s", NULL)); /* only a look */
  assert_false(lt_inbox_take(fd, word));
  assert_true(lt_inbox_send(c, "control", folder, "", "s", "stop"));
  assert_true(lt_inbox_send(c, "control", folder, "", "s", "save"));
  assert_true(lt_inbox_take(fd, word));
  assert_string_equal(word, "stop");
  assert_true(lt_inbox_take(fd, word));
  assert_string_equal(word, "save");
  assert_true(lt_inbox_open(c, "control", folder, "s") < 0); /* there is one */
  assert_true(lt_take_failure(c, &f));
  close(fd); /* as of a process that was killed: the name stays */
  assert_false(lt_inbox_send(c, "control", folder, "", "s", "stop"));
  assert_true(lt_take_failure(c, &f));
  fd = lt_inbox_open(c, "control", folder, "s");
  assert_true(fd >= 0);
  lt_inbox_close(fd, folder, "s");
  assert_false(lt_below_stat(c, folder, "s", &info));
  io_write(IO_PATH("inbox/s"), "x", 1); /* a file is left alone */
  assert_true(lt_inbox_open(c, "control", folder, "s") < 0);
  assert_true(lt_take_failure(c, &f));
  assert_int_equal(unlink(IO_PATH("inbox/s")), 0);
  lt_ctx_release(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(no_path_leaves_its_folder, io_setup, io_teardown),
      cmocka_unit_test_setup_teardown(words_come_through_an_inbox, io_setup, io_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
