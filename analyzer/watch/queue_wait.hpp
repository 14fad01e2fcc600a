// Describes what a thread waits for if it sleeps in one of forksight's own shared-memory queues (ipc/). Such a wait
// never lasts for ever: the thread wakes up after a while and looks for dead processes. The description is still
// useful, because it shows which process holds the buffers.
#pragma once

#include <cstdint>
#include <string>

#include "files/reader.hpp"
#include "proc/descriptor_tables.hpp"

namespace forksight::watch {

// Returns a text such as "a free buffer of queue 3f2a81c0, 5 queued, 4 held by process 812 \"worker\" (alive, state T)
// for 41.0 s; received by ...". Returns "" if the word is not part of a queue, or if the queue cannot be read.
std::string describe_queue_wait(const files::Reader& reader, proc::DescriptorTables& tables, std::int32_t pid,
                                std::int32_t tid, std::uint64_t word);

}  // namespace forksight::watch
