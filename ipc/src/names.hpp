// The names of named queues. A random name is "/forksight-<32 hex digits>". Only create() makes random names. A chosen
// name is "/forksight-<choice>". The caller passes the choice to open_or_create(). The file of a queue is in /dev/shm.
#pragma once

#include <string>
#include <string_view>

#include "forksight/ipc/result.hpp"

namespace forksight::ipc::detail {

constexpr std::string_view kNamePrefix = "/forksight-";

bool is_random_name(std::string_view name);
bool is_chosen_name(std::string_view name);
inline bool is_queue_name(std::string_view name) { return is_random_name(name) || is_chosen_name(name); }
// Checks a name that the user chose, without the prefix. Fails with errc::bad_option if the name is invalid.
result<void> check_choice(std::string_view choice);
error no_queue_name(const std::string& name);
error no_queue_file(const std::string& name);  // errc::untrusted: the name belongs to a file that is not a queue

inline std::string path_of(const std::string& name) { return "/dev/shm" + name; }
// The chosen name of the file behind a descriptor, even if the name was removed. Empty if the file has no chosen name.
// Fails with errc::system if /proc cannot be read.
result<std::string> chosen_name_of(int fd);
// True if the name belongs to the file behind the descriptor.
bool is_called(int fd, const std::string& name);
// True if the name belongs to a FIFO, a socket or a device. This function does not open the file, because an open() of
// such a file has an effect on other processes.
bool is_special_file(const std::string& name);
// True if the file begins with the magic number of a queue. A queue gets its chosen name only when it is complete. So a
// file that has a chosen name, but does not begin with this number, is not a queue.
bool begins_as_queue(int fd);

}  // namespace forksight::ipc::detail
