// Adds an absent parent for a forked process whose parent cannot be examined, because the parent has ended, or because
// only the child's core exists. What is known about such a parent comes from the child's own memory.
#include <set>
#include <string>
#include <unordered_map>

#include "inspect/build_model.hpp"
#include "inspect/pthreads.hpp"

namespace forksight::inspect {
namespace {

class NoMemory : public image::Memory {
 public:
  std::size_t read(std::uint64_t, std::span<std::byte>) const override { return 0; }
};

bool may_be_stuck(const Subject& subject) {
  return subject.liveness != model::Liveness::kAwake && subject.liveness != model::Liveness::kVictim;
}

bool has_parent(const std::vector<Subject>& subjects, const Subject& child) {
  return child.parent && is_same_layout(child.image, subjects[*child.parent].image);
}

using Programs = std::unordered_map<std::int32_t, std::set<std::string>>;  // the programs of the subjects, by pid

// True if the process with the child's ppid is probably not the one that forked the child. This is assumed if that
// process is init, is not visible (ppid 0), runs another program, or runs the same program at other addresses. Then the
// process that forked the child counts as ended.
bool is_somebody_else(const Programs& programs, const Subject& child) {
  if (child.image.ppid <= 1 || child.image.has_other_parent) return true;
  const auto parents = programs.find(child.image.ppid);
  return parents != programs.end() && (parents->second.size() > 1 || !parents->second.contains(child.image.exe));
}

}  // namespace

void add_absent_parents(std::vector<Subject>& subjects) {
  const std::size_t count = subjects.size();
  Programs programs;
  for (const Subject& subject : subjects) programs[subject.image.pid].insert(subject.image.exe);
  for (std::size_t i = 0; i < count; ++i) {
    Subject& child = subjects[i];
    if (child.is_forked != true || child.is_in_vfork || !child.image.memory || !may_be_stuck(child) ||
        has_parent(subjects, child))
      continue;
    Subject parent;
    parent.is_absent = true;
    parent.is_asked_about = false;
    parent.image.memory = std::make_shared<NoMemory>();
    parent.image.exe = child.image.exe;
    if (is_somebody_else(programs, child)) {
      parent.liveness = model::Liveness::kEnded;
    } else {
      parent.image.pid = child.image.ppid;
      parent.is_supposed = child.image.is_core && !child.image.is_parent_of_group;
    }
    programs[parent.image.pid].insert(parent.image.exe);
    child.parent = subjects.size();
    subjects.push_back(std::move(parent));
  }
}

}  // namespace forksight::inspect
