// The table of offsets against the headers of each version that is here.
#include "inspect/python/python_layout.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <sstream>
#include <string>

#include "made_python.hpp"
#include "python_process.hpp"

namespace forksight::inspect {
namespace {

// All offsets but those that are 0 for "none".
std::map<std::string, std::uint64_t> offsets_of(const PythonLayout& layout) {
  std::map<std::string, std::uint64_t> offsets{
      {"interpreters", layout.interpreters},
      {"interpreter_next", layout.interpreter_next},
      {"threads", layout.threads},
      {"gil_holder", layout.gil_holder},
      {"gil_locked", layout.gil_locked},
      {"thread_next", layout.thread_next},
      {"thread_interpreter", layout.thread_interpreter},
      {"thread_id", layout.thread_id},
      {"thread_frame", layout.thread_frame},
      {"frame_back", layout.frame_back},
      {"frame_code", layout.frame_code},
      {"frame_instruction", layout.frame_instruction},
      {"code_first_line", layout.code_first_line},
      {"code_file", layout.code_file},
      {"code_name", layout.code_name},
      {"code_lines", layout.code_lines},
      {"code_local_names", layout.code_local_names},
      {"object_type", layout.object_type},
      {"type_name", layout.type_name},
      {"bytes_size", layout.bytes_size},
      {"bytes_data", layout.bytes_data},
      {"tuple_size", layout.tuple_size},
      {"tuple_items", layout.tuple_items},
      {"string_length", layout.string_length},
      {"string_state", layout.string_state},
      {"string_ascii", layout.string_ascii},
      {"string_other", layout.string_other},
  };
  const auto add = [&](const char* name, std::uint64_t offset) {
    if (offset != 0) offsets[name] = offset;
  };
  if (layout.has_cframe != 0) offsets["cframe_frame"] = layout.cframe_frame;
  add("runtime_gil", layout.runtime_gil);
  add("interpreter_gil", layout.interpreter_gil);
  add("native_id", layout.native_id);
  add("frame_line", layout.frame_line);
  add("frame_owner", layout.frame_owner);
  add("code_instructions", layout.code_instructions);
  add("code_local_kinds", layout.code_local_kinds);
  return offsets;
}

class PythonHeaders : public testing::TestWithParam<int> {
 protected:
  PythonHeaders() {
    std::string name = testing::TempDir() + "forksight_offsets_XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~PythonHeaders() override { std::filesystem::remove_all(folder_); }

  std::map<std::string, std::uint64_t> told_by(const std::string& include) const {
    const std::string program = folder_ / "offsets";
    test::output_of({PYTHON_COMPILER, "-w", "-I" + include, PYTHON_OFFSETS, "-o", program});
    std::istringstream lines(test::output_of({program}));
    std::map<std::string, std::uint64_t> offsets;
    std::string name;
    for (std::uint64_t offset = 0; lines >> name >> offset;) offsets[name] = offset;
    return offsets;
  }

  std::filesystem::path folder_;
};

TEST_P(PythonHeaders, AgreeWithTheTable) {
  const auto layout =
      GetParam() == kLastPythonMinor ? test::MadePython::newest_layout() : *known_python_layout(GetParam());
  bool tried = false;
  for (const std::string& interpreter : test::find_interpreters(GetParam())) {
    std::string include = test::output_of(
        {interpreter, "-E", "-s", "-c", "import sysconfig; print(sysconfig.get_path('include'), end='')"});
    if (!std::filesystem::exists(include + "/internal/pycore_runtime.h")) continue;
    EXPECT_EQ(told_by(include), offsets_of(layout)) << include;
    tried = true;
  }
  if (!tried) GTEST_SKIP() << "no headers of CPython 3." << GetParam() << " here";
}

INSTANTIATE_TEST_SUITE_P(CPython, PythonHeaders, testing::Range(kFirstPythonMinor, kLastPythonMinor + 1),
                         [](const auto& test) { return "3_" + std::to_string(test.param); });

TEST(PythonLayout, OfTheNewestIsBelievedOfItsVersionOnly) {
  auto offsets = test::MadePython::newest_offsets();
  test::SparseMemory memory;
  const auto is_read = [&] {
    memory.write(0x1008, std::as_bytes(std::span(offsets)));
    return read_python_layout(memory, 0x1000).has_value();
  };
  EXPECT_FALSE(is_read());
  memory.put(0x1000, std::array<char, 8>{'x', 'd', 'e', 'b', 'u', 'g', 'p', 'y'});
  EXPECT_TRUE(is_read());
  offsets[0] = 0x30e00f0;
  EXPECT_FALSE(is_read());
  offsets[0] = 0x30d03f0;
  EXPECT_TRUE(is_read());
  offsets[40] = std::uint64_t{1} << 62U;
  EXPECT_FALSE(is_read());
}

}  // namespace
}  // namespace forksight::inspect
