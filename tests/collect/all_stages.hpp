// The fuzz tests use run_all_stages(), which passes the bytes of a trace through the reader, the rules and the
// renderers. The renderers read every string that the reader and the rules have made.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "collect/process_table.hpp"
#include "collect/trace_file.hpp"
#include "collect/trace_reader.hpp"
#include "diagnose/diagnose.hpp"
#include "guard/pack.hpp"
#include "render/json.hpp"
#include "render/text.hpp"

namespace forksight::test {

// Returns the size of the rendered text, or 0 if the reader refused the trace.
inline std::size_t run_all_stages(std::vector<std::byte> bytes) {
  const auto file = collect::TraceFile::parse("fuzz.fstrace", std::move(bytes));
  if (!file) return 0;
  model::Model model;
  collect::ProcessTable processes(model);
  collect::TraceReader(file.value(), model, processes, false).read();
  // `forksight run` gets its model from a child process, which packs the model. unpack() refuses a model with an id
  // that does not exist. The reader must make no such model, so unpack() must accept the model of every trace.
  if (!guard::unpack(guard::pack(model))) std::abort();
  std::vector<std::string> limits;
  const std::vector<Finding> findings = diagnose(model, limits);
  const std::vector<std::string> unexplained = find_unexplained(model, findings);
  for (std::string& limit : limits) model.limits.push_back(std::move(limit));
  return render::render_text(model, findings, {}, unexplained).size() + render::render_json(model, findings).size();
}

}  // namespace forksight::test
