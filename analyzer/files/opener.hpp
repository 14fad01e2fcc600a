// Asks another process of forksight to open a file. If root runs forksight, the process that parses files and memory of
// other users has given up its user and its rights over files (guard/child.hpp). This process can open what everybody
// may open. For all other files, this process sends requests through a socket to another process, the opener
// (guard/opener.hpp). The opener checks each request, opens the file, and parses nothing.
#pragma once

#include <dirent.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "files/descriptor.hpp"
#include "files/open_file.hpp"

namespace forksight::files {

// What a request asks for, and after the colon: what the reply contains.
enum class Wish : std::uint32_t {
  // A regular file: a descriptor for reading. If `number` is 1: a descriptor of a copy of the file in memory. The copy
  // is for files on a FUSE mount without allow_other. Such a mount refuses every call of a user other than its own,
  // even fstat() of a descriptor that its own user has passed on.
  kFile,
  kFolder,  // a folder that the caller named, or a folder below it: a descriptor for reading
  kStatus,  // what stat(2) says about a path: a struct stat. Links are followed
  kEntry,   // a file or folder of /proc/PID: a descriptor for reading
  kLink,    // the text of a symbolic link of /proc/PID
  // The texts of the links in /proc/PID/fd, from the descriptor `number` on, as many as fit into a reply. For each
  // link: the descriptor, a blank, the text, a NUL. After the last link of the folder: one more NUL.
  kLinks,
  kLinkStatus,  // what lstat(2) says about a link of /proc/PID/fd: a struct stat. Its rights show how the file is open
  // The contents of /proc/PID/task/TID/syscall for the threads of /proc/PID/task, from the thread `number` on, as many
  // as fit into a reply. For each thread: its id, a blank, 0 (read), 1 (gone) or 2 (refused), a blank, the text, a NUL.
  // After the last thread: one more NUL.
  kCalls,
  kSocket,  // a NETLINK_SOCK_DIAG socket in the network namespace of a thread
};
inline constexpr Wish kLastWish = Wish::kSocket;

struct Request {
  Wish wish = Wish::kFile;
  std::string path = {};  // absolute, or relative to the working folder of the command
  std::optional<Owner> owner = {};
  std::optional<MappedFile> mapped = {};
  // kFile: 1 for a copy. kLinks, kCalls: the first descriptor or thread that is wanted. kSocket: the thread.
  std::int32_t number = 0;
};

struct Reply {
  int error = 0;  // an errno; 0: the wish was granted
  Descriptor file;
  std::string bytes;
};

// Sends requests through `socket` from now on. The process that parses calls this function before it starts threads.
void use_opener(int socket);
bool has_opener();
// True if an opener may succeed where a call of this process has failed with `error`. ENOENT counts if /proc is mounted
// with the option hidepid, because /proc then hides processes of other users.
bool may_help(int error);

// Sends a request and waits for the reply. If the opener has ended, this function ends the process with status 3,
// because a report would be incomplete without the files that the opener cannot open any more.
Reply ask_opener(const Request& request);
// Sends several requests, and returns a reply for each of them. This takes less time than a call for each request,
// because one message contains many requests.
std::vector<Reply> ask_opener(std::span<const Request> requests);
// Sends a request without `owner` and `mapped`.
Reply ask_opener(Wish wish, const std::string& path, std::int32_t number = 0);

// Opens a folder for readdir(). If this process may not open the folder, asks the opener for `wish` (kFolder or
// kEntry). On failure, returns null and sets errno.
DIR* open_folder(const std::string& folder, Wish wish);

// The bytes of a request. decode_request() returns nullopt for bytes that are no request.
std::string encode_request(const Request& request);
std::optional<Request> decode_request(std::string_view bytes);
inline constexpr std::size_t kMaxRequestBytes = std::size_t{320} << 10U;  // a path, and 65,536 groups

// A message contains one or more requests, or one or more replies. A message of replies answers the first requests of
// the message before: as many as there is room for, and at least one.
inline constexpr std::size_t kMaxReplyBytes = std::size_t{64} << 10U;  // a message with replies
inline constexpr std::size_t kMaxReplyText = kMaxReplyBytes - 16;      // `bytes` of a reply

// A message with requests, each as encode_request() returns it. decode_requests() returns nothing for bytes that are no
// such message.
void add_request(std::string& message, std::string_view request);
std::vector<Request> decode_requests(std::string_view message);

// A message with replies. The descriptors of the replies are sent together with the message, in the same order.
class ReplyMessage {
 public:
  bool has_room_for(const Reply& reply) const;
  void add(Reply reply);
  std::string_view bytes() const { return bytes_; }
  std::vector<int> descriptors() const;

 private:
  std::string bytes_;
  std::vector<Descriptor> files_;
};
// Returns the replies of a message, at most `most`. If the process that received the message may open no more
// descriptors, descriptors of replies are missing. A reply whose descriptor is missing has the error EMFILE.
std::vector<Reply> decode_replies(std::string_view message, std::vector<Descriptor> files, std::size_t most);

// Receives one message of at most `room.size()` bytes, and the descriptors that came with it. Returns the bytes of the
// message, which lie in `room`; "" if the other end is closed.
std::string_view receive_message(int socket, std::span<char> room, std::vector<Descriptor>& files);
// Sends one message with descriptors, at most 253. Returns false and sets errno if the message was not sent.
bool send_message(int socket, std::string_view bytes, std::span<const int> descriptors);

}  // namespace forksight::files
