// Finds the function that a std::thread ran, in the memory of a process that no longer has the thread.
#pragma once

#include <cstdint>

#include "image/image.hpp"
#include "symbols/symbols.hpp"

namespace forksight::inspect {

// Finds the start function of a std::thread. The start routine of libstdc++ gets a std::thread::_State, which is on the
// heap as long as the thread runs. If the thread runs a lambda or functor, the type of the _State names this lambda or
// functor. If it runs a function or member function, the _State contains the address of that function. False: the
// function is not known, as for most objects of type std::function.
bool find_std_thread_start(const image::Image& image, symbols::Symbolizer& symbolizer, std::uint64_t state,
                           symbols::CodeSymbol& out);

}  // namespace forksight::inspect
