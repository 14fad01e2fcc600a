// Finds out which glibc an ELF file is, or was linked with. The answer is read from the file itself. Nothing is run and
// nothing is guessed.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "forksight/abi/glibc.hpp"

namespace forksight::libc {

// True if the file name is libc.so.6, or has the form libc-2.31.so, which glibc used up to 2.33.
bool is_libc_name(std::string_view path);
// True if the file name is libpthread.so.0, or has the form libpthread-2.31.so. Up to 2.33, this library has glibc's
// functions for threads.
bool is_libpthread_name(std::string_view path);

// `elf`: the whole file, untrusted. The version is the text that gnu_get_libc_version() returns. In a statically linked
// program, the version is the text nptl_version. The kind of condition variables is known from what
// pthread_cond_signal() and pthread_cond_broadcast() read first. Up to glibc 2.33, these functions of libc only call
// the functions of libpthread. So libc does not show the kind, and libpthread shows the kind but not the version.
abi::Libc read_libc(std::span<const std::byte> elf);
// Like read_libc(), for the file at `path`. If the file cannot be read, all members of the result are unknown. Results
// are cached.
abi::Libc read_libc_file(const std::string& path);

}  // namespace forksight::libc
