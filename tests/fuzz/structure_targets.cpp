// Targets that read traces, cores, and the memory of interpreters. The helpers of other tests write the good inputs.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "../support/reader.hpp"
#include "collect/all_stages.hpp"
#include "diagnose/diagnose.hpp"
#include "hang_process.hpp"
#include "image/core.hpp"
#include "image/live.hpp"
#include "image/stacks.hpp"
#include "inspect/core_subject.hpp"
#include "inspect/python/python_frames.hpp"
#include "lock_cycle_core.hpp"
#include "python_frames/made_python.hpp"
#include "support/core_writer.hpp"
#include "support/cuda_scene.hpp"
#include "support/handler_scene.hpp"
#include "support/scenes.hpp"
#include "targets.hpp"

namespace forksight::fuzz {
namespace {

Bytes as_input(std::span<const std::byte> bytes) {
  Bytes input(bytes.size());
  std::memcpy(input.data(), bytes.data(), bytes.size());
  return input;
}

// Returns the path of a file (a memfd) that contains the input.
const std::string& in_a_file(std::span<const unsigned char> input) {
  static const int fd = ::memfd_create("fuzz", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(fd);
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, input.data(), input.size(), 0) != static_cast<ssize_t>(input.size()))
    std::abort();
  return path;
}

// These options keep the cores small. A mapping of at most 8192 bytes is dumped as a whole. Only the end of a larger
// mapping is dumped. The dumped end contains all bytes from the lowest stack pointer in the mapping on.
constexpr test::CoreScene kSmallCore{.has_first_pages = false, .has_file_segments = false, .whole_up_to = 8192};

// ---------------------------------------------------------------------------------------------------------- Python

constexpr std::uint64_t kPage = 256;
constexpr std::size_t kWords = kPage / sizeof(std::uint64_t);

// Returns the memory as an input: the number of the version, and then for each page the page's number, a mask that
// shows which words of the page are not 0, and these words.
Bytes write_memory(std::size_t version, const test::SparseMemory& memory) {
  Bytes input = {static_cast<unsigned char>(version)};
  const auto add = [&](const auto& value) {
    const auto* const first = reinterpret_cast<const unsigned char*>(&value);
    input.insert(input.end(), first, first + sizeof value);
  };
  memory.for_each_piece([&](std::uint64_t address, std::span<const std::byte> bytes) {
    std::uint64_t words[kWords] = {};
    std::memcpy(words, bytes.data(), std::min(bytes.size(), sizeof words));
    std::uint32_t mask = 0;
    for (std::size_t i = 0; i < kWords; ++i) mask |= words[i] != 0 ? 1U << i : 0U;
    add(static_cast<std::uint32_t>(address / kPage));
    add(mask);
    for (const std::uint64_t word : words) {
      if (word != 0) add(word);
    }
  });
  return input;
}

std::shared_ptr<test::SparseMemory> read_memory(std::span<const unsigned char> input) {
  const auto memory = std::make_shared<test::SparseMemory>();
  std::size_t at = 1;
  const auto take = [&](auto& value) {
    if (input.size() < at + sizeof value) return false;
    std::memcpy(&value, &input[at], sizeof value);
    at += sizeof value;
    return true;
  };
  for (std::uint32_t page = 0, mask = 0; take(page) && take(mask);) {
    std::uint64_t words[kWords] = {};
    for (std::size_t i = 0; i < kWords; ++i) {
      if ((mask >> i & 1U) != 0 && !take(words[i])) break;
    }
    memory->write(page * kPage, std::as_bytes(std::span(words)));
  }
  return memory;
}

std::vector<Bytes> python_seeds() {
  std::vector<Bytes> seeds;
  for (const test::MadeVersion& version : test::made_versions()) {
    test::MadePython python(test::MadePython::layout_of(version));
    const std::uint64_t code = python.code(U"f", U"/模块.py", 1, {0x98, 1, 0x80, 0}, {U"a", U"b"});
    for (std::uint64_t i = 1; i < 4; ++i)
      python.thread(i << 12U, static_cast<std::int32_t>(i), python.frames({{code, 0}, {code, 2}, {code, -2}})[0]);
    seeds.push_back(write_memory(seeds.size(), python.memory()));
  }
  return seeds;
}

// Reads the threads, frames and variables of an interpreter. The input is the interpreter's memory.
bool python(std::span<const unsigned char> input) {
  static const std::vector<test::MadeVersion> versions = test::made_versions();
  if (input.empty() || input[0] >= versions.size()) return false;
  image::Image image;
  image.memory = read_memory(input);
  std::vector<std::string> limits;
  const inspect::PythonInterpreter interpreter{test::MadePython::kRuntime,
                                               test::MadePython::layout_of(versions[input[0]])};
  const auto threads = inspect::read_python_threads(image, interpreter, limits);
  if (threads.size() > 4096) std::abort();
  for (const inspect::PythonThread& thread : threads) {
    if (thread.stack.frames.size() > 128 || thread.locals.size() > 256) std::abort();
    for (const model::Frame& frame : thread.stack.frames) {
      if (frame.line < 0) std::abort();
    }
  }
  return !threads.empty();
}

// ----------------------------------------------------------------------------------------------------------- cores

std::vector<Bytes> core_seeds() {
  const test::HangProcess process(std::string(IMAGE_FIXTURES) + "/image_hang_O0");
  const auto live = image::open_live(process.pid());
  if (!live) throw std::runtime_error(live.error());
  return {as_input(test::make_core(live.value(), kSmallCore))};
}

// Opens the input as a core, and unwinds the stacks of its threads.
bool core(std::span<const unsigned char> input) {
  const auto image = image::open_core(in_a_file(input));
  if (!image) {
    if (image.error().empty()) std::abort();
    return false;
  }
  image::Stacks stacks(image.value());
  std::size_t frames = 0;
  for (const image::Thread& thread : image->threads) frames += stacks.of(thread).frames.size();
  return frames > 0;
}

std::vector<Bytes> explained_core_seeds() { return {as_input(test::make_lock_cycle_core(kSmallCore).core)}; }

// Opens the input as a core, builds the model, and makes the findings. Returns whether there is a finding.
bool explained_core(std::span<const unsigned char> input) {
  const auto subjects = inspect::open_core_subjects(files::reader_of_test(), in_a_file(input));
  if (!subjects) return false;
  return !diagnose(inspect::build_model(subjects.value())).empty();
}

// ---------------------------------------------------------------------------------------------------------- traces

std::vector<Bytes> trace_seeds() {
  std::vector<Bytes> seeds;
  const auto add = [&](const test::TraceBuilder& trace) { seeds.push_back(as_input(trace.bytes())); };
  test::LockTrace lock({});
  lock.end(lock.touch(trace::TouchKind::kLock), 0);
  add(lock.trace);
  test::LockTrace custom({.kind = trace::LockKind::kCustom, .memory = {1}});
  custom.name(custom.touch(trace::TouchKind::kLock), "spin lock");
  custom.end(custom.wait(), 4);
  add(custom.trace);
  test::LockTrace condition({.kind = trace::LockKind::kCondition,
                             .memory = test::condition_memory(2),
                             .holder_waits = trace::WaitKind::kCondition});
  condition.touch(trace::TouchKind::kCondition, trace::kTouchStolen, trace::TouchAction::kNone,
                  trace::SyncOperation::kSignal);
  add(condition.trace);
  test::PoolTrace pool({});
  pool.touch(4);
  pool.cure(trace::CureMethod::kRebuild, trace::CureResult::kApplied, true);
  add(pool.trace);
  test::LibcTrace libc({"localtime", trace::bit_of(trace::LibcLock::kTimeZone)});
  libc.quiesced(1, 1, 1);
  libc.end(libc.touch({"tzset", trace::bit_of(trace::LibcLock::kTimeZone)}));
  add(libc.trace);
  test::CudaTrace cuda({});
  cuda.answer(cuda.call("cuInit"), 3);
  add(cuda.trace);
  add(test::whole_handler_trace());
  return seeds;
}

bool trace(std::span<const unsigned char> input) {
  const auto bytes = std::as_bytes(input);
  return test::run_all_stages({bytes.begin(), bytes.end()}) > 0;
}

constexpr Target kTargets[] = {
    {"traces", "traces, up to the report", trace_seeds, trace, false},
    {"cores", "cores, up to the stacks", core_seeds, core, false},
    {"explained_cores", "cores, up to the findings", explained_core_seeds, explained_core, false},
    {"python", "threads, frames and variables of Python", python_seeds, python, false},
};

}  // namespace

std::span<const Target> structure_targets() { return kTargets; }

}  // namespace forksight::fuzz
