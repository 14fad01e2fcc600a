// The transport "forksight": the queue of ipc/, used through its public interface.
#include <optional>
#include <vector>

#include "forksight/ipc/queue.hpp"
#include "transport.hpp"

namespace forksight::bench {
namespace {

class Ours final : public Transport {
 public:
  void prepare(const Shape& shape) override {
    ipc::options wanted;
    wanted.slots = shape.slots != 0 ? shape.slots : shape.depth;
    wanted.buffers = wanted.slots;
    wanted.buffer_bytes = shape.bytes;
    wanted.max_participants = shape.idle + shape.processes + 1;
    wanted.spin_us = shape.spin_us == kSpinsForEver ? 1'000'000'000 : static_cast<std::int32_t>(shape.spin_us);
    wanted.after_death = shape.redelivers ? ipc::on_death::redeliver : ipc::on_death::drop;
    for (auto& lane : lanes_) {
      auto made = ipc::queue::create(wanted);
      if (!made) fail(made.error().text);
      lane = std::move(made).value();
      // The participants that are attached here do nothing. They only occupy entries of the table of participants.
      for (unsigned i = 0; i < shape.idle; ++i) {
        auto idle = ipc::queue::attach(lane.fd());
        if (!idle) fail(idle.error().text);
        idle_.push_back(std::move(idle).value());
      }
    }
  }
  void join(Side side) override {
    for (int i = 0; i < 2; ++i) {
      auto own = lanes_[i].reattach_after_fork();
      if (!own) fail(own.error().text);
      (i == 0) == (side == Side::kFirst) ? out_ = std::move(own).value() : in_ = std::move(own).value();
    }
  }
  void* loan() override {
    auto got = out_.acquire();
    if (!got) fail(got.error().text);
    loan_ = std::move(got).value();
    return loan_.data();
  }
  void send() override {
    if (auto sent = out_.send(std::move(loan_), loan_.capacity()); !sent) fail(sent.error().text);
  }
  const void* receive() override {
    auto got = in_.receive();
    if (!got) fail(got.error().text);
    message_ = std::move(got).value();
    return message_.data();
  }
  void release() override {
    if (auto done = message_.release(); !done) fail(done.error().text);
  }

 private:
  ipc::queue lanes_[2];
  std::vector<ipc::queue> idle_;
  ipc::queue out_, in_;
  ipc::loan loan_;
  ipc::message message_;
};

const Registered kOurs{{"forksight", [] { return std::make_unique<Ours>(); }, false, true, true}};

}  // namespace
}  // namespace forksight::bench
