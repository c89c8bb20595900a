// A library for LD_PRELOAD that makes calls on files below ZABRA_FAULT_FOLDER fail. The file ZABRA_FAULT holds the kind of call
// (write, short, sync, rename, create) and the number of the error; while it is absent or empty all calls succeed.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

// Returns the error of a kind of call, or 0.
static int fault(const char *kind) {
  const char *path = getenv("ZABRA_FAULT");
  char text[64], name[32];
  int code = 0;
  long fd = path == NULL ? -1 : syscall(SYS_openat, AT_FDCWD, path, O_RDONLY);
  if (fd < 0) return 0;
  long length = syscall(SYS_read, fd, text, sizeof text - 1);
  syscall(SYS_close, fd);
  if (length <= 0) return 0;
  text[length] = 0;
  return sscanf(text, "%31s %d", name, &code) == 2 && strcmp(name, kind) == 0 ? code : 0;
}

static int is_inside(const char *path) {
  const char *folder = getenv("ZABRA_FAULT_FOLDER");
  return folder != NULL && strncmp(path, folder, strlen(folder)) == 0;
}

static int is_file_inside(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  long length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = 0;
  return is_inside(path);
}

// Fails a call on a descriptor, or performs it.
#define FAIL(kind, fd)                        \
  do {                                        \
    int code = fault(kind);                   \
    if (code != 0 && is_file_inside(fd)) {    \
      errno = code;                           \
      return -1;                              \
    }                                         \
  } while (0)

static size_t shortened(int fd, size_t length) {
  return length > 1 && fault("short") != 0 && is_file_inside(fd) ? length / 2 : length;
}

ssize_t write(int fd, const void *bytes, size_t length) {
  FAIL("write", fd);
  return REAL(write)(fd, bytes, shortened(fd, length));
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at) {
  FAIL("write", fd);
  return REAL(pwrite)(fd, bytes, shortened(fd, length), at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t at) {
  FAIL("write", fd);
  return REAL(pwrite64)(fd, bytes, shortened(fd, length), at);
}

// A short write of several parts writes a part of the first one.
ssize_t writev(int fd, const struct iovec *parts, int count) {
  FAIL("write", fd);
  if (count > 0 && shortened(fd, 2) == 1)
    return REAL(write)(fd, parts[0].iov_base, shortened(fd, parts[0].iov_len));
  return REAL(writev)(fd, parts, count);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t at) {
  FAIL("write", fd);
  if (count > 0 && shortened(fd, 2) == 1)
    return REAL(pwrite64)(fd, parts[0].iov_base, shortened(fd, parts[0].iov_len), at);
  return REAL(pwritev64)(fd, parts, count, at);
}

int fsync(int fd) {
  FAIL("sync", fd);
  return REAL(fsync)(fd);
}

int fdatasync(int fd) {
  FAIL("sync", fd);
  return REAL(fdatasync)(fd);
}

int rename(const char *from, const char *to) {
  int code = fault("rename");
  if (code != 0 && is_inside(to)) {
    errno = code;
    return -1;
  }
  return REAL(rename)(from, to);
}

#define OPEN(name)                                                     \
  int name(const char *path, int flags, ...) {                         \
    va_list rest;                                                      \
    va_start(rest, flags);                                             \
    int mode = va_arg(rest, int);                                      \
    va_end(rest);                                                      \
    int code = (flags & O_CREAT) != 0 ? fault("create") : 0;           \
    if (code != 0 && is_inside(path)) {                                \
      errno = code;                                                    \
      return -1;                                                       \
    }                                                                  \
    return REAL(name)(path, flags, mode);                              \
  }

OPEN(open)
OPEN(open64)
