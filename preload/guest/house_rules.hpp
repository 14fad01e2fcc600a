// House rules of the shim, enforced by the compiler. Include this header last, in every source file of preload/ except
// guest/text.cpp.
//   The shim runs inside of other people's processes, in fork handlers and in forked children. It may not allocate,
//   print, take libc's locks, or call a function that does one of these things. Names that are poisoned here do not
//   compile.
#pragma once

#pragma GCC poison malloc calloc realloc free posix_memalign aligned_alloc strdup
#pragma GCC poison printf fprintf snprintf sprintf vsnprintf puts fputs fopen fdopen fclose fwrite perror
#pragma GCC poison getenv setenv strerror dlsym dlvsym dlopen dlclose dl_iterate_phdr dladdr
#pragma GCC poison abort exit atexit system popen sleep usleep nanosleep raise kill signal sigaction
#pragma GCC poison localtime gmtime strftime syslog backtrace syscall
