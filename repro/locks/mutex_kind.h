// Makes a mutex of the kind that a variant chooses by the macros TYPE, ROBUST and PROTOCOL. If a macro is not defined,
// the mutex has the default for this property.
#pragma once

#include <pthread.h>

#ifndef TYPE
#define TYPE PTHREAD_MUTEX_NORMAL
#endif
#ifndef ROBUST
#define ROBUST PTHREAD_MUTEX_STALLED
#endif
#ifndef PROTOCOL
#define PROTOCOL PTHREAD_PRIO_NONE
#endif

static inline void make_mutex_of_kind(pthread_mutex_t* mutex) {
  pthread_mutexattr_t kind;
  pthread_mutexattr_init(&kind);
  pthread_mutexattr_settype(&kind, TYPE);
  pthread_mutexattr_setrobust(&kind, ROBUST);
  pthread_mutexattr_setprotocol(&kind, PROTOCOL);
  pthread_mutex_init(mutex, &kind);
}
