#include "atfork_list.hpp"

#include <atomic>

#include "forksight/trace/format.hpp"
#include "writer.hpp"

#include "guest.hpp"

namespace forksight {

namespace {

constexpr std::uint32_t kMaxHandlers = 128;

constinit trace::HandlerEntry g_handlers[kMaxHandlers] = {};
constinit std::atomic<std::uint32_t> g_registered{0};
constinit std::uint32_t g_recorded = 0;
constinit std::uint64_t g_record = 0;

}  // namespace

void note_atfork_handlers(void (*prepare)(), void (*parent)(), void (*child)()) {
  const std::uint32_t index = g_registered.fetch_add(1, std::memory_order_relaxed);
  if (index >= kMaxHandlers) return;
  g_handlers[index] = {reinterpret_cast<std::uint64_t>(prepare), reinterpret_cast<std::uint64_t>(parent),
                       reinterpret_cast<std::uint64_t>(child)};
}

std::uint64_t ensure_handlers_record() {
  const std::uint32_t registered = g_registered.load(std::memory_order_relaxed);
  if (registered == g_recorded) return g_record;
  const std::uint32_t kept = registered < kMaxHandlers ? registered : kMaxHandlers;
  Record record(trace::RecordType::kHandlers, sizeof(trace::HandlersRecord) + kept * sizeof(trace::HandlerEntry));
  if (!record) return 0;
  *record.as<trace::HandlersRecord>() = {kept, registered - kept};
  __builtin_memcpy(record.payload() + sizeof(trace::HandlersRecord), g_handlers, kept * sizeof(trace::HandlerEntry));
  g_record = record.commit();
  g_recorded = registered;
  return g_record;
}

}  // namespace forksight
