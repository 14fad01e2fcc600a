#include "symbols/debug_files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "files/elf_tables.hpp"
#include "files/open_file.hpp"
#include "symbols/elf_module.hpp"

namespace forksight::symbols {
namespace {

constexpr std::chrono::seconds kServerLimit{5};

std::atomic<bool> g_may_ask_servers = false;
std::atomic<bool> g_was_given_up = false;

// Calls `request`, which asks the servers for a file and returns a descriptor or -1. If `request` fails after more than
// kServerLimit, the servers are not asked again.
template <class Request>
int ask_servers(const Request& request) {
  const auto start = std::chrono::steady_clock::now();
  const int fd = request();
  if (fd < 0 && std::chrono::steady_clock::now() - start >= kServerLimit) {
    g_may_ask_servers = false;
    g_was_given_up = true;
  }
  return fd;
}

constexpr char kDebugFolder[] = "/usr/lib/debug";

// Returns the path at which packages of debug information install the file with this build-id; "" if there is no
// build-id.
std::string place_by_build_id(std::span<const std::uint8_t> build_id) {
  if (build_id.size() < 2) return "";
  return fmt::format("{}/.build-id/{:02x}/{:02x}.debug", kDebugFolder, build_id[0], fmt::join(build_id.subspan(1), ""));
}

// Returns the paths that the debug link `link_name` of the file `file_name` may mean. For a link with "..", returns no
// path.
std::vector<std::string> places_by_link(const char* file_name, const char* link_name) {
  if (link_name == nullptr || file_name == nullptr) return {};
  const std::filesystem::path link(link_name);
  if (std::ranges::find(link, "..") != link.end()) return {};
  if (link.is_absolute()) return {link.string()};
  const std::filesystem::path folder = std::filesystem::path(file_name).parent_path();
  return {folder / link, folder / ".debug" / link, std::filesystem::path(kDebugFolder) / folder.relative_path() / link};
}

}  // namespace

bool allow_debuginfod(bool is_asked_for) {
  if (::geteuid() == 0 && !is_asked_for) return false;
  // Without these settings, libdebuginfod would wait 90 seconds, three times.
  ::setenv("DEBUGINFOD_TIMEOUT", "20", 0);
  ::setenv("DEBUGINFOD_RETRY_LIMIT", "1", 0);
  g_may_ask_servers = true;
  return true;
}

bool may_ask_servers() {
  if (!g_may_ask_servers) return false;
  const char* const urls = std::getenv("DEBUGINFOD_URLS");
  return urls != nullptr && *urls != '\0';
}

std::string debuginfod_limit() {
  if (!g_was_given_up) return {};
  return "a server of DEBUGINFOD_URLS did not answer in time, and forksight did not ask it again: functions and lines "
         "may be missing";
}

int fetch_elf_file(std::span<const std::uint8_t> build_id) {
  if (!may_ask_servers() || build_id.empty()) return -1;
  static constexpr Dwfl_Callbacks kByBuildId = {dwfl_build_id_find_elf, dwfl_build_id_find_debuginfo, nullptr, nullptr};
  Dwfl* const session = dwfl_begin(&kByBuildId);
  if (session == nullptr) return -1;
  dwfl_report_begin(session);
  constexpr GElf_Addr kAnywhere = 0x10000;  // libdwfl needs some address for the module and for its build-id
  Dwfl_Module* const module = dwfl_report_module(session, "wanted", kAnywhere, 2 * kAnywhere);
  int fd = -1;
  if (module != nullptr && dwfl_module_report_build_id(module, build_id.data(), build_id.size(), kAnywhere + 64) == 0) {
    char* file_name = nullptr;
    Elf* elf = nullptr;
    fd = ask_servers([&] { return dwfl_build_id_find_elf(module, nullptr, "wanted", kAnywhere, &file_name, &elf); });
    if (elf != nullptr) elf_end(elf);
    std::free(file_name);
  }
  dwfl_report_end(session, nullptr, nullptr);
  dwfl_end(session);
  return fd;
}

bool has_build_id(int fd, std::span<const std::uint8_t> build_id) {
  const auto tables = files::read_tables(fd);
  return tables && std::ranges::equal(files::read_build_id(fd, tables.value()), build_id);
}

int find_debug_file(Dwfl_Module* module, void** userdata, const char*, Dwarf_Addr, const char* file_name,
                    const char* debuglink_file, GElf_Word debuglink_crc, char** debuginfo_file_name) {
  ElfModule* const self = userdata == nullptr ? nullptr : static_cast<ElfModule*>(*userdata);
  if (self == nullptr || self->is_limited()) return -1;
  // libdwfl passes a checksum for each link, except for the link to dwz's shared file. So a link without a checksum is
  // the link to dwz's shared file.
  const bool is_shared_part = debuglink_file != nullptr && debuglink_crc == 0;
  std::vector<std::uint8_t> build_id;
  if (is_shared_part) {
    build_id = self->shared_part_build_id(debuglink_file);
  } else {
    const unsigned char* bits = nullptr;
    GElf_Addr address = 0;
    const int length = dwfl_module_build_id(module, &bits, &address);
    if (length > 0) build_id.assign(bits, bits + length);
  }
  if (build_id.empty()) return -1;  // without a build-id, it is not known which file belongs to the module

  std::vector<std::string> places = places_by_link(file_name, debuglink_file);
  if (std::string place = place_by_build_id(build_id); !place.empty()) places.insert(places.begin(), std::move(place));
  for (const std::string& place : places) {
    files::Descriptor file = files::open_for(self->owner(), place);
    if (!file || !self->accept_debug_file(file.get(), build_id)) continue;
    *debuginfo_file_name = strdup(place.c_str());
    return file.release();
  }
  if (is_shared_part || !may_ask_servers()) return -1;
  // libdwfl gets no file names here. So libdwfl searches this machine only by build-id, and then asks the servers.
  files::Descriptor fetched(ask_servers([&] {
    return dwfl_standard_find_debuginfo(module, userdata, nullptr, 0, nullptr, nullptr, 0, debuginfo_file_name);
  }));
  return fetched && self->accept_debug_file(fetched.get(), build_id) ? fetched.release() : -1;
}

}  // namespace forksight::symbols
