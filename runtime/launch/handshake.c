/* runtime/launch/handshake.c: HMAC-SHA-256 over the challenges of both ends. */
#include "launch/handshake.h"

#include <string.h>
#include <sys/random.h>

#include "base/sha256.h"

/* The text of the three messages; receiving a message ends its text with a 0. */
typedef struct payload {
  unsigned char challenge[LT_CHALLENGE_BYTES], proof[LT_PROOF_BYTES], end;
} payload;

bool lt_random_bytes(void *bytes, size_t n) { return getrandom(bytes, n, 0) == (ssize_t)n; }

static void prove(const lt_handshake *h, bool coordinator, const unsigned char *token,
                  unsigned char proof[LT_PROOF_BYTES]) {
  unsigned char said[1 + sizeof *h] = {coordinator ? 'c' : 'w'};
  memcpy(said + 1, h, sizeof *h);
  lt_hmac_sha256(token, LT_TOKEN_BYTES, said, sizeof said, proof);
}

/* In the same time wherever they differ. */
static bool holds(const lt_handshake *h, bool coordinator, const unsigned char *token,
                  const unsigned char proof[LT_PROOF_BYTES]) {
  unsigned char right[LT_PROOF_BYTES], difference = 0;
  prove(h, coordinator, token, right);
  for (int i = 0; i < LT_PROOF_BYTES; i++) difference |= right[i] ^ proof[i];
  return difference == 0;
}

static void fill(lt_message *m, lt_message_kind kind, const lt_handshake *h, const payload *p) {
  *m = (lt_message){.kind = (uint8_t)kind, .rank = h->rank};
  memcpy(m->text, p, sizeof *p);
  lt_message_size(m, sizeof *p);
}

static bool take(const lt_message *m, lt_message_kind kind, payload *p) {
  if (m->kind != kind || m->bytes != offsetof(lt_message, text) + sizeof *p) return false;
  memcpy(p, m->text, sizeof *p);
  return true;
}

void lt_hello_write(lt_message *m, const lt_handshake *h) {
  payload p = {.end = 0};
  memcpy(p.challenge, h->worker, sizeof p.challenge);
  fill(m, LT_MESSAGE_HELLO, h, &p);
}

bool lt_hello_read(const lt_message *m, lt_handshake *h) {
  payload p;
  if (!take(m, LT_MESSAGE_HELLO, &p)) return false;
  h->rank = m->rank;
  memcpy(h->worker, p.challenge, sizeof h->worker);
  return true;
}

void lt_challenge_write(lt_message *m, const lt_handshake *h, const unsigned char *token) {
  payload p = {.end = 0};
  memcpy(p.challenge, h->coordinator, sizeof p.challenge);
  prove(h, true, token, p.proof);
  fill(m, LT_MESSAGE_CHALLENGE, h, &p);
}

bool lt_challenge_read(const lt_message *m, lt_handshake *h, const unsigned char *token) {
  payload p;
  if (!take(m, LT_MESSAGE_CHALLENGE, &p)) return false;
  memcpy(h->coordinator, p.challenge, sizeof h->coordinator);
  return holds(h, true, token, p.proof);
}

void lt_proof_write(lt_message *m, const lt_handshake *h, const unsigned char *token) {
  payload p = {.end = 0};
  prove(h, false, token, p.proof);
  fill(m, LT_MESSAGE_PROOF, h, &p);
}

bool lt_proof_read(const lt_message *m, const lt_handshake *h, const unsigned char *token) {
  payload p;
  return take(m, LT_MESSAGE_PROOF, &p) && holds(h, false, token, p.proof);
}
