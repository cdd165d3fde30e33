/* spec/c/host_fork_test.c: states that start processes in a host with threads of its own, one of
   which waits for its standard input, and so holds the lock of that stream. */
/* tags: threads */
#include <pthread.h>
#include <unistd.h>

#include "host_test.h"

static int input[2];

static ltrain *open_forking(void) {
  ltrain_config config = LTRAIN_CONFIG_INIT;
  config.allow = LTRAIN_FORK;
  return open_line(&config);
}

static void *read_input(void *c) {
  *(int *)c = getc(stdin);
  return NULL;
}

/* Its standard input is a pipe that stays empty until `end`. */
static pthread_t begin(int *c) {
  pthread_t reader;
  assert_int_equal(pipe(input), 0);
  assert_int_equal(dup2(input[0], STDIN_FILENO), STDIN_FILENO);
  assert_int_equal(pthread_create(&reader, NULL, read_input, c), 0);
  while (ftrylockfile(stdin) == 0) {
    funlockfile(stdin);
    usleep(1000);
  }
  alarm(60); /* the test ends, whatever hangs */
  return reader;
}

static void end(pthread_t reader, const int *c) {
  assert_int_equal(write(input[1], "x", 1), 1);
  pthread_join(reader, NULL);
  assert_int_equal(*c, 'x');
  alarm(0);
}

static void workers_read_for_it(void **state) {
  (void)state;
  int c = 0;
  ltrain *l = open_forking();
  pthread_t reader = begin(&c);
  fputs("# once\n", stdout); /* in the buffer when workers are forked */
  must(l, ltrain_dostring(l,
                          "local lt = require 'ltrain'\n"
                          "local Set, n = lt.data.Dataset:extend 'Set', 0\n"
                          "function Set:__len() return 8 end\n"
                          "function Set:get(i) return i end\n"
                          "for b in lt.data.DataLoader(Set(), {num_workers = 2}):batches() do\n"
                          "  n = n + b:item()\n"
                          "end\n"
                          "assert(n == 36, n)",
                          "workers.lua"));
  end(reader, &c);
  ltrain_close(l);
}

static void ranks_are_refused_by_name(void **state) {
  (void)state;
  int c = 0;
  ltrain *l = open_forking();
  pthread_t reader = begin(&c);
  must_say(l, ltrain_dostring(l, "require 'ltrain'.dist.launch(2, print)", "ranks.lua"),
           "cannot fork while 1 other thread runs");
  end(reader, &c);
  ltrain_close(l);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(workers_read_for_it),
      cmocka_unit_test(ranks_are_refused_by_name),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
