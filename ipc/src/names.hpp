// The names of named queues. A random name is "/forksight-<32 hex digits>". Only create() makes random names. A chosen
// name is "/forksight-<name of open_or_create()>". The file of a queue is in /dev/shm.
#pragma once

#include <string>
#include <string_view>

#include "forksight/ipc/result.hpp"

namespace forksight::ipc::detail {

constexpr std::string_view kNamePrefix = "/forksight-";

bool is_random_name(std::string_view name);
bool is_chosen_name(std::string_view name);
inline bool is_queue_name(std::string_view name) { return is_random_name(name) || is_chosen_name(name); }
// Checks a name that the user chose, without the prefix. bad_option: the name is invalid.
result<void> check_choice(std::string_view choice);
error no_queue_name(const std::string& name);
error no_queue_file(const std::string& name);  // untrusted: the name belongs to a file that is not a queue

inline std::string path_of(const std::string& name) { return "/dev/shm" + name; }
// The chosen name of the file behind a descriptor, even if the name was removed. Empty: the file has no chosen name.
// Error: system (/proc cannot be read).
result<std::string> chosen_name_of(int fd);
// True if the name belongs to the file behind the descriptor.
bool is_called(int fd, const std::string& name);
// True if the name belongs to a FIFO, a socket or a device. An open() of such a file has an effect on other processes,
// so the file is not opened to find this out.
bool is_special_file(const std::string& name);
// True if the file begins with the magic number of a queue. A queue gets its chosen name only when it is complete. So a
// file with a chosen name that begins otherwise is not a queue.
bool begins_as_queue(int fd);

}  // namespace forksight::ipc::detail
