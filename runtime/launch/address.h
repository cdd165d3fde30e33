/* runtime/launch/address.h: the addresses on which rank 0 listens. */
#ifndef LT_LAUNCH_ADDRESS_H
#define LT_LAUNCH_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LT_ADDRESSES = 8 };

typedef struct lt_address {
  uint32_t bytes;            /* of the address; 0: none */
  unsigned char address[28]; /* a sockaddr_in or sockaddr_in6 */
} lt_address;

/* The addresses of this host, the loopback's first. Then, unless `alone` (all ranks are on this
   host): those in the networks of the addresses in `network`, a list with commas (NULL: not known),
   or, if there are none, those of all interfaces that are up. */
void lt_address_find(lt_address addresses[LT_ADDRESSES], bool alone, const char *network);

/* Listen on each of them: sets the descriptors, and the ports in the addresses. An address that
   cannot be used is cleared; false, with errno, when none is left. */
bool lt_address_listen(lt_address addresses[LT_ADDRESSES], int fds[LT_ADDRESSES]);

/* "10.0.0.1 port 4321, ..." */
void lt_address_text(const lt_address addresses[LT_ADDRESSES], char *text, size_t size);

/* The same of the other end of a connection. */
void lt_address_peer_text(int fd, char *text, size_t size);

#endif
