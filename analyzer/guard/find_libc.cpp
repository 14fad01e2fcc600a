#include "guard/find_libc.hpp"

#include <sys/wait.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "files/budgets.hpp"
#include "guard/child.hpp"
#include "proc/mappings.hpp"

namespace forksight::guard {
namespace {

// The answer is three bytes. The child may run foreign code, so the bytes may have any values.
constexpr std::size_t kBytes = 3;
constexpr abi::ConditionKind kLastKind = abi::ConditionKind::kWithoutReferences;

std::string pack_libc(const abi::Libc& libc) {
  return {static_cast<char>(libc.version.major), static_cast<char>(libc.version.minor),
          static_cast<char>(libc.condition)};
}

abi::Libc unpack_libc(const std::string& bytes) {
  abi::Libc libc;
  if (bytes.size() != kBytes) return libc;
  const auto kind = static_cast<unsigned char>(bytes[2]);
  if (kind > static_cast<unsigned char>(kLastKind)) return libc;
  libc.version = {static_cast<std::uint8_t>(bytes[0]), static_cast<std::uint8_t>(bytes[1])};
  libc.condition = static_cast<abi::ConditionKind>(kind);
  return libc;
}

}  // namespace

abi::Libc find_libc(std::int32_t tid) {
  const Work work = [tid](const files::Reader&) {
    const std::string bytes = pack_libc(proc::libc_of(tid, proc::read_mappings(tid)));
    return std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size() ? 0 : 1;
  };
  const Answer answer = run_child(work, {.next_signal = {},
                                         .in_child = {},
                                         .on_output = {},
                                         .limit = files::kLongestLibcReading,
                                         .most_output = kBytes,
                                         .examines_processes = false});
  const bool has_ended_well = answer.has_child && answer.failure == Failure::kNone && WIFEXITED(answer.status) &&
                              WEXITSTATUS(answer.status) == 0;
  return has_ended_well ? unpack_libc(answer.out) : abi::Libc{};
}

void parse_only_in_children() { proc::set_libc_parser(find_libc); }

}  // namespace forksight::guard
