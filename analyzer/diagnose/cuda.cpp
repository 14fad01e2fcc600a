#include "diagnose/cuda.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "diagnose/words.hpp"

namespace forksight::cuda {

namespace {

struct Named {
  int result;
  const char* name;
};

// Some values of enum CUresult ("CUDA Driver API" 12.2, section 6.1). Reports show these values with their names.
constexpr Named kResults[] = {
    {1, "CUDA_ERROR_INVALID_VALUE"},     {2, "CUDA_ERROR_OUT_OF_MEMORY"},     {3, "CUDA_ERROR_NOT_INITIALIZED"},
    {4, "CUDA_ERROR_DEINITIALIZED"},     {100, "CUDA_ERROR_NO_DEVICE"},       {101, "CUDA_ERROR_INVALID_DEVICE"},
    {201, "CUDA_ERROR_INVALID_CONTEXT"}, {208, "CUDA_ERROR_ALREADY_MAPPED"},  {304, "CUDA_ERROR_OPERATING_SYSTEM"},
    {400, "CUDA_ERROR_INVALID_HANDLE"},  {700, "CUDA_ERROR_ILLEGAL_ADDRESS"}, {719, "CUDA_ERROR_LAUNCH_FAILED"},
    {800, "CUDA_ERROR_NOT_PERMITTED"},   {801, "CUDA_ERROR_NOT_SUPPORTED"},   {999, "CUDA_ERROR_UNKNOWN"},
};

constexpr std::string_view kQueryCalls[] = {
    "cuCtxGetCurrent",  "cuCtxSetCurrent",     "cuCtxPushCurrent",   "cuCtxGetDevice",
    "cuCtxSynchronize", "cuStreamSynchronize", "cuEventSynchronize", "cuPointerGetAttribute",
};

const char* way(model::CudaWay how) {
  switch (how) {
    case model::CudaWay::kSymbol: return ", which it is linked with,";
    case model::CudaWay::kDlsym: return ", looked up by dlsym,";
    case model::CudaWay::kGetProcAddress: return ", looked up by cuGetProcAddress,";
    case model::CudaWay::kUnknown: break;
  }
  return "";
}

std::string describe_contexts(const model::Cuda& cuda) {
  if (!cuda.asked || cuda.active_contexts.empty()) return {};
  constexpr std::size_t kMostNamed = 8;
  std::string devices;
  for (std::size_t i = 0; i < cuda.active_contexts.size() && i < kMostNamed; ++i) {
    devices += fmt::format("{}{}", i == 0 ? "" : ", ", cuda.active_contexts[i]);
  }
  if (cuda.active_contexts.size() > kMostNamed) devices += ", ...";
  return fmt::format("At the fork the primary context was active on device{} {}.",
                     cuda.active_contexts.size() == 1 ? "" : "s", devices);
}

}  // namespace

std::string answer(int result) {
  const auto known = std::ranges::find(kResults, result, &Named::result);
  return known == std::end(kResults) ? fmt::format("error {}", result) : fmt::format("{} ({})", known->name, result);
}

std::string plain_name(const model::Touch& touch) {
  const std::string& name = touch.function;
  const bool is_versioned = name.size() > 3 && name[name.size() - 3] == '_' && name[name.size() - 2] == 'v';
  return is_versioned ? name.substr(0, name.size() - 3) : name;
}

bool only_queries(const model::Touch& touch) {
  return std::ranges::find(kQueryCalls, plain_name(touch)) != std::end(kQueryCalls);
}

Culprit describe_driver(const Evidence& evidence, const model::Fork& fork) {
  const model::Cuda& cuda = *fork.cuda;
  Culprit culprit;
  culprit.kind = CulpritKind::kDevice;
  culprit.name = cuda.version > 0 ? fmt::format("CUDA driver {}.{}", cuda.version / 1000, cuda.version % 1000 / 10)
                                  : std::string("CUDA driver");
  culprit.library = cuda.library;
  culprit.stack = cuda.init_stack;
  if (cuda.init_tid != 0 && !cuda.was_lost) {
    Holder holder;
    holder.pid = evidence.process(fork.process).pid;
    holder.tid = cuda.init_tid;
    holder.name = cuda.init_thread;
    culprit.holder = std::move(holder);
  }
  return culprit;
}

std::string describe_init(const model::Cuda& cuda) {
  if (cuda.init_tid == 0) return "CUDA was initialised";
  return fmt::format("cuInit was called{}", words::at(" at ", cuda.init_stack));
}

void tell_init(const Evidence& evidence, const model::Fork& fork, Finding& finding) {
  const model::Cuda& cuda = *fork.cuda;
  const std::int32_t parent = evidence.process(fork.process).pid;
  const std::string whose =
      cuda.was_lost ? fmt::format("An ancestor of process {}", parent) : fmt::format("Its parent, process {},", parent);
  if (cuda.init_tid == 0) {
    add_sentence(finding,
                 fmt::format("{} had initialised CUDA before this fork{}: the driver itself says so. forksight did not "
                             "see who called cuInit: possibly a library that calls the driver by its private tables.",
                             whose, words::at(" at ", fork.stack)));
  } else {
    add_sentence(finding,
                 fmt::format("{} had initialised CUDA before this fork{}: thread {}{} called cuInit{}{}.", whose,
                             words::at(" at ", fork.stack), cuda.init_tid, words::name_in_quotes(cuda.init_thread),
                             way(cuda.init_way), words::at(" at ", cuda.init_stack)));
  }
  add_sentence(finding, describe_contexts(cuda));
}

void add_fixes(const model::Process& process, const model::Cuda& cuda, Finding& finding) {
  const std::string where = words::at(" at ", cuda.init_stack);
  finding.fixes.push_back(
      {fmt::format(
           "Make the first CUDA call in the children: remove the call of cuInit{} from the parent, or fork before it.",
           where.empty() ? std::string(" there") : where),
       true});
  if (words::is_python(process)) {
    finding.fixes.push_back(
        {"In Python, start workers with multiprocessing.set_start_method(\"spawn\") or \"forkserver\" (of PyTorch: "
         "torch.multiprocessing, or DataLoader(multiprocessing_context=\"spawn\")): they exec, and begin without "
         "CUDA."});
  } else {
    finding.fixes.push_back({"Exec in the child: a new program can initialise CUDA for itself.", true});
  }
  finding.fixes.push_back(
      {"If the parent only asks whether there are GPUs, let it ask NVML, which does not initialise CUDA "
       "(PYTORCH_NVML_BASED_CUDA_CHECK=1 for torch.cuda.is_available(), pynvml elsewhere), or count "
       "/proc/driver/nvidia/gpus."});
}

}  // namespace forksight::cuda
