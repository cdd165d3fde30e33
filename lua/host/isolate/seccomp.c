/* lua/host/isolate/seccomp.c: resource limits and a list of the system calls that are allowed.

   All other calls fail with EPERM, so that the library reports them as it reports any failure; a
   call by the numbers of another architecture ends the process.

   seccomp filters (Linux: Documentation/userspace-api/seccomp_filter.rst) are inherited by all
   threads (TSYNC) and cannot be taken off again. A list of what is allowed, not of what is
   forbidden: new system calls of later kernels are closed by default. */
#include "host/isolate/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define HERE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define HERE AUDIT_ARCH_AARCH64
#else
#define HERE 0
#endif

enum { X32 = 0x40000000 }; /* numbers of x86-64's other calls begin here */

/* None takes a path. There is one socket, which is connected: sendto sends to nobody else. oneDNN
   writes code, and makes it executable. */
static const unsigned allowed[] = {
    SYS_mmap,          SYS_mprotect,
    SYS_read,          SYS_sendto,          SYS_ppoll,       SYS_close,
    SYS_munmap,        SYS_mremap,          SYS_madvise,     SYS_brk,
    SYS_futex,         SYS_rseq,            SYS_membarrier,  SYS_sched_yield,
    SYS_clock_gettime, SYS_clock_nanosleep, SYS_nanosleep,   SYS_gettimeofday,
    SYS_getpid,        SYS_gettid,          SYS_getrandom,   SYS_sched_getaffinity,
    SYS_rt_sigaction,  SYS_rt_sigprocmask,  SYS_rt_sigreturn, SYS_sigaltstack,
    SYS_exit,          SYS_exit_group,      SYS_restart_syscall,
#ifdef SYS_poll
    SYS_poll,
#endif
};

enum { MOST = 2 * sizeof allowed / sizeof *allowed + 16 };

typedef struct filter {
  struct sock_filter code[MOST];
  unsigned short n;
} filter;

/* A jump's offsets count instructions from the next one. */
static void add(filter *f, int code, size_t value, uint8_t yes, uint8_t no) {
  f->code[f->n++] = (struct sock_filter){(uint16_t)code, yes, no, (uint32_t)value};
}

/* The architecture comes first: the same numbers mean other calls in 32-bit mode, a known way
   around a filter; x86-64's x32 numbers are refused for the same reason. The list is searched in
   order, some thirty comparisons a call at most. */
static void make_filter(filter *f) {
  f->n = 0;
  add(f, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
  add(f, BPF_JMP | BPF_JEQ | BPF_K, HERE, 1, 0);
  add(f, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
  add(f, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
  add(f, BPF_JMP | BPF_JGE | BPF_K, X32, 0, 1);
  add(f, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
  for (size_t k = 0; k < sizeof allowed / sizeof *allowed; k++) {
    add(f, BPF_JMP | BPF_JEQ | BPF_K, allowed[k], 0, 1);
    add(f, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
  }
  add(f, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM, 0, 0);
}

static bool limit(int resource, rlim_t most) {
  struct rlimit r = {most, most};
  return setrlimit((__rlimit_resource_t)resource, &r) == 0;
}

/* Bytes of address space in use; 0: not known. */
static size_t address_space(void) {
  char text[100] = "";
  int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
  if (fd >= 0) close(fd);
  return n <= 0 ? 0 : strtoul(text, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

/* Limits on the process come before the filter, which forbids setrlimit; NO_NEW_PRIVS is what the
   kernel demands for filters without privileges. Whatever fails is named, and the state is not
   opened: a sandbox with a part missing is none. */
bool lt_isolate_seal(size_t memory, char *text, size_t size) {
  filter f;
  const char *what = NULL;
  size_t used = address_space();
  errno = ENOSYS;
  if (HERE == 0) what = "a list of system calls for this processor";
  else if (used == 0) what = "reading /proc/self/statm";
  else if (!limit(RLIMIT_AS, used + memory)) what = "RLIMIT_AS";
  else if (!limit(RLIMIT_NPROC, 0)) what = "RLIMIT_NPROC";
  else if (!limit(RLIMIT_FSIZE, 0)) what = "RLIMIT_FSIZE";
  else if (!limit(RLIMIT_CORE, 0)) what = "RLIMIT_CORE";
  else if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) what = "PR_SET_NO_NEW_PRIVS";
  make_filter(&f);
  const struct sock_fprog program = {f.n, f.code};
  if (what == NULL && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                              SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
    what = "seccomp";
  if (what != NULL) snprintf(text, size, "%s: %s", what, strerror(errno));
  return what == NULL;
}
