// Device memory that processes share by CUDA IPC. The handle of the memory shows which calls of different processes
// belong together.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/evidence.hpp"
#include "diagnose/finding.hpp"
#include "model/model.hpp"

namespace forksight::cuda {

using IpcCall = model::CudaIpcCall;

// Device memory for which a process created a handle.
struct Export {
  const IpcCall* call = nullptr;
  const IpcCall* freed = nullptr;  // null: no process freed the memory, or the driver refused to free it
};

// Exported memory that a process opened by its handle. The exporter may be the same process.
struct Import {
  const IpcCall* open = nullptr;   // the first call that opened the memory
  const IpcCall* close = nullptr;  // the call that closed the memory; null: the memory is still open
  const Export* of = nullptr;      // null: the export was not seen
};

class Sharing {
 public:
  explicit Sharing(const Evidence& evidence);

  const std::vector<Export>& exports() const { return exports_; }
  const std::vector<Import>& imports() const { return imports_; }
  // Calls of cuIpcOpenMemHandle that the driver refused.
  const std::vector<const IpcCall*>& refused() const { return refused_; }
  // Returns the export that created the handle of the call `opened`. The export is a call on the same host that began
  // before `opened` returned. The exported memory was not freed before `opened` began. Null: no such export was seen.
  const Export* find_export(const IpcCall& opened) const;
  // Returns the memory that the process had opened by this handle and had not closed at `at_ns`; null if there is none.
  const Import* find_open(model::ProcessId process, std::uint64_t handle, std::uint64_t at_ns) const;

  // True if the process was seen alive after `at_ns`: one of its calls began or returned, or it used shared device
  // memory.
  bool was_alive_after(model::ProcessId process, std::uint64_t at_ns) const;
  // Returns the time at which the process ended, or was seen to have ended; 0: not known.
  std::uint64_t end_of(model::ProcessId process) const;
  bool ended_by_itself(model::ProcessId process) const { return own_end_.contains(process); }
  // True if the trace has all calls of the process on shared device memory.
  bool is_whole(model::ProcessId process) const { return !evidence_.process(process).has_gaps; }

 private:
  // Exports or imports with the same handle, as indexes, in the order in which they began. There may be a million of
  // them, most of them over. The rules ask in the order of time, so those that are over at the beginning are skipped.
  struct OfHandle {
    std::vector<std::size_t> all;
    mutable std::size_t over = 0;         // so many at the beginning of `all` were over at `latest_ns`
    mutable std::uint64_t latest_ns = 0;  // the latest time that was asked about

    // Returns the position in `all` of the first one that is not over at `at_ns`.
    template <class IsOver>
    std::optional<std::size_t> find_first(std::uint64_t at_ns, const IsOver& is_over) const;
  };

  const Evidence& evidence_;
  std::vector<Export> exports_;
  std::map<std::pair<std::string, std::uint64_t>, OfHandle> exports_by_handle_;       // by host and handle
  std::map<std::pair<model::ProcessId, std::uint64_t>, OfHandle> imports_by_handle_;  // by process and handle
  std::vector<Import> imports_;
  std::vector<const IpcCall*> refused_;
  std::map<model::ProcessId, std::uint64_t> last_act_;
  std::map<model::ProcessId, std::uint64_t> own_end_;
};

// True if the memory was open before `at_ns` and stayed open after that.
bool is_open_at(const Import& import, std::uint64_t at_ns);

// Names the process that exported the memory, and the place in the code of that process.
Culprit describe_memory(const Evidence& evidence, const Export& exported);
Finding begin_finding(const char* slug, const IpcCall& call);

}  // namespace forksight::cuda
