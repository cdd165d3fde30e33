/* lua/bind/system/proc.h: reads facts of other processes from /proc. */
#ifndef LT_BIND_SYSTEM_PROC_H
#define LT_BIND_SYSTEM_PROC_H

#include <stdbool.h>
#include <sys/types.h>

enum { LT_PROC_MOST = 256 };

/* The children of a process, zombies too: how many; -1 when the kernel does not report it. */
int lt_proc_children(pid_t pid, long children[LT_PROC_MOST]);

/* How many of them are alive and run the same program as this process. */
int lt_proc_alike(pid_t pid);

/* How many connections over TCP a process has. */
int lt_proc_connections(pid_t pid);

#endif
