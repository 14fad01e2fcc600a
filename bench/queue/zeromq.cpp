// The transport ZeroMQ over ipc://. One pair of sockets carries the messages in both directions.
#include <unistd.h>
#include <zmq.h>

#include <cstring>

#include "transport.hpp"

namespace forksight::bench {
namespace {

class ZeroMq final : public Transport {
 public:
  void prepare(const Shape& shape) override {
    shape_ = shape;
    address_ = "ipc:///tmp/" + shape.name + ".zmq";
  }
  void join(Side side) override {
    void* const context = zmq_ctx_new();
    socket_ = zmq_socket(context, ZMQ_PAIR);
    const int depth = static_cast<int>(shape_.depth);
    zmq_setsockopt(socket_, ZMQ_SNDHWM, &depth, sizeof depth);
    zmq_setsockopt(socket_, ZMQ_RCVHWM, &depth, sizeof depth);
    must(side == Side::kFirst ? zmq_bind(socket_, address_.c_str()) : zmq_connect(socket_, address_.c_str()), "zmq");
    // Each side sends and receives one message, so that both are connected afterwards.
    char met = 0;
    must(zmq_send(socket_, &met, 1, 0), "zmq_send");
    must(zmq_recv(socket_, &met, 1, 0), "zmq_recv");
    if (side == Side::kFirst) unlink(address_.c_str() + std::strlen("ipc://"));
  }
  void* loan() override {
    must(zmq_msg_init_size(&out_, shape_.bytes), "zmq_msg_init_size");
    return zmq_msg_data(&out_);
  }
  void send() override { must(zmq_msg_send(&out_, socket_, 0), "zmq_msg_send"); }
  const void* receive() override {
    zmq_msg_init(&in_);
    must(zmq_msg_recv(&in_, socket_, 0), "zmq_msg_recv");
    return zmq_msg_data(&in_);
  }
  void release() override { zmq_msg_close(&in_); }

 private:
  Shape shape_;
  std::string address_;
  void* socket_ = nullptr;
  zmq_msg_t out_{}, in_{};
};

const Registered kZeroMq{{"ZeroMQ ipc", [] { return std::make_unique<ZeroMq>(); }, true, false, false}};

}  // namespace
}  // namespace forksight::bench
