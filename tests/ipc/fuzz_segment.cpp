// For libFuzzer: what it makes is written over a queue that is in use, by exclusive or, and the queue is attached to
// and used. Its first byte chooses the policy, and whether the header's checksum is made good again.
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

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
  (void)one.acquire(deadline::now());
  (void)one.recover();
  (void)one.inspect();
}

void run(const std::uint8_t* data, std::size_t size) {
  options wanted;
  wanted.slots = 4;
  wanted.buffers = 4;
  wanted.buffer_bytes = 64;
  wanted.max_participants = 4;
  wanted.od = (data[0] & 1) != 0 ? on_death::redeliver : on_death::drop;
  auto made = queue::create(wanted);
  if (!made) std::abort();
  queue& q = *made;
  for (int i = 0; i < 3; ++i) (void)q.send_copy("abc", 3, deadline::now());
  auto held = q.receive(deadline::now());

  const std::size_t bytes = test::words(q).size();
  void* const map = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, q.fd(), 0);
  if (map == MAP_FAILED) std::abort();
  auto* const words = static_cast<std::uint8_t*>(map);
  // The first page is mostly empty.
  std::size_t at = 0;
  for (std::size_t i = 1; i < size && at < bytes; ++i, ++at) {
    if (at == sizeof(detail::header)) at = detail::kPage;
    words[at] = static_cast<std::uint8_t>(words[at] ^ data[i]);
  }
  auto& shape = static_cast<detail::header*>(map)->shape;
  // A feeder's handle waits at its end until all is sent, as it is meant to: in a full queue that nobody reads, for
  // ever.
  shape.feed = static_cast<std::uint8_t>(feed::direct);
  if ((data[0] & 2) != 0) shape.crc = detail::crc32c(&shape, offsetof(detail::geometry, crc));
  munmap(map, bytes);

  (void)inspect(q.fd());
  auto second = queue::attach(q.fd());
  if (second) use(*second);
  use(q);
}

}  // namespace
}  // namespace forksight::ipc

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size != 0) forksight::ipc::run(data, size);
  return 0;
}
