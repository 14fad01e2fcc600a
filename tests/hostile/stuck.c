// A library whose one function waits for the end of a pipe that the process itself has open for writing.
#include <unistd.h>

int stuck(int fd);

int stuck(int fd) {
  char byte = 0;
  long got = read(fd, &byte, 1);
  return (int)got + byte;
}
