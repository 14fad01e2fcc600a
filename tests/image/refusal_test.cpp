// Tests the sentences in which forksight says why it cannot examine a process. Each test makes up the facts, and checks
// words of the sentence.
#include "image/refusal.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <initializer_list>
#include <string>

#include "proc/proc_fs.hpp"

namespace forksight::image {
namespace {

TraceRights user_of(Place place) {
  TraceRights rights;
  rights.pid = 42;
  rights.place = place;
  return rights;
}

void expect(const TraceRights& rights, std::initializer_list<const char*> words) {
  const std::string said = explain_lack(rights);
  EXPECT_TRUE(said.starts_with("process 42: ")) << said;
  EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  for (const char* part : words) EXPECT_NE(said.find(part), std::string::npos) << part << "\n" << said;
}

bool says(const TraceRights& rights, const char* words) {
  return explain_lack(rights).find(words) != std::string::npos;
}

TEST(Refusal, AnotherUsersProcessNeedsRoot) {
  TraceRights rights = user_of(Place::kMachine);
  rights.other_user = 7;
  expect(rights, {"belongs to another user (uid 7)", ": sudo forksight why 42"});
}

TEST(Refusal, TheSettingOfYamaIsNamed) {
  TraceRights rights = user_of(Place::kMachine);
  rights.yama = 1;
  expect(rights, {"only its ancestors", "kernel.yama.ptrace_scope is 1", "sudo forksight why 42",
                  "sudo sysctl kernel.yama.ptrace_scope=0"});
  rights.yama = 2;
  expect(rights, {"only CAP_SYS_PTRACE", "kernel.yama.ptrace_scope is 2", "sudo forksight why 42"});
  EXPECT_FALSE(says(rights, "sysctl"));
  rights.yama = 3;
  rights.has_capability = true;
  expect(rights, {"nobody", "kernel.yama.ptrace_scope is 3", "`forksight run`"});
  EXPECT_FALSE(says(rights, "sudo")) << "sudo would not help";
}

TEST(Refusal, AContainerWithoutTheRightMustBeStartedWithIt) {
  TraceRights rights = user_of(Place::kDocker);
  rights.can_have_capability = false;
  rights.is_root = true;
  rights.yama = 1;
  expect(rights, {"docker run --cap-add SYS_PTRACE"});
  EXPECT_FALSE(says(rights, "sysctl")) << "a container cannot change the setting";
  rights.place = Place::kPodman;
  expect(rights, {"podman run --cap-add SYS_PTRACE"});
  rights.place = Place::kKubernetes;
  rights.pod = "web-7d4b9";
  expect(rights, {"kubectl debug -it web-7d4b9 --profile=general", "-- forksight why "});
}

TEST(Refusal, AContainerWithTheRightNeedsOnlyRoot) {
  TraceRights rights = user_of(Place::kDocker);
  rights.other_user = 0;
  expect(rights, {"uid 0", "docker exec --user 0 --privileged CONTAINER forksight why "});
  EXPECT_FALSE(says(rights, "--cap-add"));
}

TEST(Refusal, WithAllRightsAnotherMechanismIsNamed) {
  TraceRights rights = user_of(Place::kMachine);
  rights.has_capability = true;
  rights.other_user = 7;
  rights.yama = 1;
  expect(rights, {"whatever rights forksight has", "user namespace or a security module"});
}

TEST(Refusal, SudoIsNotNamedIfRootCannotHaveTheRight) {
  TraceRights rights = user_of(Place::kMachine);
  rights.can_have_capability = false;
  expect(rights, {"PR_SET_DUMPABLE", "bounding set"});
  EXPECT_FALSE(says(rights, "sudo"));
}

TEST(Refusal, ThePlaceIsFoundByItsMarks) {
  EXPECT_EQ(find_place(false, false, nullptr), Place::kMachine);
  EXPECT_EQ(find_place(false, false, ""), Place::kMachine);
  EXPECT_EQ(find_place(true, false, nullptr), Place::kDocker);
  EXPECT_EQ(find_place(false, true, nullptr), Place::kPodman);
  EXPECT_EQ(find_place(true, false, "10.0.0.1"), Place::kKubernetes);
}

TEST(Refusal, RightsOfBothProcessesAreRead) {
  const auto own = proc::read_file("/proc/self/status");
  const TraceRights rights = read_trace_rights(::getpid(), own.text);
  EXPECT_EQ(rights.pid, ::getpid());
  EXPECT_EQ(rights.is_root, ::geteuid() == 0);
  EXPECT_FALSE(rights.other_user) << "the process is the test itself";
  EXPECT_EQ(read_trace_rights(1, "Uid:\t4321\t4321\t4321\t4321\n").other_user, 4321);
}

}  // namespace
}  // namespace forksight::image
