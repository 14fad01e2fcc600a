// Compares the table of offsets with the headers of each version of CPython that is installed.
#include "inspect/python/python_layout.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <sstream>
#include <string>

#include "image/live.hpp"
#include "image/stacks.hpp"
#include "inspect/python/python_interpreter.hpp"
#include "made_python.hpp"
#include "python_process.hpp"

namespace forksight::inspect {
namespace {

// Returns all offsets of the layout, except optional offsets that are 0, because 0 means "none".
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
  add("code_copies", layout.code_copies);
  add("frame_copy_index", layout.frame_copy_index);
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

// Returns the layout of a version: from the table, or from a process of that version if its memory describes the
// layout.
PythonLayout layout_of(int minor, const std::string& interpreter) {
  if (minor < kFirstDescribedMinor) return *known_python_layout(minor);
  const test::PythonProcess process(interpreter, "read");
  const auto image = image::open_live(process.pid());
  if (!image) throw std::runtime_error(image.error());
  image::Stacks stacks(image.value());
  std::vector<std::string> limits;
  const auto python = find_python(image.value(), stacks.symbols(), limits);
  if (!python) throw std::runtime_error(limits.empty() ? "no Python" : limits.front());
  return python->layout;
}

TEST_P(PythonHeaders, AgreeWithTheLayout) {
  bool tried = false;
  for (const std::string& interpreter : test::find_interpreters(GetParam())) {
    std::string include = test::output_of(
        {interpreter, "-E", "-s", "-c", "import sysconfig; print(sysconfig.get_path('include'), end='')"});
    if (!std::filesystem::exists(include + "/internal/pycore_runtime.h")) continue;
    EXPECT_EQ(told_by(include), offsets_of(layout_of(GetParam(), interpreter))) << include;
    tried = true;
  }
  if (!tried) GTEST_SKIP() << "no headers of CPython 3." << GetParam() << " here";
}

INSTANTIATE_TEST_SUITE_P(CPython, PythonHeaders, testing::Range(kFirstPythonMinor, kLastPythonMinor + 1),
                         [](const auto& test) { return "3_" + std::to_string(test.param); });

class PythonDescription : public testing::TestWithParam<test::MadeVersion> {
 protected:
  PythonDescription() : offsets_(test::MadePython::offsets_of(GetParam())) {
    memory_.put(kAddress, std::array<char, 8>{'x', 'd', 'e', 'b', 'u', 'g', 'p', 'y'});
  }
  std::optional<PythonLayout> read() {
    memory_.write(kAddress + 8, std::as_bytes(std::span(offsets_)));
    return read_python_layout(memory_, kAddress);
  }

  static constexpr std::uint64_t kAddress = 0x1000;
  test::SparseMemory memory_;
  std::vector<std::uint64_t> offsets_;  // the version, 1 if it has no GIL, then sizes of structures and offsets in them
};

TEST_P(PythonDescription, IsAcceptedForItsVersion) {
  const auto layout = read();
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->minor, GetParam().minor);
  // Without the GIL, the bits for a string's width are at another place, and code objects have copies of their
  // instructions.
  EXPECT_EQ(layout->string_kind_shift, GetParam().is_free_threaded ? 8U : 2U);
  EXPECT_EQ(layout->code_copies != 0, GetParam().is_free_threaded);
  offsets_[0] += 0x0300;  // another release of the same version
  EXPECT_TRUE(read());
}

TEST_P(PythonDescription, IsRefusedWithoutTheCookie) {
  memory_.put(kAddress, std::array<char, 8>{});
  EXPECT_FALSE(read());
}

TEST_P(PythonDescription, IsRefusedWithTheNumberOfAnotherVersion) {
  for (std::uint64_t version = 0x030C; version <= 0x0310; ++version) {
    if (version == 0x0300U + static_cast<unsigned>(GetParam().minor)) continue;
    offsets_[0] = version << 16U | 0x00f0;
    offsets_.resize(128);
    EXPECT_FALSE(read()) << std::hex << version;
  }
}

TEST_P(PythonDescription, IsRefusedWithImpossibleOffsets) {
  constexpr std::size_t kThreads = 8;  // interpreter_state.threads_head is one of the first words in each version
  const auto kept = offsets_;
  offsets_[40] = std::uint64_t{1} << 62U;
  EXPECT_FALSE(read());
  offsets_ = kept;
  offsets_[kThreads] = offsets_[5];  // the offset is the size of the interpreter, so it is out of bounds
  EXPECT_FALSE(read());
  offsets_ = kept;
  offsets_.resize(20);
  memory_ = {};
  memory_.put(kAddress, std::array<char, 8>{'x', 'd', 'e', 'b', 'u', 'g', 'p', 'y'});
  EXPECT_FALSE(read());
}

std::vector<test::MadeVersion> described_versions() {
  auto versions = test::made_versions();
  std::erase_if(versions, [](const auto& version) { return version.minor < kFirstDescribedMinor; });
  return versions;
}
INSTANTIATE_TEST_SUITE_P(CPython, PythonDescription, testing::ValuesIn(described_versions()),
                         [](const auto& test) { return test::name_of(test.param); });

}  // namespace
}  // namespace forksight::inspect
