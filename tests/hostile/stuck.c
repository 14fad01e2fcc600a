// A library with one function. The function reads from a pipe until its end, but the end never comes, because the
// process itself has the pipe open for writing.
#include <unistd.h>

int stuck(int fd);

int stuck(int fd) {
  char byte = 0;
  long got = read(fd, &byte, 1);
  return (int)got + byte;
}
