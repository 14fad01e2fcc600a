// Limits for reading data that other users control. A limit is far above what honest programs need. The report says
// what was left out because of a limit. budgets_doc.py makes the table in docs/security.md from this file. The table
// has a row for each constant, with the first sentence of the comment above the constant.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace forksight::files {

// The memory of the process that reads. The other limits keep the memory far smaller. This limit is for cases that
// nobody has thought of.
inline constexpr std::uint64_t kMaxReaderBytes = std::uint64_t{8} << 30U;

// How long the process that reads may work for a command. Reading the largest cores and process trees takes seconds.
inline constexpr std::chrono::minutes kLongestReading{5};
// How long a call for a file may block before its file system counts as one that does not answer.
inline constexpr std::chrono::seconds kLongestCall{2};
// How long the calls for files of one FUSE or network file system may block all together, if each of them returns soon.
inline constexpr std::chrono::milliseconds kLongestSlowCalls{5000};
// How long the calls for files of each further FUSE or network file system may block, after one was left out.
inline constexpr std::chrono::milliseconds kLongestFurtherSlowCalls{1000};
// How much processor time the work on one program or library and its debug information may take. The largest programs
// need two seconds. If it takes longer, its debug information is not read.
inline constexpr std::chrono::milliseconds kLongestFileWork{4000};
// How much processor time the work on each further program or library may take, after one was too costly.
inline constexpr std::chrono::milliseconds kLongestFurtherFileWork{1000};
// How much processor time the work on all programs and libraries together may take, until forksight leaves out the
// debug information of all files but the main programs.
inline constexpr std::chrono::milliseconds kLongestWorkOnFiles{5000};
// How much more processor time the work on all programs and libraries may take, until forksight leaves out a further
// part: the debug information of the main programs, then call frame information, then all files.
inline constexpr std::chrono::milliseconds kLongestFurtherWorkOnFiles{800};
// The processor time that an attempt to read a file counts at least, if the attempt has failed and is repeated without
// a part of the file.
inline constexpr std::chrono::milliseconds kCostOfFailure{1500};
// The memory that the work on programs, libraries and debug files may take, besides the size of these files and twice
// the size of their unpacked sections.
inline constexpr std::uint64_t kMaxFileWorkBytes = std::uint64_t{256} << 20U;
// Programs and libraries that are too costly and are read only in part. With more such files, the command gives up.
inline constexpr std::size_t kMaxCostlyFiles = 6;
// File systems that do not answer and are left out. With more such file systems, the command gives up.
inline constexpr std::size_t kMaxDeadPlaces = 4;
// How much processor time the work on the descriptors of all processes may take, at one look at a process tree. `why`
// has this time for all its looks together. After that, nothing is proven about waits for descriptors.
inline constexpr std::chrono::milliseconds kLongestDescriptorReading{5000};
// How long `run` waits until it knows which libc a process has. Without the answer, `run` proves less.
inline constexpr std::chrono::seconds kLongestLibcReading{10};
// How long `run` examines what the threads of an idle job wait for. Without the answer, the waits are not shown.
inline constexpr std::chrono::seconds kLongestIdleReading{5};

// The size of all files run.json together. The kernel reports these sizes, so the limit is applied before a file is
// read. If there are several such files, they share this limit and the following ones. The smallest file is read
// first. Half of each limit is divided equally among the files. A file may also take half of what is left of the other
// half, and the last file takes all that is left.
inline constexpr std::uint64_t kMaxRunLogBytes = std::uint64_t{128} << 20U;
// Objects, lists, numbers and texts of all files run.json together.
inline constexpr std::size_t kMaxRunLogItems = 8'000'000;
// Objects, lists, numbers and texts of one run.json that are in memory at the same time. These are the items of one
// thread, or of one process without its threads.
inline constexpr std::size_t kMaxRunLogLooseItems = 400'000;
// Processes, waits, frames and other rows of lists of all files run.json together.
inline constexpr std::size_t kMaxRunLogRows = 1'500'000;
// Waiting threads in all files run.json together. Linux allows 4 million processes and threads on a machine, and jobs
// have a few thousand.
inline constexpr std::size_t kMaxRunLogWaits = 200'000;
// Processes in all files run.json together.
inline constexpr std::size_t kMaxRunLogProcesses = 200'000;
// The size of outside.json.
inline constexpr std::uint64_t kMaxOutsideBytes = std::uint64_t{64} << 20U;
// The items of outside.json.
inline constexpr std::size_t kMaxOutsideItems = 1'000'000;

// Records of one trace that are read. An honest trace has far fewer in its 64 MiB.
inline constexpr std::size_t kMaxTraceRecords = 1'000'000;
// The memory that the contents of all traces may take together, besides the space that each trace takes on disk.
// One trace may take at most half of what is left.
inline constexpr std::uint64_t kMaxTraceMemoryBytes = std::uint64_t{192} << 20U;
// The memory that the names and stacks of all traces may take together, besides as much as each trace takes on disk.
// They are looked up after the records are read. One trace may take at most half of what is left.
inline constexpr std::size_t kMaxTraceNameBytes = std::size_t{128} << 20U;
// The memory that the findings of all rules may take together. One rule may take at most half of what is left.
inline constexpr std::size_t kMaxFindingBytes = std::size_t{192} << 20U;
// How much processor time the rules may take for a report. One rule may take at most half of what is left.
inline constexpr std::chrono::milliseconds kLongestRules{20'000};
// How much processor time the rules may take each time that `run` or `ci` uses them. The process that evaluates the
// rules then also enforces the time limit of the job, so this time is short.
inline constexpr std::chrono::milliseconds kLongestRulesOfRun{2000};
// How much processor time the work on the records of all traces together may take, besides the time for the size of
// each trace. One trace may take at most half of what is left. The names of functions are looked up later.
inline constexpr std::chrono::milliseconds kLongestTraceReading{4000};
// How much processor time the work on the records of a trace may take for each MiB. Honest traces take about 2 ms.
inline constexpr std::chrono::milliseconds kLongestTraceReadingPerMib{10};

// How deep the subfolders of a run's folder are nested. Honest folders have two or three levels.
inline constexpr int kMaxFolderDepth = 32;
// Files and folders that a search for runs in one folder visits. A job of a thousand ranks has some thousands. Without
// this limit a search of `/` takes minutes.
inline constexpr std::size_t kMaxFolderEntries = 200'000;

// The size of a file with debug information. The files of the largest browsers have about 5 GB.
inline constexpr std::uint64_t kMaxDebugFileBytes = std::uint64_t{16} << 30U;
// The unpacked size of all compressed sections of a debug file, according to their headers. The library libdw keeps all
// unpacked sections in memory.
inline constexpr std::uint64_t kMaxUnpackedBytes = std::uint64_t{512} << 20U;
// The unpacked size of the compressed sections of all debug files together, in one run of the command.
inline constexpr std::uint64_t kMaxUnpackedBytesOfRun = std::uint64_t{2} << 30U;
// The unpacked size of a packed symbol table (.gnu_debugdata). In the files of distributions, such a table has at most
// a few megabytes.
inline constexpr std::uint64_t kMaxMiniDebugBytes = std::uint64_t{64} << 20U;
// The unpacked size of all packed symbol tables together, in one run of the command.
inline constexpr std::uint64_t kMaxMiniDebugBytesOfRun = std::uint64_t{256} << 20U;

// Sections of an ELF file. Without extended numbering, a file cannot have more.
inline constexpr std::uint64_t kMaxSections = 65'280;
// The size of the names of all sections of an ELF file.
inline constexpr std::uint64_t kMaxSectionNameBytes = std::uint64_t{16} << 20U;
// The size of all notes of a program or library together. The notes in its section headers and those in its program
// headers are summed separately. Honest programs have some hundred bytes of notes.
inline constexpr std::uint64_t kMaxNoteBytes = std::uint64_t{4} << 20U;
// Call frame information of one file (.eh_frame, .debug_frame). Libraries of 1 GB have up to 60 MB of this information.
inline constexpr std::uint64_t kMaxFrameBytes = std::uint64_t{192} << 20U;
// The index from addresses to units (.debug_aranges), which libdw reads as a whole.
inline constexpr std::uint64_t kMaxAddressIndexBytes = std::uint64_t{64} << 20U;
// Symbols of one file. The largest browsers have about 2 million.
inline constexpr std::uint64_t kMaxSymbols = 4'000'000;
// Symbols of one file, after an attempt to read its call frame information or its symbols was too costly.
inline constexpr std::uint64_t kMaxSymbolsOfCostlyFile = 200'000;
// Relocations of one file. The largest browsers have about 1 million.
inline constexpr std::uint64_t kMaxRelocations = 4'000'000;
// Units of debug information of one file. The largest browsers have about 60,000.
inline constexpr std::size_t kMaxUnits = 500'000;

// Programs and libraries that one process has mapped.
inline constexpr std::size_t kMaxModules = 16'384;
// Mapped pieces of files that a core lists. The limit of Linux, vm.max_map_count, is 65,530 by default.
inline constexpr std::size_t kMaxCoreMappings = 1'000'000;

// The notes of a core that are visited, of all its segments together. Segments may overlap, and a note may have no
// content, so the size of the file limits neither the notes nor their bytes. The kernel writes about 5 notes and at
// most 16 KB for each thread.
inline constexpr std::uint64_t kMaxCoreNotes = 10'000'000;
// The bytes of the visited notes of a core.
inline constexpr std::uint64_t kMaxCoreNoteBytes = std::uint64_t{4} << 30U;

// The bytes of a mapped file that are copied out of the memory of the process, if the file is gone.
inline constexpr std::size_t kMaxCopyBytes = std::size_t{64} << 20U;
// The bytes of all mapped files of one process that are copied out of its memory.
inline constexpr std::size_t kMaxCopiesBytes = std::size_t{512} << 20U;

// The size of a file that is copied into memory, because it is on a FUSE mount that only root may use.
inline constexpr std::uint64_t kMaxFileCopyBytes = std::uint64_t{256} << 20U;

// Memory that is searched for the objects of multiprocessing's locks, in one run of the command. A large training
// process has some 100 MB of small Python objects.
inline constexpr std::uint64_t kMaxSemaphoreSearchBytes = std::uint64_t{512} << 20U;

// Descriptors that threads poll, and epoll instances that are compared with theirs, at one look at a process tree. The
// limit is needed because each of them costs a look into /proc. Nothing is proven about further waits for polled
// descriptors.
inline constexpr std::size_t kMaxPolledDescriptors = 65'536;

// Processes that could end a wait, if this wait is to be examined however many waits there are. The work on such waits
// grows linearly with their number.
inline constexpr std::size_t kFewPossibleWakers = 64;
// Pairs of a waiting thread and a process that could end its wait, at one look at a process tree, of waits that more
// processes could end. If 1,000 processes wait at one pipe that all of them have open, there are a million such pairs.
// About further waits that more processes could end nothing is proven.
inline constexpr std::size_t kMaxPossibleWakers = 1'200'000;

// Processes and threads that the JSON report lists for one wait: those that could end the wait.
inline constexpr std::size_t kMaxListedWakers = 100;
// Victims that a finding lists if an earlier finding about the same process lists them, too. The first of these
// findings lists all victims of the process.
inline constexpr std::size_t kMaxListedVictims = 100;

}  // namespace forksight::files
