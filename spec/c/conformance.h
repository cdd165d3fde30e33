/* spec/c/conformance.h: what tests that run comm_conformance in processes share. */
#ifndef LT_C_CONFORMANCE_H
#define LT_C_CONFORMANCE_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The folder of this program, where comm_conformance is too. */
static inline const char *own_folder(void) {
  static char folder[1024];
  ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 1);
  folder[n > 0 ? n : 0] = '\0';
  char *slash = strrchr(folder, '/');
  if (slash != NULL) *slash = '\0';
  return folder;
}

/* Exit status of a shell command. */
__attribute__((format(printf, 1, 2))) static inline int shell(const char *format, ...) {
  char command[4096];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(command, sizeof command, format, arguments);
  va_end(arguments);
  fflush(NULL);
  int status = system(command);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

#endif
