/* spec/c/host_misuse_test.c: hosts that close a state from its own callbacks, set no size, pass a
   message back: each is told, and the state can be used after it. */
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host_internals.h"

static float memory[2] = {1, 2};
static const int64_t two[] = {2};
static ltrain *here;
static const char in_a_call[] = "close: the state is in a call: close it when that has returned";

static void must_go_on(ltrain *l) {
  must(l, ltrain_dostring(l, "assert(#require 'ltrain'.ones(2):tolist() == 2)", "after"));
  assert_string_equal(ltrain_errmsg(l), "");
}

static bool close_it(ltrain *l, void *ud, const ltrain_value *in, ltrain_value *out) {
  (void)ud, (void)in, (void)out;
  ltrain_close(l);
  return true;
}

static void close_from_print(void *ud, const char *text, size_t length) {
  (void)ud, (void)text, (void)length;
  ltrain_close(here);
}

static void close_from_log(void *ud, int level, const char *text) {
  (void)ud, (void)level, (void)text;
  ltrain_close(here);
}

static void close_from_progress(void *ud, const char *stage, int64_t epoch, int64_t batch,
                                int64_t batches) {
  (void)ud, (void)stage, (void)epoch, (void)batch, (void)batches;
  ltrain_close(here);
}

static void a_state_is_not_closed_by_its_callbacks(void **state) {
  (void)state;
  static const char *const scripts[] = {"closes()", "pcall(closes) while true do end", "print(1)",
                                        "warn('x')", "train(1)"};
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.print = close_from_print;
  config.log = close_from_log;
  config.progress = close_from_progress;
  ltrain *l = here = open_line(&config);
  must(l, ltrain_register(l, "closes", "", close_it, NULL));
  for (size_t k = 0; k < sizeof scripts / sizeof *scripts; k++) {
    must_say(l, ltrain_dostring(l, scripts[k], "s.lua"), in_a_call);
    must_go_on(l);
  }
  must(l, ltrain_start(l, "closes", ""));
  must_say(l, ltrain_step(l, NULL) != LTRAIN_FAILED, in_a_call);
  must_go_on(l);
  ltrain_close(l);
}

static int dropped;

static void close_from_drop(void *ud) {
  (void)ud;
  dropped++;
  ltrain_close(here);
}

static void run_from_drop(void *ud) {
  (void)ud;
  dropped++;
  assert_false(ltrain_dostring(here, "while true do end", "drop.lua"));
}

static void hold_wrapped(ltrain *l, void (*drop)(void *)) {
  lt_tensor *t = ltrain_wrap(l, memory, LT_F32, 1, two, drop, NULL);
  assert_non_null(t);
  must(l, ltrain_set(l, "x", "T", t));
  ltrain_release(l, t);
}

/* Wherever the memory is given back: in a release, in the collector, at the end. */
static void a_state_is_not_closed_by_memory_that_it_gives_back(void **state) {
  (void)state;
  dropped = 0;
  ltrain *l = here = open_with(NULL);
  ltrain_release(l, ltrain_wrap(l, memory, LT_F32, 1, two, close_from_drop, NULL));
  assert_int_equal(dropped, 1);
  must_say(l, ltrain_dostring(l, "x = 1", "s.lua"), in_a_call);
  must_go_on(l);
  hold_wrapped(l, close_from_drop);
  must_say(l, ltrain_dostring(l, "x = nil while true do local t = {} end", "s.lua"), in_a_call);
  must_go_on(l);
  hold_wrapped(l, run_from_drop);
  must(l, ltrain_dostring(l, "x = nil for _ = 1, 300000 do local t = {} end", "s.lua"));
  assert_string_equal(ltrain_errmsg(l), ""); /* it succeeded */
  assert_int_equal(dropped, 3);
  hold_wrapped(l, run_from_drop);
  must(l, ltrain_dostring(l, "setmetatable({}, {__gc = print})", "s.lua"));
  ltrain_close(l);
  l = here = open_with(NULL);
  hold_wrapped(l, close_from_drop);
  ltrain_close(l);
  assert_int_equal(dropped, 5);
}

static void a_config_that_would_be_ignored_is_refused(void **state) {
  (void)state;
  ltrain_config config;
  memset(&config, 0, sizeof config);
  config.max_instructions = 1000;
  assert_null(ltrain_open(&config));
  assert_string_equal(ltrain_errmsg(NULL), "open: the size of the config is not set: initialise it "
                                           "with LTRAIN_CONFIG_INIT");
  config.size = sizeof config;
  config.max_instructions = -1;
  assert_null(ltrain_open(&config));
  assert_string_equal(ltrain_errmsg(NULL), "open: max_instructions is negative");
  config.max_instructions = 0;
  config.threads = -1;
  assert_null(ltrain_open(&config));
  assert_string_equal(ltrain_errmsg(NULL), "open: threads is negative");
  config.threads = 0;
  config.allow = LTRAIN_READ_FILES | 0x180;
  assert_null(ltrain_open(&config));
  assert_string_equal(ltrain_errmsg(NULL), "open: allow has bits of no permission: 0x180");
  config.allow = LTRAIN_EVERYTHING;
  ltrain_close(open_with(&config));
  assert_string_equal(ltrain_errmsg(NULL), "not enough memory");
}

static int warned;
static void count_warnings(void *ud, int level, const char *text) {
  (void)ud;
  warned += level == LTRAIN_WARNING && strncmp(text, "release: ", 9) == 0;
}

static lt_tensor *foreign;

/* What its argument is for: 1 released, 2 given with a reference that it has not. */
static bool misuse(ltrain *l, void *ud, const ltrain_value *in, ltrain_value *out) {
  (void)ud;
  if (in[1].i == 1) ltrain_release(l, in[0].T);
  if (in[1].i == 2) out[0].T = foreign;
  if (in[1].i == 3) {
    out[0].T = ltrain_wrap(l, memory, LT_F32, 1, two, NULL, NULL);
    ltrain_release(l, out[0].T);
  }
  return true;
}

static void tensors_are_given_back_once_and_to_their_state(void **state) {
  (void)state;
  static const char elsewhere[] = "of another state, or was released";
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.log = count_warnings;
  ltrain *l = open_with(&config), *other = open_with(NULL);
  must(l, ltrain_register(l, "misuse", "Ti>T", misuse, NULL));
  must(l, ltrain_dostring(l, "lt = require 'ltrain' function id(x) return x end x = lt.ones(2)",
                          "s.lua"));
  foreign = ltrain_wrap(other, memory, LT_F32, 1, two, NULL, NULL);
  lt_tensor *own = ltrain_wrap(l, memory, LT_F32, 1, two, NULL, NULL), *out = NULL;
  warned = 0;
  must(l, ltrain_dostring(l, "assert(misuse(x, 1) == nil and x:sum():item() == 2)", "s.lua"));
  assert_int_equal(warned, 1);
  must_say(l, ltrain_dostring(l, "misuse(x, 2)", "s.lua"), "misuse: a tensor that it gave is of");
  must_say(l, ltrain_dostring(l, "misuse(x, 3)", "s.lua"), elsewhere);
  must_say(l, ltrain_call(l, "id", "T>T", foreign, &out), elsewhere);
  must_say(l, ltrain_set(l, "x", "T", foreign), elsewhere);
  must_say(l, ltrain_data(l, foreign, 0) != NULL, "data: the tensor is of another state");
  must_say(l, ltrain_to_dlpack(l, foreign, 0) != NULL, "to_dlpack: the tensor is of another");
  ltrain_release(l, foreign);
  assert_string_equal(ltrain_errmsg(l), "release: the tensor is of another state, or was released");
  must(l, ltrain_call(l, "id", "T>T", own, &out));
  assert_ptr_equal(out, own); /* owned twice */
  ltrain_release(l, out);
  ltrain_release(l, own);
  ltrain_release(l, own);
  must_say(l, ltrain_call(l, "id", "T>T", own, &out), elsewhere);
  assert_int_equal(warned, 3);
  must_go_on(l);
  ltrain_close(l);
  ltrain_release(other, foreign);
  assert_string_equal(ltrain_errmsg(other), "");
  ltrain_close(other);
}

/* All results or none; and many tensors at once. */
static void what_the_host_has_is_known(void **state) {
  (void)state;
  enum { MANY = 1000 };
  static lt_tensor *all[MANY];
  dropped = 0;
  ltrain *l = here = open_with(NULL);
  must(l, ltrain_dostring(l, "function pair() return require 'ltrain'.ones(2), 'x' end", "s.lua"));
  int64_t number = 0;
  must_say(l, ltrain_call(l, "pair", ">Ti", &all[0], &number), "an integer wanted, got string");
  assert_null(all[0]);
  for (int k = 0; k < MANY; k++)
    assert_non_null(all[k] = ltrain_wrap(l, memory, LT_F32, 1, two, close_from_drop, NULL));
  for (int k = 0; k < MANY; k += 2) ltrain_release(l, all[k]);
  assert_int_equal(dropped, MANY / 2);
  for (int k = 0; k < MANY; k++) {
    const void *data = ltrain_data(l, all[k], 0);
    assert_true((data != NULL) == (k % 2 == 1));
  }
  ltrain_close(l); /* releases the others */
  assert_int_equal(dropped, MANY);
}

static bool pass_on(ltrain *l, void *ud, const ltrain_value *in, ltrain_value *out) {
  (void)ud, (void)in, (void)out;
  ltrain_dostring(l, "\nerror('within')", "n.lua");
  return ltrain_fail(l, ltrain_errmsg(l));
}

static void a_message_can_be_passed_on(void **state) {
  (void)state;
  ltrain *l = open_with(NULL);
  must(l, ltrain_register(l, "f", "", pass_on, NULL));
  must_say(l, ltrain_dostring(l, "f()", "s.lua"), "s.lua:1: f: n.lua:2: within");
  ltrain_close(l);
}

static void no_file_is_longer_than_memory(void **state) {
  (void)state;
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.memory_cap = 64 << 20;
  ltrain *l = open_with(&config);
  const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 100, SIZE_MAX / 2, (size_t)1 << 50};
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    assert_false(ltrain_put_file(l, "memory:x", "x", sizes[k]));
    assert_string_not_equal(ltrain_errmsg(l), "");
    must_go_on(l);
  }
  ltrain_close(l);
}

/* Many in one call, again and again, would be work that nothing counts. */
static void each_value_of_a_string_counts(void **state) {
  (void)state;
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.max_instructions = 100000;
  ltrain *l = open_with(&config);
  must(l, ltrain_dostring(l,
                          "s = ('a'):rep(200000) assert(s:byte(-3, -1) == 97 and #{s:byte(2)} == 1)"
                          " assert(not pcall(string.byte) and s:byte(7, 6) == nil)",
                          "s"));
  must_say(l, ltrain_dostring(l, "local x = s:byte(1, -1)", "s.lua"),
           "s.lua:1: the script ran more than 100000 instructions");
  ltrain_close(l);
}

/* The functions that count call Lua's own; with debug a script must not find those. */
static void lua_s_libraries_lift_no_budget(void **state) {
  (void)state;
  static const char *const scripts[] = {
      "local _, rep = debug.getupvalue(string.rep, 1) rep('', 1 << 62)",
      "local _, set = debug.getupvalue(setmetatable, 1)"
      " set({}, {__gc = function() while true do end end}) collectgarbage()",
      "debug.getmetatable(require 'ltrain'.ones(1)).__gc = function() while true do end end"
      " collectgarbage() collectgarbage()",
      "for _, t in pairs(debug.getregistry()) do if type(t) == 'table' then"
      " t.__gc = function() while true do end end end end collectgarbage() collectgarbage()",
      "getmetatable(io.stdout).__gc = function() while true do end end io.tmpfile()"
      " collectgarbage() collectgarbage()",
  };
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.allow = LTRAIN_EVERYTHING;
  config.max_instructions = 100000;
  alarm(60);
  ltrain *l = open_with(&config);
  for (size_t k = 0; k < sizeof scripts / sizeof *scripts; k++) {
    must_say(l, ltrain_dostring(l, scripts[k], "s.lua"), "s.lua:1: attempt to ");
    must(l, ltrain_dostring(l, "local x = require 'ltrain'.ones(1) x = nil collectgarbage()", "a"));
  }
  must(l, ltrain_dostring(l,
                          "assert(debug.traceback() and debug.getinfo(1, 'l').currentline == 1"
                          " and debug.getlocal)",
                          "s.lua"));
  ltrain_close(l);
}

/* The library's own parts, which require finds: scopes that nobody closes, or in any order. */
static void scopes_that_are_lost_stay(void **state) {
  (void)state;
  static const char *const scripts[] = {
      "trace({})",
      "profile(true)",
      "local p, t = profile(), trace({}) close(p) close(t) p, t = nil, nil",
      "local t, p = trace({}), profile() close(t) close(p) t, p = nil, nil",
      "coroutine.wrap(function() local _ <close> = trace({}) coroutine.yield() end)()",
  };
  for (size_t k = 0; k < sizeof scripts / sizeof *scripts; k++) {
    ltrain *l = open_inside(NULL);
    must(l, ltrain_dostring(l,
                            "lt = require 'ltrain'\n"
                            "local c = internals\n"
                            "trace, profile = c.runtime.trace, c.runtime.profile\n"
                            "function close(scope) local _ <close> = scope end",
                            "setup"));
    must(l, ltrain_dostring(l, scripts[k], "s.lua"));
    must(l,
         ltrain_dostring(l, "for _ = 1, 3000 do local _ = {lt.ones(2) + 1, {}, ('x'):rep(99)} end",
                         "after"));
    ltrain_close(l);
  }
}

static void *try_on_a_small_stack(void *ud) {
  ltrain *l = ud;
  assert_null(ltrain_open(NULL));
  assert_non_null(strstr(ltrain_errmsg(NULL), "the stack of this thread is too small"));
  must_say(l, ltrain_dostring(l, "x = 1", "s"), "the stack of this thread is too small: ");
  must_say(l, ltrain_step(l, NULL) != LTRAIN_FAILED, "the stack of this thread is too small: ");
  return NULL;
}

static void a_thread_needs_a_stack(void **state) {
  (void)state;
  enum { SMALL = 128 << 10 };
  ltrain *l = open_line(NULL);
  pthread_attr_t attr;
  pthread_t thread;
  must(l, ltrain_start(l, "train", "i", INT64_C(1)));
  assert_int_equal(pthread_attr_init(&attr), 0);
  assert_int_equal(pthread_attr_setstacksize(&attr, SMALL), 0);
  assert_int_equal(pthread_create(&thread, &attr, try_on_a_small_stack, l), 0);
  pthread_join(thread, NULL);
  pthread_attr_destroy(&attr);
  while (ltrain_step_for(l, 1, NULL) == LTRAIN_PAUSED) {
  }
  must_go_on(l);
  ltrain_close(l);
}

static void cancel_here(int number) {
  (void)number;
  ltrain_cancel(here);
}

static void a_signal_handler_cancels(void **state) {
  (void)state;
  struct sigaction before, handler = {.sa_handler = cancel_here};
  ltrain *l = here = open_with(NULL);
  assert_int_equal(sigaction(SIGALRM, &handler, &before), 0);
  alarm(1);
  must_say(l, ltrain_dostring(l, "while true do pcall(function() while true do end end) end", "s"),
           "cancelled");
  assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
  must_go_on(l);
  ltrain_close(l);
}

/* A handler runs on the stack of the thread that it interrupts: kernels of oneDNN have moved it
   into the heap. */
static pthread_t main_thread;
static const char *stack_low, *stack_high;
static volatile sig_atomic_t taken, astray;

static void look_at_stack(int number) {
  const char *frame = __builtin_frame_address(0);
  (void)number;
  if (!pthread_equal(pthread_self(), main_thread)) return;
  taken++;
  astray += frame < stack_low || frame > stack_high;
}

static void a_signal_finds_a_stack(void **state) {
  (void)state;
  static const char products[] =
      "local lt = require 'ltrain'\n"
      "local x, y = lt.ones(400, 400), lt.ones(600, 200)\n"
      "for _ = 1, 12 do x:matmul(x) x:matmul(x:t()) y:t():matmul(y) end\n"
      "local q = lt.ones(2, 2, 300, 64)\n"
      "for _ = 1, 4 do lt.scaled_dot_product_attention(q, q, q) end";
  struct sigaction before, handler = {.sa_handler = look_at_stack};
  const struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
  pthread_attr_t attr;
  void *low;
  size_t size;
  main_thread = pthread_self();
  assert_int_equal(pthread_getattr_np(main_thread, &attr), 0);
  assert_int_equal(pthread_attr_getstack(&attr, &low, &size), 0);
  pthread_attr_destroy(&attr);
  stack_low = low;
  stack_high = stack_low + size;
  assert_int_equal(sigaction(SIGALRM, &handler, &before), 0);
  for (int threads = 1; threads <= 2; threads++) {
    ltrain_config config = LTRAIN_CONFIG_INIT;
    config.threads = threads;
    ltrain *l = open_with(&config);
    setitimer(ITIMER_REAL, &often, NULL);
    bool ok = ltrain_dostring(l, products, "s");
    setitimer(ITIMER_REAL, &never, NULL);
    must(l, ok);
    ltrain_close(l);
  }
  assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
  assert_true(taken > 0);
  assert_int_equal(astray, 0);
}

/* Its child: room for little more than is there. Products make code, or say that they cannot. */
static void multiply_without_room(void) {
  long pages = 0;
  ltrain *l = open_with(NULL);
  must(l, ltrain_dostring(l, "lt = require 'ltrain' x = lt.ones(300, 300)", "s"));
  FILE *file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%ld", &pages) != 1) _exit(2);
  fclose(file);
  rlim_t bytes = (rlim_t)(pages * sysconf(_SC_PAGESIZE)) + (4 << 20);
  if (setrlimit(RLIMIT_AS, &(struct rlimit){bytes, RLIM_INFINITY}) != 0) _exit(3);
  static const char *const products[] = {"x:matmul(x)", "x:t():matmul(x)", "x[{{1, 7}}]:matmul(x)",
                                         "lt.nn.functional.linear(x[{{1, 9}}], x)",
                                         "lt.ones(400, 400):matmul(lt.ones(400, 400))"};
  for (size_t k = 0; k < sizeof products / sizeof *products; k++) {
    char code[200];
    snprintf(code, sizeof code, "local y = %s", products[k]);
    if (!ltrain_dostring(l, code, "s") && ltrain_errmsg(l)[0] == 0) _exit(4);
  }
  if (setrlimit(RLIMIT_AS, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY}) != 0) _exit(5);
  if (!ltrain_dostring(l, "assert(x:matmul(x):amax():item() == 300)", "s")) _exit(6);
  _exit(0);
}

static void products_need_room_for_code(void **state) {
  (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  skip(); /* a sanitizer's shadow is larger than any limit */
#endif
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) multiply_without_room();
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fail_msg("wait status %d", status);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_state_is_not_closed_by_its_callbacks),
      cmocka_unit_test(a_state_is_not_closed_by_memory_that_it_gives_back),
      cmocka_unit_test(a_config_that_would_be_ignored_is_refused),
      cmocka_unit_test(tensors_are_given_back_once_and_to_their_state),
      cmocka_unit_test(what_the_host_has_is_known),
      cmocka_unit_test(a_message_can_be_passed_on),
      cmocka_unit_test(no_file_is_longer_than_memory),
      cmocka_unit_test(each_value_of_a_string_counts),
      cmocka_unit_test(lua_s_libraries_lift_no_budget),
      cmocka_unit_test(scopes_that_are_lost_stay),
      cmocka_unit_test(a_thread_needs_a_stack),
      cmocka_unit_test(a_signal_handler_cancels),
      cmocka_unit_test(a_signal_finds_a_stack),
      cmocka_unit_test(products_need_room_for_code),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
