// Where a thread is or was in its code.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace forksight::model {

// The Frame::function of a frame that the kernel made in order to call a signal handler. The frames outside of it
// belong to the code that the signal interrupted.
inline constexpr char kSignalFrame[] = "<signal handler called>";

struct Frame {
  std::string function;  // demangled; "" if unknown. Inlined frames are separate frames, innermost first.
  std::string file;      // source file as in the debug information; "" if none
  int line = 0;          // 0: unknown
  std::string module;    // path of the library or executable; "" if the address is in none
  // Link-time address in the module, as addr2line takes it. For a frame that called another one, this is the last byte
  // of the call, because the return address may belong to the next line.
  std::uint64_t offset = 0;
  bool approximate = false;  // found by scanning the stack, not by unwinding
  bool inlined = false;
  bool python = false;
};

struct Stack {
  std::vector<Frame> frames;  // innermost first
  bool cut = false;           // outer frames are missing
  bool known() const { return !frames.empty(); }
};

}  // namespace forksight::model
