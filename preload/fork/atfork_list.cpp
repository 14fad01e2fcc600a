#include "fork/atfork_list.hpp"

#include <atomic>

#include "fork/atfork_run.hpp"
#include "forksight/trace/format.hpp"
#include "forksight/trace/handlers.hpp"
#include "record/writer.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

struct Entry {
  std::atomic<bool> filled;
  AtforkHandlers handlers;
  const void* library;
};

constinit Entry g_entries[kMaxHandlers] = {};
constinit std::atomic<std::uint32_t> g_registered{0};
constinit std::uint32_t g_recorded = 0;
constinit std::uint64_t g_record = 0;

std::uint64_t address_of(AtforkHandler handler) { return reinterpret_cast<std::uint64_t>(handler); }

bool is_same(const Entry& entry, const AtforkHandlers& handlers, const void* library) {
  return entry.filled.load(std::memory_order_acquire) && entry.library == library &&
         entry.handlers.prepare == handlers.prepare && entry.handlers.parent == handlers.parent &&
         entry.handlers.child == handlers.child;
}

// The trampolines that are registered with libc for the handlers at this place.
AtforkHandlers trampolines_for(std::uint32_t place, const AtforkHandlers& handlers) {
  const auto of = [place](AtforkHandler handler, trace::HandlerPhase phase) {
    return handler == nullptr ? nullptr : trampoline(place, phase);
  };
  return {of(handlers.prepare, trace::HandlerPhase::kPrepare), of(handlers.parent, trace::HandlerPhase::kParent),
          of(handlers.child, trace::HandlerPhase::kChild)};
}

}  // namespace

AtforkHandlers wrap_handlers(const AtforkHandlers& handlers, const void* library) {
  for (std::uint32_t place = 0; place < handler_count(); ++place) {
    if (is_same(g_entries[place], handlers, library)) return trampolines_for(place, handlers);
  }
  const std::uint32_t place = g_registered.fetch_add(1, std::memory_order_relaxed);
  if (place >= kMaxHandlers) return handlers;
  Entry& entry = g_entries[place];
  entry.handlers = handlers;
  entry.library = library;
  entry.filled.store(true, std::memory_order_release);
  return trampolines_for(place, handlers);
}

AtforkHandlers handlers_at(std::uint32_t place) { return g_entries[place].handlers; }

std::uint32_t handler_count() {
  const std::uint32_t registered = g_registered.load(std::memory_order_relaxed);
  return registered < kMaxHandlers ? registered : kMaxHandlers;
}

std::uint64_t ensure_handlers_record() {
  const std::uint32_t registered = g_registered.load(std::memory_order_relaxed);
  if (registered == g_recorded) return g_record;
  const std::uint32_t kept = registered < kMaxHandlers ? registered : kMaxHandlers;
  Record record(trace::RecordType::kHandlers, sizeof(trace::HandlersRecord) + kept * sizeof(trace::HandlerEntry));
  if (!record) return 0;
  *record.as<trace::HandlersRecord>() = {kept, registered - kept};
  auto* const entries = reinterpret_cast<trace::HandlerEntry*>(record.payload() + sizeof(trace::HandlersRecord));
  for (std::uint32_t i = 0; i < kept; ++i) {
    const AtforkHandlers& of = g_entries[i].handlers;
    entries[i] = {address_of(of.prepare), address_of(of.parent), address_of(of.child)};
  }
  g_record = record.commit();
  g_recorded = registered;
  if (registered > kept) append_note(trace::NoteCode::kHandlersUnwrapped, registered - kept);
  return g_record;
}

}  // namespace forksight
