// Two transports of Boost.Interprocess: message_queue, which copies messages, and a variant in which the messages are
// the numbers of buffers in a pool.
#include <boost/interprocess/ipc/message_queue.hpp>
#include <optional>
#include <vector>

#include "transport.hpp"

namespace forksight::bench {
namespace {

namespace bip = boost::interprocess;

class Queue {
 public:
  void create(const std::string& name, std::size_t depth, std::size_t bytes) {
    bip::message_queue::remove(name.c_str());
    queue_.emplace(bip::create_only, name.c_str(), depth, bytes);
    // All processes that use the queue are forked later, so no process needs the name.
    bip::message_queue::remove(name.c_str());
  }
  void put(const void* data, std::size_t bytes) { queue_->send(data, bytes, 0); }
  void get(void* data, std::size_t room) {
    bip::message_queue::size_type got = 0;
    unsigned priority = 0;
    queue_->receive(data, room, got, priority);
  }

 private:
  std::optional<bip::message_queue> queue_;
};

class Copying final : public Transport {
 public:
  void prepare(const Shape& shape) override {
    bytes_ = shape.bytes;
    for (int i = 0; i < 2; ++i) lanes_[i].create(shape.name + std::to_string(i), shape.depth, bytes_);
  }
  void join(Side side) override {
    out_ = side == Side::kFirst ? 0 : 1;
    written_.resize(bytes_);
    read_.resize(bytes_);
  }
  void* loan() override { return written_.data(); }
  void send() override { lanes_[out_].put(written_.data(), bytes_); }
  const void* receive() override {
    lanes_[1 - out_].get(read_.data(), bytes_);
    return read_.data();
  }
  void release() override {}

 private:
  std::size_t bytes_ = 0;
  Queue lanes_[2];
  int out_ = 0;
  std::vector<char> written_, read_;
};

class Pooled final : public Transport {
 public:
  void prepare(const Shape& shape) override {
    stride_ = (shape.bytes + 4095) & ~std::size_t{4095};
    for (int i = 0; i < 2; ++i) {
      lanes_[i].full.create(shape.name + std::to_string(i), shape.depth, sizeof(std::uint32_t));
      lanes_[i].free.create(shape.name + std::to_string(i) + "-free", shape.depth, sizeof(std::uint32_t));
      lanes_[i].payload = static_cast<char*>(shared_memory(stride_ * shape.depth));
      for (std::uint32_t k = 0; k < shape.depth; ++k) lanes_[i].free.put(&k, sizeof k);
    }
  }
  void join(Side side) override { out_ = side == Side::kFirst ? 0 : 1; }
  void* loan() override {
    lanes_[out_].free.get(&loaned_, sizeof loaned_);
    return lanes_[out_].payload + loaned_ * stride_;
  }
  void send() override { lanes_[out_].full.put(&loaned_, sizeof loaned_); }
  const void* receive() override {
    lanes_[1 - out_].full.get(&held_, sizeof held_);
    return lanes_[1 - out_].payload + held_ * stride_;
  }
  void release() override { lanes_[1 - out_].free.put(&held_, sizeof held_); }

 private:
  struct Lane {
    Queue full, free;
    char* payload = nullptr;
  };
  std::size_t stride_ = 0;
  Lane lanes_[2];
  int out_ = 0;
  std::uint32_t loaned_ = 0, held_ = 0;
};

const Registered kCopying{{"Boost message_queue", [] { return std::make_unique<Copying>(); }, true, false, true}};
const Registered kPooled{{"Boost, with a pool", [] { return std::make_unique<Pooled>(); }, false, false, true}};

}  // namespace
}  // namespace forksight::bench
