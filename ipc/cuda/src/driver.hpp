// The functions of the machine's CUDA driver, which is loaded with dlopen(), and the error texts for failed calls.
#pragma once

#include "driver_types.hpp"
#include "forksight/ipc_cuda/result.hpp"

namespace forksight::ipc_cuda::detail {

struct driver {
#define FORKSIGHT_CUDA_FUNCTION(member, symbol, parameters) int(*member) parameters = nullptr;
#include "driver_functions.def"

  // The driver of this process. It is never unloaded. Errors: no_driver.
  static result<const driver*> load();
};

// Makes a context current as long as this object exists. Meanwhile the thread has CU_STREAM_CAPTURE_MODE_RELAXED, so
// that its calls do not invalidate the capture of another stream. In other modes, cuEventQuery() returns error 900
// during such a capture, and invalidates the capture (seen with driver 580.159).
class current_context {
 public:
  current_context(const driver& api, cu_context context)
      : api_(api), is_pushed_(api.context_push(context) == kSuccess) {
    is_relaxed_ = api.capture_mode(&mode_) == kSuccess;
  }
  current_context(const current_context&) = delete;
  current_context& operator=(const current_context&) = delete;
  ~current_context() {
    cu_context ours = nullptr;
    if (is_relaxed_) (void)api_.capture_mode(&mode_);
    if (is_pushed_) (void)api_.context_pop(&ours);
  }

 private:
  const driver& api_;
  bool is_pushed_, is_relaxed_ = false;
  int mode_ = kCaptureRelaxed;  // after the constructor: the mode that the thread had before
};

__attribute__((format(printf, 2, 3))) error failure(errc code, const char* format, ...);
// Returns the error of a failed call. `format` says what was tried. The name of the function and its answer follow, as
// in "<what was tried>: cuMemCreate answers 2, CUDA_ERROR_OUT_OF_MEMORY".
__attribute__((format(printf, 4, 5))) error failed_call(const driver& api, int answer, const char* function,
                                                        const char* format, ...);
// Turns an error of the queue into an error of this library.
error from_queue(const ipc::error& why);

}  // namespace forksight::ipc_cuda::detail
