// A fuzz target for libFuzzer. The target changes the bytes of a queue that is in use. Each byte is combined with a
// byte of the input by exclusive or. Then the target attaches to that queue and uses it. The first byte of the input
// chooses three things: the policy after a death, whether the checksum of the header is corrected, and whether the
// handle gets descriptors for an event loop. With descriptors, two threads read the segment while the target uses it.
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "crc32c.hpp"
#include "invariants.hpp"
#include "layout.hpp"

namespace forksight::ipc {
namespace {

void use(queue& one) {
  (void)one.send_copy("x", 1, deadline::now());
  auto got = one.receive(deadline::now());
  if (got) {
    volatile char sum = 0;
    for (std::size_t i = 0; i < got->size(); ++i)
      sum = static_cast<char>(sum + static_cast<const char*>(got->data())[i]);
    (void)got->release();
  }
  if (auto second = one.receive(deadline::now()); second) (void)second->park();
  (void)one.receive_parked();
  (void)one.requeue();
  (void)one.acquire(deadline::now());
  (void)one.recover();
  (void)one.inspect();
}

// A queue in use. It is made once. Each run first restores its bytes.
class target {
 public:
  explicit target(on_death policy) {
    options wanted;
    wanted.slots = 4;
    wanted.buffers = 4;
    wanted.buffer_bytes = 64;
    wanted.max_participants = 4;
    wanted.spin_us = 0;
    wanted.after_death = policy;
    auto made = queue::create(wanted);
    if (!made) std::abort();
    q_ = std::move(made).value();
    for (int i = 0; i < 3; ++i) (void)q_.send_copy("abc", 3, deadline::now());
    auto held = q_.receive(deadline::now());
    if (!held) std::abort();
    held_ = std::move(held).value();
    bytes_ = test::words(q_).size();
    void* const map = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, q_.fd(), 0);
    if (map == MAP_FAILED) std::abort();
    words_ = static_cast<std::uint8_t*>(map);
    as_made_.assign(words_, words_ + bytes_);
  }

  void run(const std::uint8_t* data, std::size_t size) {
    std::memcpy(words_, as_made_.data(), bytes_);
    // The rest of the first page, after the header, is empty, so it is skipped.
    std::size_t at = 0;
    for (std::size_t i = 1; i < size && at < bytes_; ++i, ++at) {
      if (at == sizeof(detail::header)) at = detail::kPage;
      words_[at] = static_cast<std::uint8_t>(words_[at] ^ data[i]);
    }
    auto& shape = reinterpret_cast<detail::header*>(words_)->shape;
    // The destructor of a handle with a feeder waits until all messages are sent. If the queue is full and nobody
    // reads, the destructor would wait for ever. So the fuzzer never switches the feeder on.
    shape.feed = static_cast<std::uint8_t>(feed::direct);
    if ((data[0] & 2) != 0) shape.crc = detail::crc32c(&shape, offsetof(detail::geometry, crc));
    (void)inspect(q_.fd());
    auto second = queue::attach(q_.fd());
    if (second && (data[0] & 12) == 12) {
      (void)second->message_fd();
      (void)second->room_fd();
    }
    if (second) use(*second);
    use(q_);
  }

 private:
  queue q_;
  message held_;
  std::uint8_t* words_ = nullptr;
  std::size_t bytes_ = 0;
  std::vector<std::uint8_t> as_made_;
};

void run(const std::uint8_t* data, std::size_t size) {
  static target* const targets[] = {new target(on_death::drop), new target(on_death::redeliver)};
  targets[data[0] & 1]->run(data, size);
}

}  // namespace
}  // namespace forksight::ipc

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size != 0) forksight::ipc::run(data, size);
  return 0;
}
