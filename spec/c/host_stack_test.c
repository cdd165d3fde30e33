/* spec/c/host_stack_test.c: the stack that a host's thread needs: calls between Lua and C as deep
   as Lua lets them be, on the least stack that ltrain_open takes. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "host/state.h"
#include "host_test.h"

enum { LEAST = LT_HOST_LEAST_STACK, LARGE = 16 << 20, PAINT = 0xA5 };

/* Each calls itself through a function in C until Lua says that this is too deep, and computes at
   each level. `op` is an operation, `deep` texts that are matched and read by recursion. */
static const char setup[] =
    "lt = require 'ltrain'\n"
    "local x = lt.rand(4, 4):requires_grad_()\n"
    "local text = 'return ' .. ('('):rep(60) .. '1' .. (')'):rep(60)\n"
    "local nested = ('['):rep(100) .. (']'):rep(100)\n"
    "function op()\n"
    "  pcall(function() x:matmul(x):softmax(1):sum():backward() end)\n"
    "  pcall(load, text)\n"
    "  pcall(string.find, ('a'):rep(150), ('a?'):rep(150))\n"
    "  pcall(lt.json.decode, nested)\n"
    "  pcall(string.format, '%s %g', x, 1)\n"
    "end\n";

static const char *const recursions[] = {
    "local function f() op(); ('a'):gsub('a', f) end",
    "local function f() op(); ('a'):gsub('a', setmetatable({}, {__index = f})) end",
    "local t = setmetatable({}, {__index = function(t, k) op() return t[k .. 'a'] end})\n"
    "local function f() return t.a end",
    "local function f() op() load(f) end",
    "local function f() op() load(function() f() end) end",
    "local function f() op() table.sort({2, 1}, f) end",
    "local t = setmetatable({}, {__tostring = function(t) op() return tostring(t) end})\n"
    "local function f() return tostring(t) end",
    "local t = setmetatable({}, {__tostring = function(t) op() return ('%s'):format(t) end})\n"
    "local function f() return tostring(t) end",
    "local n = 0\n"
    "local function f()\n"
    "  op()\n"
    "  n = n + 1\n"
    "  package.preload['m' .. n] = f\n"
    "  require('m' .. n)\n"
    "end",
    "local function f() op() pcall(f) end",
    "local function f() op() xpcall(error, f) end",
    "local function f() op() coroutine.wrap(f)() end",
    "local function f() op() lt.no_grad(f) end",
    "local function f() op() local t <close> = setmetatable({}, {__close = f}) end",
    "local function f() op() setmetatable({}, {__gc = f}); ('x'):rep(1 << 20) end",
    "local function f() op() for _ in ('a'):gmatch('a') do ('a'):gsub('a', f) end end",
    "local t = setmetatable({}, {__index = function(t, k) ('a'):gsub('a', function() op()\n"
    "  return t[k] end) end})\n"
    "local function f() return t.a end",
    "local function f() op(); ('a'):gsub('a', function() load(f) end) end",
    "local t = setmetatable({}, {__lt = function(a, b) op() return a < b end})\n"
    "local function f() return t < t end",
};

enum { RECURSIONS = sizeof recursions / sizeof *recursions };

static void *recurse(void *ud) {
  ltrain *l = open_with(NULL);
  const char *recursion = ud;
  must(l, ltrain_dostring(l, setup, "setup.lua"));
  char code[1024];
  snprintf(code, sizeof code, "%s\nfor _ = 1, 2 do pcall(f) end", recursion);
  must(l, ltrain_dostring(l, code, "f.lua"));
  must(l, ltrain_dostring(l, "assert(lt.ones(2):sum():item() == 2)", "after.lua"));
  ltrain_close(l);
  return NULL;
}

/* Returns how much of it was used. */
static size_t run_on(size_t size, const char *recursion) {
  pthread_attr_t attr;
  pthread_t thread;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  unsigned char *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, -1, 0);
  assert_true(stack != MAP_FAILED);
  memset(stack, PAINT, size);
  assert_int_equal(pthread_attr_init(&attr), 0);
  assert_int_equal(pthread_attr_setstack(&attr, stack, size), 0);
  assert_int_equal(pthread_create(&thread, &attr, recurse, (void *)recursion), 0);
  pthread_join(thread, NULL);
  pthread_attr_destroy(&attr);
  size_t unused = 0;
  while (unused < size && stack[unused] == PAINT) unused++;
  munmap(stack, size);
  return size - unused;
}

/* Measured on a large stack first: a fault is a number then, not the end of the tests. */
static void calls_of_any_depth_fit(void **state) {
  (void)state;
#ifdef __SANITIZE_ADDRESS__
  printf("skipped: frames are larger with sanitizers\n");
  skip();
#endif
  for (int k = 0; k < RECURSIONS; k++) {
    size_t used = run_on(LARGE, recursions[k]);
    if (getenv("LT_STACK_TRACE") != NULL)
      fprintf(stderr, "%5zu KiB: %s\n", used >> 10, recursions[k]);
    if (used > LEAST - (LEAST >> 3))
      fail_msg("%zu KiB are used by %s", used >> 10, recursions[k]);
    run_on(LEAST, recursions[k]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(calls_of_any_depth_fit)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
