#include "collect/read_shares.hpp"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace forksight::collect {

using trace::RecordType;

namespace {

std::optional<model::ShareKind> kind_of(trace::ShareKind kind) {
  switch (kind) {
    case trace::ShareKind::kEpoll: return model::ShareKind::kEpoll;
    case trace::ShareKind::kConnection: return model::ShareKind::kConnection;
  }
  return std::nullopt;
}

std::optional<model::ShareUseKind> kind_of(trace::ShareUseKind kind) {
  switch (kind) {
    case trace::ShareUseKind::kRemoved: return model::ShareUseKind::kRemoved;
    case trace::ShareUseKind::kMissed: return model::ShareUseKind::kMissed;
    case trace::ShareUseKind::kSent: return model::ShareUseKind::kSent;
    case trace::ShareUseKind::kReceived: return model::ShareUseKind::kReceived;
  }
  return std::nullopt;
}

std::optional<model::Generator> kind_of(trace::Generator generator) {
  switch (generator) {
    case trace::Generator::kRandom: return model::Generator::kRandom;
    case trace::Generator::kDrand48: return model::Generator::kDrand48;
  }
  return std::nullopt;
}

bool is_of_epoll(model::ShareUseKind kind) {
  return kind == model::ShareUseKind::kRemoved || kind == model::ShareUseKind::kMissed;
}

std::string kind_of_file(std::uint32_t mode) {
  if (S_ISSOCK(mode)) return "socket";
  if (S_ISFIFO(mode)) return "pipe";
  return S_ISREG(mode) || S_ISCHR(mode) ? "file" : "descriptor";
}

template <class Address>
std::optional<Address> decode_address(const std::uint8_t* bytes, std::size_t count) {
  Address address{};
  if (count < sizeof address) return std::nullopt;
  std::memcpy(&address, bytes, sizeof address);
  return address;
}

std::string describe_internet(const void* address, int family, std::uint16_t port) {
  char text[INET6_ADDRSTRLEN] = {};
  if (inet_ntop(family, address, text, sizeof text) == nullptr) return "";
  const std::uint16_t number = ntohs(port);
  return family == AF_INET6 ? fmt::format("[{}]:{}", text, number) : fmt::format("{}:{}", text, number);
}

// Returns the path of a Unix socket address; "" if the address has no path, or if a byte of the path cannot be printed.
// The zero byte at the start of an abstract name becomes "@".
std::string describe_path(const std::uint8_t* bytes, std::size_t count) {
  constexpr std::size_t kPath = offsetof(sockaddr_un, sun_path);
  if (count <= kPath) return "";
  std::string path(reinterpret_cast<const char*>(bytes) + kPath, count - kPath);
  if (path.front() == '\0') path.front() = '@';
  path.resize(std::min(path.find('\0'), path.size()));
  const bool is_plain = std::ranges::all_of(path, [](char letter) { return letter >= ' ' && letter <= '~'; });
  return is_plain ? path : "";
}

std::string describe_peer(const trace::ShareRecord& fixed) {
  const std::size_t count = std::min<std::size_t>(fixed.peer_bytes, sizeof fixed.peer);
  sa_family_t family = AF_UNSPEC;
  if (count < sizeof family) return "";
  std::memcpy(&family, fixed.peer, sizeof family);
  if (family == AF_UNIX) return describe_path(fixed.peer, count);
  if (family == AF_INET) {
    const auto address = decode_address<sockaddr_in>(fixed.peer, count);
    return address ? describe_internet(&address->sin_addr, family, address->sin_port) : "";
  }
  if (family == AF_INET6) {
    const auto address = decode_address<sockaddr_in6>(fixed.peer, count);
    return address ? describe_internet(&address->sin6_addr, family, address->sin6_port) : "";
  }
  return "";
}

}  // namespace

void read_share(TraceContext& trace, const TraceRecord& record) {
  model::Model& model = trace.model();
  const auto fixed = record.fixed<trace::ShareRecord>();
  const auto fork = trace.find(fixed.fork, RecordType::kFork);
  const auto kind = kind_of(fixed.kind);
  if (!fork || !kind) return;
  model::Share share;
  share.fork = fork->index;
  share.owner = model.forks[fork->index].process;
  share.kind = *kind;
  share.fd = fixed.fd;
  if (*kind == model::ShareKind::kConnection) share.peer = describe_peer(fixed);
  trace.bind(record, model.shares.size());
  model.shares.push_back(std::move(share));
}

void read_share_use(TraceContext& trace, const TraceRecord& record) {
  model::Model& model = trace.model();
  const auto fixed = record.fixed<trace::ShareUseRecord>();
  const auto target = trace.find(fixed.share, RecordType::kShare);
  const auto kind = kind_of(fixed.kind);
  if (!target || !kind) return;
  const std::size_t share = target->index;
  if (is_of_epoll(*kind) != (model.shares[share].kind == model::ShareKind::kEpoll)) return;
  model::ShareUse use;
  if (fixed.fork != 0) {
    const auto fork = trace.find(fixed.fork, RecordType::kFork);
    if (!fork) return;
    use.fork = fork->index;
    use.process = trace.child_of(fork->index, record.pid, record.time_ns);
  } else {
    use.process = trace.process_of(record);
  }
  use.tid = record.tid;
  use.kind = *kind;
  use.owner_waits = (fixed.flags & trace::kOwnerWaits) != 0;
  use.under_lock = (fixed.flags & trace::kUnderLock) != 0;
  use.target = fixed.target;
  use.target_kind = kind_of_file(fixed.mode);
  const model::ProcessId process = use.process;
  const std::size_t index = model.shares[share].uses.size();
  trace.bind(record, index, share);
  model.shares[share].uses.push_back(std::move(use));
  trace.name_stack(
      process, fixed.stack, [ share, index ](model::Model & m) -> auto& { return m.shares[share].uses[index].stack; });
}

void read_draw(TraceContext& trace, const TraceRecord& record) {
  model::Model& model = trace.model();
  const auto fixed = record.fixed<trace::DrawRecord>();
  const auto generator = kind_of(fixed.generator);
  if (!generator) return;
  model::Draw draw;
  if (fixed.fork != 0) {
    const auto fork = trace.find(fixed.fork, RecordType::kFork);
    if (!fork) return;
    draw.fork = fork->index;
    draw.process = trace.child_of(fork->index, record.pid, record.time_ns);
  } else {
    draw.process = trace.process_of(record);
  }
  draw.tid = record.tid;
  draw.generator = *generator;
  draw.value = fixed.value;
  const model::ProcessId process = draw.process;
  const std::size_t index = model.draws.size();
  model.draws.push_back(std::move(draw));
  trace.name_stack(
      process, fixed.stack, [index](model::Model & m) -> auto& { return m.draws[index].stack; });
}

}  // namespace forksight::collect
