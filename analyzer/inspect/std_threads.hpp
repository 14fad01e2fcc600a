// What a std::thread was to run, out of the memory of a process that does not have the thread any more.
#pragma once

#include <cstdint>

#include "image/image.hpp"
#include "symbols/symbols.hpp"

namespace forksight::inspect {

// libstdc++'s start routine gets a std::thread::_State, which is on the heap for as long as the thread runs. Its type
// names the lambda or functor, and of a function, or a member function, it has the address. False: not known, which of
// a std::function nothing is.
bool find_std_thread_start(const image::Image& image, symbols::Symbolizer& symbolizer, std::uint64_t state,
                           symbols::CodeSymbol& out);

}  // namespace forksight::inspect
