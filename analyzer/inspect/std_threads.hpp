// Finds what a std::thread was to run, in the memory of a process that no longer has the thread.
#pragma once

#include <cstdint>

#include "image/image.hpp"
#include "symbols/symbols.hpp"

namespace forksight::inspect {

// Finds the start function of a std::thread. libstdc++'s start routine gets a std::thread::_State, which is on the heap
// as long as the thread runs. Its type names a lambda or functor. For a function or member function, it contains the
// address. False: the function is not known, as for most objects of type std::function.
bool find_std_thread_start(const image::Image& image, symbols::Symbolizer& symbolizer, std::uint64_t state,
                           symbols::CodeSymbol& out);

}  // namespace forksight::inspect
