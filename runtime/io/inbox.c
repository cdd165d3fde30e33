/* runtime/io/inbox.c: datagrams of a Unix socket.

   An address has at most 108 bytes, a path may be longer: it is reached through the number of its
   open folder.

   For commands of another process to a running fit: a datagram is one command, needs no connection,
   and is lost with the process. Only its own user and root are heard: the kernel names the sender
   (SO_PASSCRED), and the socket has mode 0600. */
#include "io/inbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "io/confined_files.h"

enum { MODE = 0600 };

static void address_in(int folder, const char *name, struct sockaddr_un *a) {
  *a = (struct sockaddr_un){.sun_family = AF_UNIX};
  snprintf(a->sun_path, sizeof a->sun_path, "/proc/self/fd/%d/%s", folder, name);
}

static int new_socket(void) {
  return socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* A socket file stays when its process is killed: connecting tells whether it is still in use. */
static bool somebody_listens(const struct sockaddr_un *a) {
  int fd = new_socket();
  bool yes = fd >= 0 && connect(fd, (const struct sockaddr *)a, sizeof *a) == 0;
  if (fd >= 0) close(fd);
  return yes;
}

static bool bind_to(int fd, const struct sockaddr_un *a) {
  return bind(fd, (const struct sockaddr *)a, sizeof *a) == 0;
}

int lt_inbox_open(lt_ctx *c, const char *op, const char *folder, const char *name) {
  struct sockaddr_un a;
  int below = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = new_socket(), on = 1;
  address_in(below, name, &a);
  /* The mode of a socket is that of the name which it gets. */
  bool ok = below >= 0 && fd >= 0 && fchmod(fd, MODE) == 0 &&
            setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0;
  if (ok && !bind_to(fd, &a)) {
    struct stat info;
    ok = errno == EADDRINUSE && !somebody_listens(&a);
    if (!ok) errno = EADDRINUSE;
    ok = ok && fstatat(below, name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISSOCK(info.st_mode) && unlinkat(below, name, 0) == 0 && bind_to(fd, &a);
  }
  if (!ok) lt_fail(c, LT_EIO, "%s: cannot listen at %s/%s: %s", op, folder, name, strerror(errno));
  if (below >= 0) close(below);
  if (ok) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

/* The next command from an allowed sender; others are read and dropped. */
bool lt_inbox_take(int fd, char word[LT_INBOX_WORD]) {
  for (;;) {
    union {
      char bytes[CMSG_SPACE(sizeof(struct ucred))];
      struct cmsghdr aligned;
    } control;
    struct iovec data = {.iov_base = word, .iov_len = LT_INBOX_WORD - 1};
    struct msghdr m = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control.bytes,
                       .msg_controllen = sizeof control.bytes};
    ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0) return false;
    word[n] = 0;
    for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h != NULL; h = CMSG_NXTHDR(&m, h)) {
      if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_CREDENTIALS) continue;
      struct ucred who;
      memcpy(&who, CMSG_DATA(h), sizeof who);
      if (who.uid == geteuid() || who.uid == 0) return true;
    }
  }
}

void lt_inbox_close(int fd, const char *folder, const char *name) {
  int below = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (below >= 0) {
    unlinkat(below, name, 0);
    close(below);
  }
  close(fd);
}

bool lt_inbox_send(lt_ctx *c, const char *op, const char *root, const char *path,
                   const char *name, const char *word) {
  struct stat info;
  struct sockaddr_un a;
  int below = lt_below_open(c, op, root, path, &info);
  if (below < 0) return false;
  address_in(below, name, &a);
  int fd = new_socket();
  bool ok = fstatat(below, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(info.st_mode) &&
            fd >= 0 && connect(fd, (const struct sockaddr *)&a, sizeof a) == 0;
  if (ok && word != NULL)
    ok = send(fd, word, strlen(word), MSG_NOSIGNAL) == (ssize_t)strlen(word);
  if (!ok) lt_fail(c, LT_EIO, "%s: no process is listening in %s/%s", op, root, path);
  close(below);
  if (fd >= 0) close(fd);
  return ok;
}
