// How much forksight reads of what other users control. docs/security.md describes what these limits promise. A limit
// is far above what honest programs need. What is left out because of a limit is said in the report.
#pragma once

#include <cstddef>
#include <cstdint>

namespace forksight::files {

// The size of run.json, which the kernel reports before the file is read.
inline constexpr std::uint64_t kMaxRunLogBytes = std::uint64_t{128} << 20U;
// Objects, lists, numbers and texts of run.json: as many as are parsed, and as many as are in memory at once, which are
// those of one thread, or those of one process without its threads.
inline constexpr std::size_t kMaxRunLogItems = 8'000'000;
inline constexpr std::size_t kMaxRunLogLooseItems = 400'000;
// Processes, waits, frames and other rows of lists of run.json.
inline constexpr std::size_t kMaxRunLogRows = 1'500'000;
// Threads that wait, in run.json: Linux allows 4 million processes and threads on a machine, and jobs have few
// thousands.
inline constexpr std::size_t kMaxRunLogWaits = 200'000;
// Processes in run.json.
inline constexpr std::size_t kMaxRunLogProcesses = 200'000;
// The size of outside.json, and its items.
inline constexpr std::uint64_t kMaxOutsideBytes = std::uint64_t{64} << 20U;
inline constexpr std::size_t kMaxOutsideItems = 1'000'000;

// A file with debug information. Those of the largest browsers have about 5 GB.
inline constexpr std::uint64_t kMaxDebugFileBytes = std::uint64_t{16} << 30U;
// What the compressed sections of one file say that they unpack to. libdw holds all of it in memory.
inline constexpr std::uint64_t kMaxUnpackedBytes = std::uint64_t{512} << 20U;
// The sum of that for all files of one run of the command.
inline constexpr std::uint64_t kMaxUnpackedBytesOfRun = std::uint64_t{2} << 30U;
// What the symbol table in .gnu_debugdata unpacks to. Those of distributions have at most a few megabytes.
inline constexpr std::uint64_t kMaxMiniDebugBytes = std::uint64_t{64} << 20U;

// Sections of an ELF file: without extended numbering there are no more.
inline constexpr std::uint64_t kMaxSections = 65'280;
// The names of the sections.
inline constexpr std::uint64_t kMaxSectionNameBytes = std::uint64_t{16} << 20U;
// All notes of a program or library together, by its section headers and by its program headers. Programs have some
// hundred bytes.
inline constexpr std::uint64_t kMaxNoteBytes = std::uint64_t{4} << 20U;
// Call frame information of one file (.eh_frame, .debug_frame). Libraries of 1 GB have up to 60 MB.
inline constexpr std::uint64_t kMaxFrameBytes = std::uint64_t{192} << 20U;
// The index from addresses to units (.debug_aranges), which libdw reads as a whole.
inline constexpr std::uint64_t kMaxAddressIndexBytes = std::uint64_t{64} << 20U;
// Symbols of one file. The largest browsers have about 2 million.
inline constexpr std::uint64_t kMaxSymbols = 8'000'000;
// Units of debug information of one file. The largest browsers have about 60,000.
inline constexpr std::size_t kMaxUnits = 500'000;

// Programs and libraries that one process has mapped.
inline constexpr std::size_t kMaxModules = 16'384;
// Pieces of files that a core says were mapped. vm.max_map_count is 65,530, unless it was raised.
inline constexpr std::size_t kMaxCoreMappings = 1'000'000;

// What is copied out of the memory of one process of files that are gone, by file and together.
inline constexpr std::size_t kMaxCopyBytes = std::size_t{64} << 20U;
inline constexpr std::size_t kMaxCopiesBytes = std::size_t{512} << 20U;

// Descriptors that the threads of one process poll: each costs a look into /proc.
inline constexpr std::size_t kMaxPolledDescriptors = 65'536;

}  // namespace forksight::files
