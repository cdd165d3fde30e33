/* spec/c/channel_test.c: messages over a channel: streams in pieces, one that is full. */
/* tags: threads */
#include "launch_test.h"

/* A stream hands bytes over in pieces of any size. */
static void messages_are_put_together(void **state) {
  (void)state;
  static lt_message sent, got;
  static lt_channel ch;
  int ends[2];
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  lt_channel_open(&ch, ends[1], true);
  char all[4096];
  size_t used = 0;
  for (int k = 0; k < 3; k++) {
    char text[32];
    snprintf(text, sizeof text, "message %d", k);
    sent = (lt_message){.kind = LT_MESSAGE_WARN, .rank = k};
    lt_message_text(&sent, text);
    memcpy(all + used, &sent, sent.bytes);
    used += sent.bytes;
  }
  int n = 0;
  for (size_t at = 0; at < used; at += 7) {
    size_t piece = used - at < 7 ? used - at : 7;
    assert_int_equal(send(ends[0], all + at, piece, 0), (ssize_t)piece);
    while (lt_channel_receive(&ch, &got) == LT_GOT_MESSAGE) {
      char text[32];
      snprintf(text, sizeof text, "message %d", n);
      assert_int_equal(got.rank, n++);
      assert_string_equal(got.text, text);
    }
  }
  assert_int_equal(n, 3);
  uint32_t nonsense = 1 << 30;
  assert_int_equal(send(ends[0], &nonsense, sizeof nonsense, 0), sizeof nonsense);
  assert_int_equal(lt_channel_receive(&ch, &got), LT_GOT_END);
  close(ends[0]);
}

/* A full channel says so, and loses nothing of what it took. */
static void a_full_channel_says_so(void **state) {
  (void)state;
  static lt_message sent, got;
  static lt_channel from, to;
  static char text[LT_OUTCOME_TEXT];
  int ends[2], taken = 0, n = 0;
  assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
  lt_channel_open(&from, ends[0], false);
  lt_channel_open(&to, ends[1], false);
  memset(text, 'x', sizeof text - 1);
  for (bool good = true; good && taken < 10000; taken += good) {
    sent = (lt_message){.kind = LT_MESSAGE_WARN, .rank = taken};
    lt_message_text(&sent, text);
    good = lt_channel_send(&from, &sent);
  }
  assert_in_range(taken, 3, 9999);
  for (int turns = 0; n < taken && turns < 100000; turns++) {
    lt_channel_flush(&from);
    while (lt_channel_receive(&to, &got) == LT_GOT_MESSAGE) assert_int_equal(got.rank, n++);
  }
  assert_int_equal(n, taken);
  lt_channel_close(&from);
  assert_int_equal(lt_channel_receive(&to, &got), LT_GOT_END);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(messages_are_put_together),
      cmocka_unit_test(a_full_channel_says_so),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
