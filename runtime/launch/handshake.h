/* runtime/launch/handshake.h: authentication of a new connection: both ends prove that they know
   the job's token.

   The token itself, which the transport gave to all ranks, is never sent: each end answers the
   other's challenge, random bytes that are used once, so that a recorded answer is useless later.
   The sender's role is part of the proof, so that no answer can be replayed to its sender. */
#ifndef LT_LAUNCH_HANDSHAKE_H
#define LT_LAUNCH_HANDSHAKE_H

#include "launch/control.h"

enum { LT_TOKEN_BYTES = 16, LT_CHALLENGE_BYTES = 16, LT_PROOF_BYTES = 32 };

typedef struct lt_handshake {
  int32_t rank; /* of the worker */
  unsigned char worker[LT_CHALLENGE_BYTES], coordinator[LT_CHALLENGE_BYTES];
} lt_handshake;

/* Fill with random bytes; false when there are none. */
bool lt_random_bytes(void *bytes, size_t n);

/* The messages: HELLO from the worker, CHALLENGE from the coordinator, PROOF from the worker; the
   token is NULL for the first. What the other end sent goes into *h: false when it is not such a
   message, or its proof is wrong. */
void lt_handshake_write(lt_message *m, lt_message_kind kind, const lt_handshake *h,
                        const unsigned char *token);
bool lt_handshake_read(const lt_message *m, lt_message_kind kind, lt_handshake *h,
                       const unsigned char *token);

#endif
