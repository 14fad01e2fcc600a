/* Annotations for locks that a program implements itself: spin locks, futex locks, reader-writer locks. If the program
 * runs under forksight, the annotations tell forksight which thread holds the lock. Otherwise each annotation costs one
 * load and one branch that is never taken. The program needs no library of forksight. For C99 and C++, GCC and Clang.
 *
 *   void lock(struct my_lock* l) {
 *     if (!try_fast(l)) {
 *       FORKSIGHT_LOCK_WAITING(l, "my_lock");      before the thread sleeps or spins
 *       wait_until_mine(l);
 *     }
 *     FORKSIGHT_LOCK_ACQUIRED(l, "my_lock");       the thread has it
 *   }
 *   void unlock(struct my_lock* l) {
 *     FORKSIGHT_LOCK_RELEASED(l);                  before anybody else can have it
 *     ...
 *   }
 *
 * The address identifies the lock. The text is the name of this kind of lock in reports. It must be a constant, or must
 * live as long as the program. A lock must be released by the thread that acquired it. All annotations are
 * async-signal-safe, keep errno, and may be called in a forked child. None of them blocks.
 */
#ifndef FORKSIGHT_ANNOTATE_H
#define FORKSIGHT_ANNOTATE_H

/* Flags of an acquisition. */
#define FORKSIGHT_EXCLUSIVE 0U
#define FORKSIGHT_SHARED 1U /* a reader: others may read at the same time */
#define FORKSIGHT_TIMED 2U  /* the wait has a deadline; when the deadline passes, call FORKSIGHT_LOCK_GAVE_UP */

#ifdef __cplusplus
extern "C" {
#endif

/* Exported by libforksight.so; call them through the macros below. */
void forksight_lock_waiting(const volatile void* lock, const char* name, unsigned flags) __attribute__((weak));
void forksight_lock_acquired(const volatile void* lock, const char* name, unsigned flags) __attribute__((weak));
void forksight_lock_released(const volatile void* lock) __attribute__((weak));
void forksight_lock_gave_up(const volatile void* lock) __attribute__((weak));

#ifdef __cplusplus
}
#endif

/* Finds the address of a weak function; 0 without the shim. In a program for a fixed address (-no-pie), the linker
 * would replace the plain address by 0. So the address is read from the global offset table, which the loader fills in
 * when the program starts. */
#if defined(__x86_64__) && defined(__ELF__)
#define FORKSIGHT_FIND_(function, pointer) \
  __asm__(".weak " #function "\n\tmovq " #function "@GOTPCREL(%%rip), %0" : "=r"(pointer))
#else
#define FORKSIGHT_FIND_(function, pointer) ((pointer) = function)
#endif

#define FORKSIGHT_CALL_(function, arguments)                            \
  do {                                                                  \
    __typeof__(&function) forksight_function_;                          \
    FORKSIGHT_FIND_(function, forksight_function_);                     \
    if (__builtin_expect(!!forksight_function_, 0)) {                   \
      forksight_function_ arguments;                                    \
      __asm__ volatile(""); /* no tail call: the caller must be seen */ \
    }                                                                   \
  } while (0)

/* With flags: FORKSIGHT_SHARED for readers, FORKSIGHT_TIMED for a wait with a deadline. */
#define FORKSIGHT_LOCK_WAITING_AS(lock, name, flags) FORKSIGHT_CALL_(forksight_lock_waiting, ((lock), (name), (flags)))
#define FORKSIGHT_LOCK_ACQUIRED_AS(lock, name, flags) \
  FORKSIGHT_CALL_(forksight_lock_acquired, ((lock), (name), (flags)))

/* The thread found the lock taken and is about to wait for it. */
#define FORKSIGHT_LOCK_WAITING(lock, name) FORKSIGHT_LOCK_WAITING_AS(lock, name, FORKSIGHT_EXCLUSIVE)
/* The thread has the lock now, with or without a wait. Call this macro once for each release. */
#define FORKSIGHT_LOCK_ACQUIRED(lock, name) FORKSIGHT_LOCK_ACQUIRED_AS(lock, name, FORKSIGHT_EXCLUSIVE)
/* The thread is about to release the lock. */
#define FORKSIGHT_LOCK_RELEASED(lock) FORKSIGHT_CALL_(forksight_lock_released, ((lock)))
/* A wait that FORKSIGHT_LOCK_WAITING announced has ended without the lock. */
#define FORKSIGHT_LOCK_GAVE_UP(lock) FORKSIGHT_CALL_(forksight_lock_gave_up, ((lock)))

#endif
