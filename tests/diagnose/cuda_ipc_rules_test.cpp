// Tests the rules about device memory that two processes share through a handle. Each process has its own trace.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "diagnose/diagnose.hpp"
#include "forksight/trace/cuda.hpp"
#include "support/scenes.hpp"

namespace forksight {
namespace {

using test::TraceBuilder;
using trace::CudaIpcKind;

constexpr std::int32_t kExporter = 1000;
constexpr std::int32_t kImporter = 3000;
constexpr std::uint64_t kHandle = 0xabcd;
constexpr std::uint64_t kOther = 0xef01;

// Times are in milliseconds. Each call takes one millisecond.
class Shared {
 public:
  Shared() {
    exporter.creator(kExporter, 900, 11).as(kExporter);
    importer.creator(kImporter, 900, 12).as(kImporter);
  }

  Shared& exports(std::uint64_t at, std::uint64_t handle = kHandle, std::uint64_t address = 0x1000) {
    return add(exporter, CudaIpcKind::kExport, at, handle, address);
  }
  Shared& frees(std::uint64_t at, std::uint64_t address = 0x1000, int result = 0) {
    return add(exporter, CudaIpcKind::kFree, at, 0, address, result);
  }
  Shared& opens(std::uint64_t at, std::uint64_t handle = kHandle, std::uint64_t address = 0x2000, int result = 0) {
    return add(importer, CudaIpcKind::kOpen, at, handle, result == 0 ? address : 0, result);
  }
  Shared& closes(std::uint64_t at, std::uint64_t address = 0x2000) {
    return add(importer, CudaIpcKind::kClose, at, 0, address);
  }
  Shared& importer_ends(std::uint64_t at) { return add(importer, CudaIpcKind::kEnd, at, 0, 0); }
  Shared& exporter_ends(std::uint64_t at) { return add(exporter, CudaIpcKind::kEnd, at, 0, 0); }

  Shared& add(TraceBuilder& to, CudaIpcKind kind, std::uint64_t at, std::uint64_t handle, std::uint64_t address,
              int result = 0) {
    to.record(trace::RecordType::kCudaIpc,
              trace::CudaIpcRecord{handle, address, 0x100, 0, at * 1'000'000, (at + 1) * 1'000'000, 0, kind, result});
    return *this;
  }

  model::Model model() const {
    model::Model made = test::read_model(exporter);
    test::read_into(made, importer);
    return made;
  }
  std::vector<Finding> findings() const { return diagnose(model()); }

  TraceBuilder exporter, importer;
};

model::Process& process_of(model::Model& model, std::int32_t pid) {
  for (model::Process& one : model.processes) {
    if (one.pid == pid) return one;
  }
  throw std::out_of_range("no such process");
}

TEST(CudaIpcExporterGone, IsCertainOfAFreeBetweenOpenAndClose) {
  const auto findings = Shared().exports(10).opens(20).frees(30).closes(40).findings();
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "cuda-ipc-exporter-gone");
  EXPECT_EQ(findings[0].harm, Certainty::kProven);
  EXPECT_EQ(findings[0].outcome, Outcome::kCorruption);
  EXPECT_EQ(findings[0].summary, "process 1000 freed device memory that process 3000 had open: undefined in CUDA");
  EXPECT_EQ(findings[0].culprit.holder->pid, kExporter);
  EXPECT_EQ(findings[0].tid, kImporter);
}

TEST(CudaIpcExporterGone, NeedsARecordThatTheImporterLivedAfterTheFree) {
  EXPECT_EQ(Shared().exports(10).opens(20).frees(30).importer_ends(50).findings().size(), 1U);
  // If no record says when the importer ended, the importer may have been killed before the free.
  EXPECT_TRUE(Shared().exports(10).opens(20).frees(30).findings().empty());
  EXPECT_TRUE(Shared().exports(10).opens(20).importer_ends(25).frees(30).findings().empty());
}

TEST(CudaIpcExporterGone, IsSilentIfTheCloseBeganBeforeTheFree) {
  EXPECT_TRUE(Shared().exports(10).opens(20).closes(29).frees(30).importer_ends(50).findings().empty());
  // The importer's open came after the free. So the importer opened another allocation at that address, or the driver
  // refused the open.
  EXPECT_TRUE(Shared().exports(10).frees(30).opens(31).closes(50).findings().empty());
}

TEST(CudaIpcExporterGone, CountsHowOftenTheMemoryIsOpen) {
  const auto twice = [] { return Shared().exports(10).opens(20).opens(22).closes(24); };
  EXPECT_EQ(twice().frees(30).closes(40).findings().size(), 1U);
  EXPECT_TRUE(twice().closes(26).frees(30).importer_ends(50).findings().empty());
  // The importer closed the memory, and opened it again. So the memory was open when it was freed.
  EXPECT_EQ(Shared().exports(10).opens(20).closes(22).opens(24).frees(30).closes(40).findings().size(), 1U);
}

TEST(CudaIpcExporterGone, TheEndOfAContextClosesItsMemory) {
  Shared scene;
  scene.exports(10).opens(20).add(scene.importer, CudaIpcKind::kContextGone, 25, 0, 0).frees(30).importer_ends(50);
  EXPECT_TRUE(scene.findings().empty());
  // The end of a context does not close memory that was opened later.
  Shared again;
  again.exports(10).opens(20).add(again.importer, CudaIpcKind::kContextGone, 25, 0, 0);
  EXPECT_EQ(again.opens(27).frees(30).importer_ends(50).findings().size(), 1U);
}

TEST(CudaIpcExporterGone, IsSilentOfAFreeThatWasRefused) {
  EXPECT_TRUE(Shared().exports(10).opens(20).frees(30, 0x1000, 1).closes(40).findings().empty());
}

TEST(CudaIpcExporterGone, IsSilentOfOtherMemory) {
  EXPECT_TRUE(
      Shared().exports(10).exports(12, kOther, 0x5000).opens(20).frees(30, 0x5000).closes(40).findings().empty());
}

TEST(CudaIpcExporterGone, IsSilentWhereRecordsAreMissing) {
  Shared scene;
  scene.exports(10).opens(20).frees(30).importer_ends(50);
  scene.importer.record(trace::RecordType::kNote, trace::NoteRecord{trace::NoteCode::kCudaIpcFull, 0, 7});
  const model::Model model = scene.model();
  EXPECT_TRUE(diagnose(model).empty());
  ASSERT_FALSE(model.limits.empty());
  EXPECT_NE(model.limits.back().find("7 calls that share device memory were not recorded"), std::string::npos);
}

TEST(CudaIpcExporterGone, TheEndOfTheExporterCountsOnlyIfTheMemoryIsUsedAfterIt) {
  Shared scene;
  scene.exports(10).opens(20).exporter_ends(30).importer_ends(60);
  model::Model model = scene.model();
  EXPECT_TRUE(diagnose(model).empty());
  auto open = std::ranges::find(model.cuda_ipc, model::CudaIpcKind::kOpen, &model::CudaIpcCall::kind);
  open->used_ns = 29'000'000;
  EXPECT_TRUE(diagnose(model).empty());
  open->used_ns = 45'000'000;
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].summary, "process 3000 used device memory of process 1000 after that process had ended");
}

TEST(CudaIpcExporterGone, TheEndOfTheExporterMayBeSeenFromOutside) {
  Shared scene;
  scene.exports(10).opens(20).importer_ends(60);
  model::Model model = scene.model();
  std::ranges::find(model.cuda_ipc, model::CudaIpcKind::kOpen, &model::CudaIpcCall::kind)->used_ns = 45'000'000;
  EXPECT_TRUE(diagnose(model).empty());
  process_of(model, kExporter).seen_ended_ns = 46'000'000;
  EXPECT_TRUE(diagnose(model).empty());
  process_of(model, kExporter).seen_ended_ns = 44'000'000;
  EXPECT_EQ(diagnose(model).size(), 1U);
}

TEST(CudaIpcExporterGone, ProcessesOfDifferentHostsAreNotCombined) {
  Shared scene;
  scene.exports(10).opens(20).frees(30).closes(40);
  scene.importer.host("node2");
  EXPECT_TRUE(scene.findings().empty());
}

TEST(CudaIpcSameProcess, IsCertainByTheErrorCodeOfTheDriver) {
  Shared scene;
  scene.exports(10).add(scene.exporter, CudaIpcKind::kOpen, 20, kHandle, 0, 201);
  scene.add(scene.exporter, CudaIpcKind::kOpen, 22, kHandle, 0, 201);
  const auto findings = scene.findings();
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "cuda-ipc-same-process");
  EXPECT_EQ(findings[0].harm, Certainty::kProven);
  EXPECT_EQ(findings[0].outcome, Outcome::kError);
  EXPECT_EQ(findings[0].summary,
            "process 1000 called cuIpcOpenMemHandle and got CUDA_ERROR_INVALID_CONTEXT (201): it exported that memory "
            "itself");
}

TEST(CudaIpcSameProcess, IsSilentForOtherProcessesAndOtherResults) {
  EXPECT_TRUE(Shared().exports(10).opens(20, kHandle, 0, 201).findings().empty());
  Shared worked;
  worked.exports(10).add(worked.exporter, CudaIpcKind::kOpen, 20, kHandle, 0x9000);
  EXPECT_TRUE(worked.findings().empty());
  Shared freed;
  freed.exports(10).frees(15).add(freed.exporter, CudaIpcKind::kOpen, 20, kHandle, 0, 400);
  EXPECT_TRUE(freed.findings().empty());
}

TEST(CudaIpcOpenedTwice, IsCertainIfTheMemoryIsStillOpen) {
  const auto findings = Shared().exports(10).opens(20).opens(22, kHandle, 0, 208).closes(40).findings();
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "cuda-ipc-opened-twice");
  EXPECT_EQ(findings[0].harm, Certainty::kProven);
  EXPECT_EQ(findings[0].summary,
            "process 3000 called cuIpcOpenMemHandle and got CUDA_ERROR_ALREADY_MAPPED (208): it already has that "
            "memory open, by an earlier call");
}

TEST(CudaIpcOpenedTwice, IsSilentOtherwise) {
  EXPECT_TRUE(Shared().exports(10).opens(20).closes(21).opens(24, kHandle, 0, 201).findings().empty());
  EXPECT_TRUE(Shared().exports(10).opens(20).opens(22, kOther, 0, 201).closes(40).findings().empty());
  EXPECT_TRUE(Shared().exports(10).opens(20, kHandle, 0, 201).opens(22).closes(40).findings().empty());
}

// The exporter frees one of two allocations. The importer opens both, and never closes the other one.
Shared limbo() {
  return Shared()
      .exports(10)
      .opens(20)
      .closes(22)
      .frees(30)
      .exports(40, kOther, 0x5000)
      .opens(45, kOther, 0x6000)
      .exporter_ends(90);
}

TEST(CudaIpcLimbo, IsLikelyIfTheExporterFreedOtherMemory) {
  model::Model model = limbo().model();
  process_of(model, kImporter).seen_ended_ns = 50'000'000;
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "cuda-ipc-limbo");
  EXPECT_EQ(findings[0].harm, Certainty::kLikely);
  EXPECT_EQ(findings[0].summary,
            "device memory that process 1000 exported has not been freed: process 3000 had it open, and died");
  EXPECT_EQ(findings[0].culprit.holder->pid, kImporter);
}

TEST(CudaIpcLimbo, CountsAnAllocationThatWasOpenedTwiceOnce) {
  model::Model model = limbo().opens(24, kHandle, 0x8000).closes(26, 0x8000).model();
  process_of(model, kImporter).seen_ended_ns = 50'000'000;
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(std::ranges::any_of(findings[0].chain, [](const std::string& sentence) {
    return sentence.find("that importers had closed: 1 allocation.") != std::string::npos;
  }));
}

TEST(CudaIpcLimbo, IsSilentIfTheImporterLivesOrEndedByItself) {
  EXPECT_TRUE(limbo().findings().empty());
  model::Model ended = limbo().importer_ends(60).model();
  process_of(ended, kImporter).seen_ended_ns = 61'000'000;
  EXPECT_TRUE(diagnose(ended).empty());
}

TEST(CudaIpcLimbo, IsSilentIfTheExporterFreesNothingOrEverything) {
  model::Model keeps = Shared().exports(40, kOther, 0x5000).opens(45, kOther, 0x6000).exporter_ends(90).model();
  process_of(keeps, kImporter).seen_ended_ns = 50'000'000;
  EXPECT_TRUE(diagnose(keeps).empty());
  model::Model frees = limbo().frees(60, 0x5000).model();
  process_of(frees, kImporter).seen_ended_ns = 50'000'000;
  EXPECT_TRUE(diagnose(frees).empty());
}

TEST(CudaIpcLimbo, IsSilentIfTheExporterEndedFirst) {
  // The importer's last call comes after the end of the exporter. The driver refuses this call.
  model::Model model = limbo().opens(92, kHandle, 0x7000, 1).model();
  process_of(model, kImporter).seen_ended_ns = 95'000'000;
  EXPECT_TRUE(diagnose(model).empty());
}

TEST(CudaIpc, IgnoresUnknownKinds) {
  Shared scene;
  scene.add(scene.exporter, static_cast<CudaIpcKind>(77), 5, kHandle, 0x1000);
  EXPECT_TRUE(scene.model().cuda_ipc.empty());
}

}  // namespace
}  // namespace forksight
