// A library with a lock, and with handlers that guard the lock as POSIX advises. It is built twice, with NAME=ledger
// and with NAME=journal.
#include <pthread.h>

#define PASTE_(one, other) one##other
#define PASTE(one, other) PASTE_(one, other)

void PASTE(NAME, _start)(void);
void PASTE(NAME, _begin)(void);
void PASTE(NAME, _end)(void);

pthread_mutex_t PASTE(NAME, _lock) = PTHREAD_MUTEX_INITIALIZER;
static unsigned PASTE(NAME, _forks);

static void PASTE(NAME, _prepare)(void) {
  pthread_mutex_lock(&PASTE(NAME, _lock));  // MARK: prepare
  ++PASTE(NAME, _forks);
}

static void PASTE(NAME, _release)(void) { pthread_mutex_unlock(&PASTE(NAME, _lock)); }

void PASTE(NAME, _start)(void) { pthread_atfork(PASTE(NAME, _prepare), PASTE(NAME, _release), PASTE(NAME, _release)); }

void PASTE(NAME, _begin)(void) {
  pthread_mutex_lock(&PASTE(NAME, _lock));  // MARK: begin
  ++PASTE(NAME, _forks);
}

void PASTE(NAME, _end)(void) { pthread_mutex_unlock(&PASTE(NAME, _lock)); }
