/* A library that exports sem_post() with a symbol version that glibc does not have. */
int sem_post(void* semaphore);
int sem_post(void* semaphore) { return semaphore == 0; }
