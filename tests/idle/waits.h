// Declares the waits of several processes (families.c), and the functions of waits.c that families.c uses.
#ifndef FORKSIGHT_TESTS_IDLE_WAITS_H
#define FORKSIGHT_TESTS_IDLE_WAITS_H

#include <pthread.h>

// Each of these functions returns the result of its wait, and leaves the error of the wait in errno. `path` names a
// socket or a file.
int wait_for_live_child(const char *path);
int be_prefork_server(const char *path);
int fork_reader(const char *path);
int fork_worker_with_threads(const char *path);
int fork_worker_with_pool(const char *path);
int fork_daemon(const char *path);
int wait_for_file_lock(const char *path);

void say_ready(void);
int read_byte(int fd);
pthread_t start(void *(*routine)(void *));

#endif
