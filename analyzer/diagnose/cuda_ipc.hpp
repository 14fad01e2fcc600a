// Device memory between processes: the calls of all of them, joined by the handle.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "diagnose/evidence.hpp"
#include "diagnose/finding.hpp"
#include "model/model.hpp"

namespace forksight::cuda {

using IpcCall = model::CudaIpcCall;

// An allocation that was exported.
struct Export {
  const IpcCall* call = nullptr;
  const IpcCall* freed = nullptr;  // null: it was not, or the driver refused
};

// Memory of another process, or of the own one, that a process had open.
struct Import {
  const IpcCall* open = nullptr;   // the first of it
  const IpcCall* close = nullptr;  // the one that gave it up; null: it is open still
  const Export* of = nullptr;      // null: its exporter was not seen
};

class Sharing {
 public:
  explicit Sharing(const Evidence& evidence);

  const std::vector<Export>& exports() const { return exports_; }
  const std::vector<Import>& imports() const { return imports_; }
  // Calls of cuIpcOpenMemHandle that the driver refused.
  const std::vector<const IpcCall*>& refused() const { return refused_; }
  // The export of that handle on the same host, of what was not freed before `opened` began. Null: none was seen.
  const Export* find_export(const IpcCall& opened) const;
  // What the process had open by that handle at that instant; null if nothing.
  const Import* find_open(model::ProcessId process, std::uint64_t handle, std::uint64_t at_ns) const;

  // The process did something of its own after that instant, so it lived then.
  bool lived_after(model::ProcessId process, std::uint64_t at_ns) const;
  // It ended: by itself, or was seen to have gone. 0: not known.
  std::uint64_t end_of(model::ProcessId process) const;
  bool ended_by_itself(model::ProcessId process) const { return own_end_.contains(process); }
  // All that it did with such memory was recorded.
  bool is_whole(model::ProcessId process) const { return !evidence_.process(process).has_gaps; }

 private:
  const Evidence& evidence_;
  std::vector<Export> exports_;
  std::multimap<std::uint64_t, std::size_t> by_handle_;
  std::vector<Import> imports_;
  std::vector<const IpcCall*> refused_;
  std::map<model::ProcessId, std::uint64_t> last_act_;
  std::map<model::ProcessId, std::uint64_t> own_end_;
};

// It was open when the instant came, and for longer than that.
bool is_open_at(const Import& import, std::uint64_t at_ns);

// With who exported it and where.
Culprit describe_memory(const Evidence& evidence, const Export& exported);
// The finding about what `call` of its process did.
Finding begin_finding(const char* slug, const IpcCall& call);

}  // namespace forksight::cuda
