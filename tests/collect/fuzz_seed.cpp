// fuzz_seed FOLDER: writes good traces, from which the fuzzer starts.
#include <filesystem>

#include "support/cuda_scene.hpp"
#include "support/handler_scene.hpp"
#include "support/scenes.hpp"

int main(int argc, char** argv) {
  using namespace forksight;
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  test::LockTrace lock({});
  lock.end(lock.touch(trace::TouchKind::kLock), 0);
  lock.trace.write(folder / "lock");
  test::LockTrace custom({.kind = trace::LockKind::kCustom, .memory = {1}});
  custom.name(custom.touch(trace::TouchKind::kLock), "spin lock");
  custom.end(custom.wait(), 4);
  custom.trace.write(folder / "custom");
  test::LockTrace condition({.kind = trace::LockKind::kCondition,
                             .memory = test::condition_memory(2),
                             .holder_waits = trace::WaitKind::kCondition});
  condition.touch(trace::TouchKind::kCondition, trace::kTouchStolen, trace::TouchAction::kNone,
                  trace::SyncOperation::kSignal);
  condition.trace.write(folder / "condition");
  test::PoolTrace pool({});
  pool.touch(4);
  pool.cure(trace::CureMethod::kRebuild, trace::CureResult::kApplied, true);
  pool.trace.write(folder / "pool");
  test::LibcTrace libc({"localtime", trace::bit_of(trace::LibcLock::kTimeZone)});
  libc.quiesced(1, 1, 1);
  libc.end(libc.touch({"tzset", trace::bit_of(trace::LibcLock::kTimeZone)}));
  libc.trace.write(folder / "libc");
  test::CudaTrace cuda({});
  cuda.answer(cuda.call("cuInit"), 3);
  cuda.trace.write(folder / "cuda");
  test::whole_handler_trace().write(folder / "handlers");
  return 0;
}
