// The transport iceoryx 2: a publisher, and a subscriber that loses no message. The daemon of iceoryx must run, because
// the messages are in its memory.
#include <unistd.h>

#include <iceoryx_posh/popo/untyped_publisher.hpp>
#include <iceoryx_posh/popo/untyped_subscriber.hpp>
#include <iceoryx_posh/popo/wait_set.hpp>
#include <iceoryx_posh/runtime/posh_runtime.hpp>
#include <optional>
#include <thread>

#include "transport.hpp"

namespace forksight::bench {
namespace {

class Iceoryx final : public Transport {
 public:
  explicit Iceoryx(bool polls) : polls_(polls) {}
  void prepare(const Shape& shape) override { shape_ = shape; }
  void join(Side side) override {
    iox::log::LogManager::GetLogManager().SetDefaultLogLevel(iox::log::LogLevel::kOff);
    const std::string me = shape_.name + "-" + std::to_string(getpid());
    iox::runtime::PoshRuntime::initRuntime(iox::RuntimeName_t(iox::cxx::TruncateToCapacity, me));
    const bool is_first = side == Side::kFirst;
    iox::popo::SubscriberOptions taking;
    taking.queueCapacity = shape_.depth;
    taking.queueFullPolicy = iox::popo::QueueFullPolicy::BLOCK_PRODUCER;
    iox::popo::PublisherOptions giving;
    giving.subscriberTooSlowPolicy = iox::popo::ConsumerTooSlowPolicy::WAIT_FOR_CONSUMER;
    in_.emplace(topic(is_first ? "back" : "there"), taking);
    out_.emplace(topic(is_first ? "there" : "back"), giving);
    if (!polls_) {
      waits_.emplace();
      if (waits_->attachState(*in_, iox::popo::SubscriberState::HAS_DATA).has_error()) fail("iceoryx: attachState");
    }
    while (!out_->hasSubscribers() || in_->getSubscriptionState() != iox::SubscribeState::SUBSCRIBED) {
      std::this_thread::yield();
    }
  }
  void* loan() override {
    for (;;) {
      auto got = out_->loan(static_cast<std::uint32_t>(shape_.bytes));
      if (!got.has_error()) return loaned_ = got.value();
      std::this_thread::yield();
    }
  }
  void send() override { out_->publish(loaned_); }
  const void* receive() override {
    for (;;) {
      auto got = in_->take();
      if (!got.has_error()) return held_ = got.value();
      if (polls_) {
        pause_cpu();
      } else {
        (void)waits_->wait();
      }
    }
  }
  void release() override { in_->release(held_); }

 private:
  iox::capro::ServiceDescription topic(const char* lane) const {
    return {"bench", iox::capro::IdString_t(iox::cxx::TruncateToCapacity, shape_.name),
            iox::capro::IdString_t(iox::cxx::TruncateToCapacity, std::string(lane))};
  }
  bool polls_;
  Shape shape_;
  std::optional<iox::popo::UntypedPublisher> out_;
  std::optional<iox::popo::UntypedSubscriber> in_;
  std::optional<iox::popo::WaitSet<2>> waits_;
  void* loaned_ = nullptr;
  const void* held_ = nullptr;
};

const Registered kWaiting{{"iceoryx, waitset", [] { return std::make_unique<Iceoryx>(false); }, false, false, true}};
const Registered kPolling{{"iceoryx, polling", [] { return std::make_unique<Iceoryx>(true); }, false, true, false}};

}  // namespace
}  // namespace forksight::bench
