// Which glibc an ELF file is, or was linked with: by what its own code answers. Nothing is run and nothing is guessed.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "forksight/abi/glibc.hpp"

namespace forksight::libc {

// By the name of the file: libc.so.6, or libc-2.31.so, as it was called up to 2.33.
bool is_libc_name(std::string_view path);

// `elf`: all of the file, untrusted. The version is the text that gnu_get_libc_version() returns, or nptl_version in a
// program that is linked statically; the kind of condition variables is what pthread_cond_signal() and
// pthread_cond_broadcast() read first.
abi::Libc read_libc(std::span<const std::byte> elf);
// The same of a file; nothing is known of one that cannot be read. Remembers what it has read.
abi::Libc read_libc_file(const std::string& path);

}  // namespace forksight::libc
