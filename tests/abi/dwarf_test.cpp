// Compares each offset in the headers of abi/ with the debug information of a libc. By default this is the installed
// libc. FORKSIGHT_LIBC_ROOT=FOLDER chooses the libc that is unpacked in FOLDER together with its debug information.
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <gnu/libc-version.h>
#include <gtest/gtest.h>
#include <link.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "forksight/abi/barrier.hpp"
#include "forksight/abi/condition.hpp"
#include "forksight/abi/mutex.hpp"
#include "forksight/abi/rwlock.hpp"
#include "forksight/abi/semaphore.hpp"
#include "forksight/abi/stream_lock.hpp"
#include "forksight/abi/thread.hpp"
#include "libc/libc_file.hpp"
#include "support/this_libc.hpp"

namespace forksight::abi {
namespace {

struct Member {
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

struct Structure {
  std::size_t bytes = 0;
  std::map<std::string, Member> members;
};

std::string path_of_this_libc() {
  std::string path;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        const std::string name = info->dlpi_name;
        if (name.ends_with("/libc.so.6")) *static_cast<std::string*>(to) = name;
        return 0;
      },
      &path);
  return path;
}

// The files of a libc, and the folder of its debug information.
struct Libraries {
  std::vector<std::string> files;  // libc, and libpthread if this libc has it as a separate file
  std::string debug;               // the folder of the debug information; "": debuggers' default folders
  Libc libc;
};

// Reads the version and the layout of condition variables from the libc below `root`, in the same way as the analyzer.
Libraries find_unpacked(const std::filesystem::path& root) {
  Libraries found;
  found.debug = root / "usr/lib/debug";
  for (const char* const folder : {"usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"}) {
    for (const char* const name : {"libc.so.6", "libpthread.so.0"}) {
      const std::string file = root / folder / name;
      if (!std::filesystem::exists(file)) continue;
      const Libc read = libc::read_libc_file(file);
      if (name == std::string_view("libc.so.6")) found.libc.version = read.version;
      if (read.condition != ConditionKind::kUnknown) found.libc.condition = read.condition;
      found.files.push_back(file);
    }
    if (!found.files.empty()) break;
  }
  return found;
}

const Libraries& libraries() {
  static const Libraries found = [] {
    const char* const root = std::getenv("FORKSIGHT_LIBC_ROOT");
    if (root != nullptr) return find_unpacked(root);
    return Libraries{{path_of_this_libc()}, {}, test::this_libc()};
  }();
  return found;
}

class DebugInformation {
 public:
  DebugInformation() {
    // dwfl_standard_find_debuginfo() compares build ids. So if `search` names a folder, this function finds the debug
    // information in that folder, not that of the installed libc.
    std::string search = libraries().debug;
    char* path = search.empty() ? nullptr : search.data();
    const Dwfl_Callbacks callbacks{dwfl_build_id_find_elf, dwfl_standard_find_debuginfo, dwfl_offline_section_address,
                                   path == nullptr ? nullptr : &path};
    Dwfl* const dwfl = dwfl_begin(&callbacks);
    for (const std::string& file : libraries().files) {
      Dwfl_Module* const module = dwfl_report_offline(dwfl, file.c_str(), file.c_str(), -1);
      Dwarf_Addr bias = 0;
      Dwarf* const dwarf = module == nullptr ? nullptr : dwfl_module_getdwarf(module, &bias);
      if (dwarf == nullptr) continue;
      read_units(dwarf);
      if (Dwarf* const shared = dwarf_getalt(dwarf)) read_units(shared);
    }
    dwfl_report_end(dwfl, nullptr, nullptr);
    dwfl_end(dwfl);
  }

  const Structure* find(const std::string& name) const {
    const auto at = structures_.find(name);
    return at == structures_.end() ? nullptr : &at->second;
  }
  bool is_there() const { return !structures_.empty(); }

 private:
  void read_units(Dwarf* dwarf) {
    Dwarf_CU* unit = nullptr;
    Dwarf_Half version = 0;
    std::uint8_t type = 0;
    Dwarf_Die die;
    Dwarf_Die subdie;
    while (dwarf_get_units(dwarf, unit, &unit, &version, &type, &die, &subdie) == 0) {
      Dwarf_Die child;
      if (dwarf_child(&die, &child) != 0) continue;
      do {
        read_type(child);
      } while (dwarf_siblingof(&child, &child) == 0);
    }
  }

  void read_type(Dwarf_Die& die) {
    const char* const name = dwarf_diename(&die);
    if (name == nullptr || structures_.contains(name)) return;
    Dwarf_Die structure = die;
    if (dwarf_tag(&die) == DW_TAG_typedef) {
      Dwarf_Attribute attribute;
      if (dwarf_attr_integrate(&die, DW_AT_type, &attribute) == nullptr) return;
      if (dwarf_formref_die(&attribute, &structure) == nullptr) return;
    }
    if (dwarf_tag(&structure) != DW_TAG_structure_type || dwarf_bytesize(&structure) <= 0) return;
    Structure& read = structures_[name];
    read.bytes = static_cast<std::size_t>(dwarf_bytesize(&structure));
    read_members(structure, read);
  }

  // The members of an unnamed union count as members of the structure that contains the union.
  static void read_members(Dwarf_Die& structure, Structure& to, std::size_t base = 0) {
    Dwarf_Die member;
    if (dwarf_child(&structure, &member) != 0) return;
    do {
      Dwarf_Attribute attribute;
      Dwarf_Word offset = 0;
      const char* const name = dwarf_diename(&member);
      if (dwarf_tag(&member) != DW_TAG_member) continue;
      const bool has_place = dwarf_attr(&member, DW_AT_data_member_location, &attribute) != nullptr;
      if (has_place && dwarf_formudata(&attribute, &offset) != 0) continue;
      Dwarf_Die type;
      if (name != nullptr) {
        to.members.try_emplace(name, Member{base + offset, size_of(member)});
      } else if (dwarf_attr(&member, DW_AT_type, &attribute) != nullptr &&
                 dwarf_formref_die(&attribute, &type) != nullptr) {
        read_members(type, to, base + offset);
      }
    } while (dwarf_siblingof(&member, &member) == 0);
  }

  static std::size_t size_of(Dwarf_Die& member) {
    Dwarf_Attribute attribute;
    Dwarf_Die type;
    Dwarf_Word bytes = 0;
    if (dwarf_attr(&member, DW_AT_type, &attribute) == nullptr) return 0;
    if (dwarf_formref_die(&attribute, &type) == nullptr || dwarf_aggregate_size(&type, &bytes) != 0) return 0;
    return bytes;
  }

  std::map<std::string, Structure> structures_;
};

const DebugInformation& debug_information() {
  static const DebugInformation read;
  return read;
}

class LibcDwarf : public testing::Test {
 protected:
  void SetUp() override {
    // An unpacked libc comes with its debug information. If the debug information is missing, the test fails.
    if (std::getenv("FORKSIGHT_LIBC_ROOT") != nullptr) {
      ASSERT_TRUE(debug_information().is_there());
      ASSERT_TRUE(libc_.version.is_known());
      return;
    }
    if (!debug_information().is_there())
      GTEST_SKIP() << "no debug information of " << path_of_this_libc() << ": libc6-dbg";
    if (!libc_.version.is_known()) GTEST_SKIP() << "not glibc";
  }

  void expect(const char* structure, const char* member, std::size_t offset, std::size_t bytes) {
    const Structure* const found = debug_information().find(structure);
    ASSERT_NE(found, nullptr) << structure;
    const auto at = found->members.find(member);
    ASSERT_NE(at, found->members.end()) << structure << ' ' << member;
    EXPECT_EQ(at->second.offset, offset) << structure << ' ' << member;
    EXPECT_EQ(at->second.bytes, bytes) << structure << ' ' << member;
  }
  void expect_bytes(const char* structure, std::size_t bytes) {
    const Structure* const found = debug_information().find(structure);
    ASSERT_NE(found, nullptr) << structure;
    EXPECT_EQ(found->bytes, bytes) << structure;
  }

  Libc libc_ = libraries().libc;
};

#define EXPECT_MEMBER(structure, member, type, field) \
  expect(structure, member, offsetof(type, field), sizeof(type::field))

TEST_F(LibcDwarf, Mutex) {
  if (!Mutex::kVersions.have(libc_.version)) GTEST_SKIP() << "not known";
  EXPECT_MEMBER("__pthread_mutex_s", "__lock", Mutex, lock);
  EXPECT_MEMBER("__pthread_mutex_s", "__count", Mutex, count);
  EXPECT_MEMBER("__pthread_mutex_s", "__owner", Mutex, owner);
  EXPECT_MEMBER("__pthread_mutex_s", "__nusers", Mutex, users);
  EXPECT_MEMBER("__pthread_mutex_s", "__kind", Mutex, kind);
  expect("__pthread_mutex_s", "__spins", offsetof(Mutex, spins), sizeof(short));
  expect("__pthread_mutex_s", "__list", offsetof(Mutex, list_previous), 16);
  expect_bytes("__pthread_mutex_s", sizeof(Mutex));
}

TEST_F(LibcDwarf, Rwlock) {
  if (!Rwlock::kVersions.have(libc_.version)) GTEST_SKIP() << "not known";
  EXPECT_MEMBER("__pthread_rwlock_arch_t", "__readers", Rwlock, readers);
  EXPECT_MEMBER("__pthread_rwlock_arch_t", "__writers", Rwlock, writers);
  EXPECT_MEMBER("__pthread_rwlock_arch_t", "__wrphase_futex", Rwlock, wrphase_futex);
  EXPECT_MEMBER("__pthread_rwlock_arch_t", "__writers_futex", Rwlock, writers_futex);
  EXPECT_MEMBER("__pthread_rwlock_arch_t", "__cur_writer", Rwlock, cur_writer);
  EXPECT_MEMBER("__pthread_rwlock_arch_t", "__shared", Rwlock, shared);
  EXPECT_MEMBER("__pthread_rwlock_arch_t", "__pad2", Rwlock, spare);
  EXPECT_MEMBER("__pthread_rwlock_arch_t", "__flags", Rwlock, flags);
  expect_bytes("__pthread_rwlock_arch_t", sizeof(Rwlock));
}

TEST_F(LibcDwarf, Condition) {
  const ConditionLayout* const layout = layout_of(libc_.condition);
  ASSERT_NE(layout, nullptr);
  constexpr std::size_t kWord = sizeof(std::uint32_t);
  expect("__pthread_cond_s", "__wseq", 0, 8);
  expect("__pthread_cond_s", "__g1_start", 8, 8);
  if (layout->references != 0) expect("__pthread_cond_s", "__g_refs", layout->references, 2 * kWord);
  expect("__pthread_cond_s", "__g_size", layout->sizes, 2 * kWord);
  expect("__pthread_cond_s", "__g1_orig_size", layout->g1_size, kWord);
  expect("__pthread_cond_s", "__wrefs", layout->wrefs, kWord);
  expect("__pthread_cond_s", "__g_signals", layout->signals, 2 * kWord);
  expect_bytes("__pthread_cond_s", kConditionBytes);
  EXPECT_EQ(debug_information().find("__pthread_cond_s")->members.contains("__g_refs"), layout->references != 0);
}

TEST_F(LibcDwarf, Semaphore) {
  if (!Semaphore::kVersions.have(libc_.version)) GTEST_SKIP() << "not known";
  expect("new_sem", "data", 0, sizeof(std::uint64_t));
  static_assert(offsetof(Semaphore, value) == 0 && offsetof(Semaphore, waiters) == 4);
  EXPECT_MEMBER("new_sem", "private", Semaphore, shared);
}

TEST_F(LibcDwarf, Barrier) {
  if (!Barrier::kVersions.have(libc_.version)) GTEST_SKIP() << "not known";
  EXPECT_MEMBER("pthread_barrier", "in", Barrier, in);
  EXPECT_MEMBER("pthread_barrier", "current_round", Barrier, round);
  EXPECT_MEMBER("pthread_barrier", "count", Barrier, count);
  EXPECT_MEMBER("pthread_barrier", "shared", Barrier, shared);
  EXPECT_MEMBER("pthread_barrier", "out", Barrier, out);
}

TEST_F(LibcDwarf, StreamLock) {
  if (!StreamLock::kVersions.have(libc_.version)) GTEST_SKIP() << "not known";
  EXPECT_MEMBER("_IO_lock_t", "lock", StreamLock, lock);
  EXPECT_MEMBER("_IO_lock_t", "cnt", StreamLock, count);
  EXPECT_MEMBER("_IO_lock_t", "owner", StreamLock, owner);
  expect_bytes("_IO_lock_t", sizeof(StreamLock));
}

TEST_F(LibcDwarf, Thread) {
  const ThreadLayout* const layout = thread_layout(libc_.version);
  if (layout == nullptr) GTEST_SKIP() << "not known";
  const bool has_mode = libc_.version.minor >= 42;
  expect("tcbhead_t", "self", kSelfInThread, sizeof(void*));
  expect("pthread", "list", layout->list, 2 * sizeof(void*));
  expect("pthread", "tid", layout->tid, sizeof(std::int32_t));
  expect("pthread", "cancelhandling", layout->cancel_handling, sizeof(std::uint32_t));
  expect("pthread", has_mode ? "stack_mode" : "user_stack", layout->stack_owner, layout->stack_owner_bytes);
  expect("pthread", "start_routine", layout->start_routine, sizeof(void*));
  expect("pthread", "arg", layout->argument, sizeof(void*));
  expect("pthread", "guardsize", kThreadBytes, sizeof(std::size_t));
  EXPECT_EQ(layout->is_joined_by_tid, libc_.version.minor < 43);
}

}  // namespace
}  // namespace forksight::abi
