#include "python/python_signal.hpp"

#include <signal.h>

#include "guest/config.hpp"
#include "guest/kept_errno.hpp"
#include "guest/signal_action.hpp"
#include "guest/sys.hpp"
#include "record/writer.hpp"

#include "guest/house_rules.hpp"

// The handler returns to this code, the restorer, which calls rt_sigreturn.
asm(R"(
  .text
  .type forksight_sigreturn, @function
  .hidden forksight_sigreturn
forksight_sigreturn:
  mov $15, %eax
  syscall
  .size forksight_sigreturn, . - forksight_sigreturn
)");
extern "C" void forksight_sigreturn();

namespace forksight {

namespace {

constexpr unsigned long kRestorer = 0x04000000;  // SA_RESTORER
constexpr std::uint64_t kAllSignals = ~std::uint64_t{0};

constinit bool g_installed = false;

// Called if the signal is not a request of `forksight run`. Gives the signal its default effect. For a real-time
// signal, this is the end of the process.
void pass_on(int number) {
  KernelAction action{};
  change_action(number, &action, nullptr);
  sys::call(SYS_tgkill, sys::getpid(), sys::gettid(), number);
}

void on_request(int number, siginfo_t* info, void*) {
  const KeptErrno kept;
  const bool is_request =
      info->si_code == SI_QUEUE && reinterpret_cast<std::uint64_t>(info->si_value.sival_ptr) == trace::kPythonRequest;
  if (is_request) {
    record_python_on_request();
  } else {
    pass_on(number);
  }
}

}  // namespace

void answer_python_signal() {
  const std::int32_t number = g_config.python_signal;
  if (g_installed || number == 0) return;
  KernelAction before{};
  if (change_action(number, nullptr, &before) != 0 || before.handler != nullptr) return;
  // With SA_RESTART, system calls that the signal interrupts are restarted.
  const KernelAction action{on_request, SA_SIGINFO | SA_RESTART | SA_ONSTACK | kRestorer, forksight_sigreturn,
                            kAllSignals};
  if (change_action(number, &action, nullptr) != 0) return;
  g_installed = true;
  append(trace::RecordType::kPythonSignal, trace::PythonSignalRecord{static_cast<std::uint32_t>(number), 0});
}

}  // namespace forksight
