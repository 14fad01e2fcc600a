/* The queue for C, ctypes and cffi: libforksight-ipc.so. forksight/ipc/queue.hpp describes the queue.
 *
 * A function with the argument `error` returns 0, or a code of forksight_queue_code. If the code is not 0, and `error`
 * is not NULL, the function fills in `error`. Timeouts are in milliseconds. Negative: the call waits without limit. 0:
 * it does not wait.
 *
 * NULL is allowed where a comment says so. A function with the argument `error` returns BAD_OPTION for any other NULL,
 * and the text of the error names the argument. A function without `error` does nothing with NULL. It returns NULL, 0,
 * or -1 in the place of a descriptor. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum forksight_queue_code {
  FORKSIGHT_QUEUE_OK = 0,
  FORKSIGHT_QUEUE_TIMEOUT,
  FORKSIGHT_QUEUE_CLOSED,
  FORKSIGHT_QUEUE_PRODUCER_DIED,
  FORKSIGHT_QUEUE_NO_CONSUMER,
  FORKSIGHT_QUEUE_USED_AFTER_FORK,
  FORKSIGHT_QUEUE_ROLE,
  FORKSIGHT_QUEUE_EVICTED,
  FORKSIGHT_QUEUE_TOO_LARGE,
  FORKSIGHT_QUEUE_NO_SPACE,
  FORKSIGHT_QUEUE_CGROUP_LIMIT,
  FORKSIGHT_QUEUE_FD_LIMIT,
  FORKSIGHT_QUEUE_NO_PARTICIPANT,
  FORKSIGHT_QUEUE_ABI_MISMATCH,
  FORKSIGHT_QUEUE_CORRUPT,
  FORKSIGHT_QUEUE_UNTRUSTED,
  FORKSIGHT_QUEUE_NOT_FOUND,
  FORKSIGHT_QUEUE_BAD_OPTION,
  FORKSIGHT_QUEUE_SYSTEM,
  FORKSIGHT_QUEUE_CANCELLED,
  FORKSIGHT_QUEUE_UNDELIVERED
};

struct forksight_queue_error {
  int32_t code;      /* of forksight_queue_code */
  int32_t sys_errno; /* 0: none */
  uint32_t pid;      /* the process that the error is about; 0: none */
  char text[500];    /* a longer text is cut */
};

/* All zero: the defaults of forksight::ipc::options. */
struct forksight_queue_options {
  uint32_t slots, buffers;
  uint64_t buffer_bytes;
  uint32_t named;     /* 1: strategy::named */
  uint32_t thread;    /* 1: feed::thread */
  uint32_t redeliver; /* 1: on_death::redeliver */
  uint32_t full;      /* 0: block, 1: fail, 2: drop_oldest */
  uint32_t max_redeliver, max_participants;
  int32_t spin_us; /* 0: the default; -1: none */
  uint32_t atfork_handlers;
  uint32_t unlink_at; /* 0: never */
};

/* How many producers and consumers the queue expects. All zero: it is not known. */
struct forksight_queue_expected {
  uint32_t producers, consumers; /* how many handles will be producers or consumers in total; 0: not known */
  uint32_t grace_ms;             /* how long to wait for another producer or consumer after the last one has ended */
};

typedef struct forksight_queue forksight_queue;
/* A loan ends when it is sent or given back. */
typedef struct forksight_loan forksight_loan;
typedef struct forksight_message forksight_message;

enum forksight_queue_role {
  FORKSIGHT_QUEUE_ANY = 0,
  FORKSIGHT_QUEUE_PRODUCER = 1,
  FORKSIGHT_QUEUE_CONSUMER = 2,
  FORKSIGHT_QUEUE_CARETAKER = 3 /* looks after parked messages; can neither send nor receive */
};

int forksight_queue_create(const struct forksight_queue_options* options, forksight_queue** queue,
                           struct forksight_queue_error* error);
/* Attaches to the queue of that name, or creates it if there is none. Of the processes that call this at the same time,
 * exactly one creates the queue. `name`: 1 to 64 letters, digits, '.', '_' and '-'. It does not begin with '.', and is
 * not 32 hex digits. The file is /dev/shm/forksight-NAME. `options`: NULL is all zero; `named` is ignored. If the queue
 * exists, it must have the same options, apart from spin_us. Otherwise the error is BAD_OPTION, and its text names the
 * option that differs. If the file with that name is not a queue, the error is UNTRUSTED. */
int forksight_queue_open_or_create(const char* name, const struct forksight_queue_options* options, int role,
                                   forksight_queue** queue, struct forksight_queue_error* error);
/* These two functions do the same as forksight_queue_create() and forksight_queue_open_or_create(). They are for
 * producers and consumers that a supervisor starts later, or starts again. Calls return CLOSED, PRODUCER_DIED and
 * NO_CONSUMER only after the expected number of producers or consumers has ended, and the grace time is over.
 * forksight/ipc/options.hpp names the exceptions. `expected`: NULL is all zero. */
int forksight_queue_create_expecting(const struct forksight_queue_options* options,
                                     const struct forksight_queue_expected* expected, forksight_queue** queue,
                                     struct forksight_queue_error* error);
int forksight_queue_open_or_create_expecting(const char* name, const struct forksight_queue_options* options,
                                             const struct forksight_queue_expected* expected, int role,
                                             forksight_queue** queue, struct forksight_queue_error* error);
/* Attaches to the queue behind the descriptor. The caller keeps the descriptor. */
int forksight_queue_attach(int fd, int role, forksight_queue** queue, struct forksight_queue_error* error);
/* As forksight_queue_attach(), for a queue whose creator has set options::readonly_payload in C++. Such a queue has two
 * descriptors: the one of forksight_queue_fd(), and the one of its payload. `payload_fd`: -1 if the queue has none. */
int forksight_queue_attach_with_payload(int fd, int payload_fd, int role, forksight_queue** queue,
                                        struct forksight_queue_error* error);
int forksight_queue_attach_named(const char* name, int role, forksight_queue** queue,
                                 struct forksight_queue_error* error);
/* In a forked child: makes a handle for the child. The child should also close the inherited handle when it no longer
 * needs that handle. */
int forksight_queue_reattach_after_fork(const forksight_queue* parents, forksight_queue** queue,
                                        struct forksight_queue_error* error);
/* NULL is allowed. Loans and messages that the program still has keep the memory that they need. */
void forksight_queue_close(forksight_queue* queue);

int forksight_queue_fd(const forksight_queue* queue);
/* -1: the queue has no payload of its own. */
int forksight_queue_payload_fd(const forksight_queue* queue);
/* Returns the length of the name without its NUL; 0: there is no name. Writes the name and its NUL if `size` suffices.
 * `name` may be NULL. */
size_t forksight_queue_name(const forksight_queue* queue, char* name, size_t size);
uint64_t forksight_queue_buffer_bytes(const forksight_queue* queue);
/* Makes the handle a producer or a consumer now. Without this call, its first acquire() or receive() does that. */
int forksight_queue_take_role(forksight_queue* queue, int role, struct forksight_queue_error* error);

int forksight_queue_acquire(forksight_queue* queue, int64_t timeout_ms, forksight_loan** loan,
                            struct forksight_queue_error* error);
void* forksight_loan_data(const forksight_loan* loan);
uint64_t forksight_loan_capacity(const forksight_loan* loan);
/* OK: `loan` is freed. Otherwise the caller keeps it. */
int forksight_queue_send(forksight_queue* queue, forksight_loan* loan, uint64_t bytes, int64_t timeout_ms,
                         struct forksight_queue_error* error);
/* Gives the buffer back to the pool, unsent. NULL is allowed. */
void forksight_loan_give_back(forksight_loan* loan);
/* `data` may be NULL if `bytes` is 0. */
int forksight_queue_send_copy(forksight_queue* queue, const void* data, uint64_t bytes, int64_t timeout_ms,
                              struct forksight_queue_error* error);

int forksight_queue_receive(forksight_queue* queue, int64_t timeout_ms, forksight_message** message,
                            struct forksight_queue_error* error);
const void* forksight_message_data(const forksight_message* message);
uint64_t forksight_message_size(const forksight_message* message);
uint32_t forksight_message_producer(const forksight_message* message);
uint32_t forksight_message_deliveries(const forksight_message* message);
/* The position of the message in the order in which all messages of the queue were sent, modulo 2^32. */
uint32_t forksight_message_number(const forksight_message* message);
/* Gives the buffer back to the pool. NULL is allowed. */
void forksight_message_release(forksight_message* message);

/* Descriptors for poll() and epoll: readable while receive() or acquire() with a timeout of 0 would return anything but
 * TIMEOUT. A descriptor belongs to the handle, and ends with it. Do not read or write it. forksight/ipc/queue.hpp says
 * more. */
int forksight_queue_message_fd(forksight_queue* queue, int* fd, struct forksight_queue_error* error);
int forksight_queue_room_fd(forksight_queue* queue, int* fd, struct forksight_queue_error* error);

/* Parked messages are those that killed max_redeliver + 1 consumers, and those that a consumer parked. The next four
 * functions are for such messages. All four may return USED_AFTER_FORK, EVICTED and CORRUPT. The first two may also return
 * CANCELLED.
 *
 * Takes the oldest parked message, without waiting. This does not count as a delivery. TIMEOUT: no message is parked.
 * If this process dies before it has released, parked or requeued the message, the message is parked again. */
int forksight_queue_receive_parked(forksight_queue* queue, forksight_message** message,
                                   struct forksight_queue_error* error);
/* Makes receive() deliver all parked messages again, and sets their numbers of deliveries to 0. `count`, if it is not
 * NULL, gets the number of messages. */
int forksight_queue_requeue(forksight_queue* queue, size_t* count, struct forksight_queue_error* error);
/* Parks a message that a consumer cannot handle, or parks a message of receive_parked() again. OK: `message` is freed.
 * Otherwise the caller keeps `message`. After EVICTED and CORRUPT, `message` is empty: it has no data, and its size is
 * 0. */
int forksight_message_park(forksight_message* message, struct forksight_queue_error* error);
/* Requeues one message of receive_parked(): receive() delivers it again. For another message, the error is BAD_OPTION.
 * OK: `message` is freed. Otherwise the caller keeps `message`. After EVICTED and CORRUPT, `message` is empty. */
int forksight_message_requeue(forksight_message* message, struct forksight_queue_error* error);

/* For a queue with `thread`: what became of the messages that send_copy() of this handle has accepted. The messages
 * have the numbers 0, 1, 2, ... See forksight/ipc/delivery.hpp. */
struct forksight_queue_delivery {
  uint64_t accepted;
  uint64_t sent; /* taken into the queue */
  uint64_t lost; /* not taken into the queue, and never will be */
  uint64_t pending;
  uint64_t first_lost, first_lost_count; /* the first range of numbers that were lost, if lost is not 0 */
};
/* If `told` is not NULL, flush() and close_producer() fill in `told`, whatever they return. UNDELIVERED: some messages
 * were lost. After TIMEOUT the feeder goes on, and the call may be repeated. */
int forksight_queue_flush(forksight_queue* queue, int64_t timeout_ms, struct forksight_queue_delivery* told,
                          struct forksight_queue_error* error);
/* After this call, the handle cannot send. */
int forksight_queue_close_producer(forksight_queue* queue, int64_t timeout_ms, struct forksight_queue_delivery* told,
                                   struct forksight_queue_error* error);
/* Makes each call that waits on this handle, in any thread, return CANCELLED. Every later call that would send or
 * receive also returns CANCELLED. Async-signal-safe, as long as no other thread closes the handle. */
void forksight_queue_cancel(const forksight_queue* queue);
void forksight_queue_shutdown(forksight_queue* queue, int drain);
/* Looks for dead participants, and gives the others what the dead ones held. Returns how many participants were found
 * dead. */
size_t forksight_queue_recover(forksight_queue* queue);
/* Removes the names of queues that no process has open, as `forksight queue gc` does. dry_run: removes nothing.
 * `count`, if it is not NULL, gets the number of these queues. */
int forksight_queue_gc(int dry_run, size_t* count, struct forksight_queue_error* error);
/* These two functions pass a queue over a connected AF_UNIX socket. */
int forksight_queue_send_to(int socket, const forksight_queue* queue, int64_t timeout_ms,
                            struct forksight_queue_error* error);
int forksight_queue_receive_from(int socket, int role, int64_t timeout_ms, forksight_queue** queue,
                                 struct forksight_queue_error* error);

#ifdef __cplusplus
}
#endif
