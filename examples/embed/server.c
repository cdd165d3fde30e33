/* examples/embed/server.c: answers requests while it trains: a state in each thread.
 *
 *   cc server.c -o server -pthread $(pkg-config --cflags --libs ltrain)
 *   ./server 7000 &
 *   (echo 0.5; echo stop) | nc -N 127.0.0.1 7000
 *
 * One thread trains y = x^2 and publishes the weights after each epoch; two answer: for a line with
 * a number, what the newest weights make of it, and of which epoch they are. States share nothing:
 * weights go from one to the others as numbers, under a lock. Port 0 takes a free one. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <ltrain.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { ANSWERING = 2, MOST = 4096 };

static const char script[] =
    "local lt = require 'ltrain'\n"
    "local nn = lt.nn\n"
    "lt.seed(1)\n"
    "local net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))\n"
    "local adam = lt.optim.Adam(net:parameters(), {lr = 0.01})\n"
    "function train()\n"
    "  for _ = 1, 100 do\n"
    "    local x = lt.rand(256, 1) * 2 - 1\n"
    "    local loss = lt.mse_loss(net(x), x * x)\n"
    "    adam:zero_grad()\n"
    "    loss:backward()\n"
    "    adam:step()\n"
    "  end\n"
    "end\n"
    "function weights() return nn.utils.parameters_to_vector(net:parameters()):detach() end\n"
    "function use(vector) nn.utils.vector_to_parameters(vector, net:parameters()) end\n"
    "function answer(x)\n"
    "  local _ <close> = lt.no_grad()\n"
    "  return net(lt.tensor{{x}}):item()\n"
    "end\n";

/* The newest weights, under the lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static float newest[MOST];
static int64_t count, epoch;

static int listener;

static bool complain(const char *who, ltrain *l) {
  fprintf(stderr, "server: %s: %s\n", who, ltrain_errmsg(l));
  return false;
}

static bool publish(ltrain *l) {
  lt_tensor *t;
  if (!ltrain_call(l, "weights", ">T", &t)) return false;
  const float *data = ltrain_data(l, t, 0);
  int64_t n = lt_tensor_size(t, 0);
  pthread_mutex_lock(&lock);
  if (data != NULL && n <= MOST) {
    memcpy(newest, data, (size_t)n * sizeof *data);
    count = n;
    epoch++;
  }
  pthread_mutex_unlock(&lock);
  ltrain_release(l, t);
  return data != NULL;
}

/* Until the state is cancelled. */
static void *train(void *state) {
  ltrain *l = state;
  while (ltrain_call(l, "train", "") && publish(l)) continue;
  if (strcmp(ltrain_errmsg(l), "cancelled") != 0) complain("training", l);
  return NULL;
}

/* Takes newer weights than those of epoch *have, if there are any. */
static bool refresh(ltrain *l, int64_t *have) {
  float mine[MOST];
  pthread_mutex_lock(&lock);
  int64_t n = epoch > *have ? count : 0;
  memcpy(mine, newest, (size_t)n * sizeof *mine);
  *have = epoch;
  pthread_mutex_unlock(&lock);
  if (n == 0) return true;
  lt_tensor *t = ltrain_wrap(l, mine, LT_F32, 1, &n, NULL, NULL);
  bool ok = t != NULL && ltrain_call(l, "use", "T", t);
  if (t != NULL) ltrain_release(l, t);
  return ok;
}

static bool serve(ltrain *l, FILE *in, FILE *out, int64_t *have) {
  char line[64];
  while (fgets(line, sizeof line, in) != NULL) {
    char *end;
    double x = strtod(line, &end), y;
    if (strncmp(line, "stop", 4) == 0) return false;
    if (end == line)
      fprintf(out, "a number is wanted\n");
    else if (refresh(l, have) && ltrain_call(l, "answer", "d>d", x, &y))
      fprintf(out, "%.4f of epoch %" PRId64 "\n", y, *have);
    else
      fprintf(out, "error: %s\n", ltrain_errmsg(l));
    fflush(out);
  }
  return true;
}

static void *answer(void *state) {
  int64_t have = 0;
  bool more = true;
  const struct timeval idle = {.tv_sec = 5}; /* who says nothing for so long has gone */
  for (int fd; more && (fd = accept(listener, NULL, NULL)) >= 0;) {
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &idle, sizeof idle);
    FILE *in = fdopen(fd, "r"), *out = fdopen(dup(fd), "w");
    if (in != NULL && out != NULL) more = serve(state, in, out, &have);
    if (in != NULL) fclose(in);
    if (out != NULL) fclose(out);
  }
  shutdown(listener, SHUT_RDWR); /* the other thread stops, too */
  return NULL;
}

static bool listen_on(int port) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  socklen_t size = sizeof at;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  listener = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
  if (listener < 0 || bind(listener, (struct sockaddr *)&at, size) != 0 ||
      listen(listener, 16) != 0 || getsockname(listener, (struct sockaddr *)&at, &size) != 0) {
    fprintf(stderr, "server: port %d: %s\n", port, strerror(errno));
    return false;
  }
  printf("listening on 127.0.0.1:%d\n", ntohs(at.sin_port));
  return fflush(stdout) == 0;
}

int main(int argc, char **argv) {
  int port = argc > 1 ? atoi(argv[1]) : 7000;
  if (argc > 2 || port < 0 || port > 65535) {
    fprintf(stderr, "usage: server [PORT]\n");
    return 2;
  }
  pthread_t threads[1 + ANSWERING];
  ltrain *states[1 + ANSWERING];
  signal(SIGPIPE, SIG_IGN); /* of clients that leave early */
  for (int k = 0; k <= ANSWERING; k++) {
    states[k] = ltrain_open(NULL);
    if (states[k] == NULL || !ltrain_dostring(states[k], script, "model"))
      return !complain("model", states[k]);
  }
  if (!listen_on(port)) return 1;
  for (int k = 0; k <= ANSWERING; k++)
    pthread_create(&threads[k], NULL, k == 0 ? train : answer, states[k]);
  for (int k = 1; k <= ANSWERING; k++) pthread_join(threads[k], NULL);
  ltrain_cancel(states[0]);
  pthread_join(threads[0], NULL);
  for (int k = 0; k <= ANSWERING; k++) ltrain_close(states[k]);
  printf("stopped after %" PRId64 " epochs\n", epoch);
  return 0;
}
