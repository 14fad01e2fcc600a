// Tests how the command and the shim read the value of the option --cure, which is a list of cures.
#include <gtest/gtest.h>

#include <string>

#include "command/run_cures.hpp"
#include "forksight/trace/cures.hpp"

namespace forksight {
namespace {

using trace::Cure;
using trace::CureSet;

CureSet read(const char* text) {
  CureSet cures;
  EXPECT_EQ(trace::read_cures(text, cures).word, nullptr) << text;
  return cures;
}

TEST(Cures, AutoTurnsOnAllSoundCures) {
  const CureSet cures = read("auto");
  for (std::size_t i = 0; i < trace::kCureCount; ++i) {
    EXPECT_EQ(cures.has(static_cast<Cure>(i)), trace::kCures[i].is_sound) << trace::kCures[i].name;
    EXPECT_EQ(cures.values[i], trace::kCures[i].is_sound ? trace::kCures[i].value : 0) << trace::kCures[i].name;
  }
  EXPECT_FALSE(cures.has(Cure::kOrphans));
}

TEST(Cures, EachNameIsItsOwnBit) {
  for (std::size_t i = 0; i < trace::kCureCount; ++i) {
    EXPECT_EQ(read(trace::kCures[i].name).bits, 1U << i) << trace::kCures[i].name;
  }
}

TEST(Cures, WordsAddCuresAndNoneRemovesAll) {
  EXPECT_EQ(read("omp,orphans").bits, read("orphans,omp").bits);
  EXPECT_EQ(read("auto,none").bits, 0U);
  EXPECT_EQ(read("auto,none,orphans").bits, read("orphans").bits);
  EXPECT_EQ(read("auto,quiesce-libc=7").value(Cure::kQuiesceLibc), 7U);
  EXPECT_EQ(read("quiesce-libc").value(Cure::kQuiesceLibc), trace::kCures[2].value);
  EXPECT_EQ(read("").bits, 0U);
  EXPECT_EQ(read(nullptr).bits, 0U);
}

TEST(Cures, AnUnknownWordEndsTheList) {
  CureSet cures;
  const trace::CureMistake mistake = trace::read_cures("omp,pray,orphans", cures);
  EXPECT_EQ(std::string(mistake.word, mistake.bytes), "pray");
  EXPECT_EQ(cures.bits, read("omp").bits);
}

TEST(Cures, MistakesAreReported) {
  EXPECT_EQ(check_cures("auto"), "");
  EXPECT_EQ(check_cures("none"), "");
  EXPECT_EQ(check_cures("omp,quiesce-libc=20"), "");
  EXPECT_EQ(check_cures(""), "give auto, none, or names of cures");
  EXPECT_EQ(check_cures("omp=2"), "omp takes no value");
  for (const char* wrong : {"quiesce-libc=", "quiesce-libc=0", "quiesce-libc=x", "quiesce-libc=5x", "quiesce-libc=-1",
                            "quiesce-libc=99999999999999999999"}) {
    EXPECT_EQ(check_cures(wrong),
              std::string(wrong) + ": the value must be a number of ms above 0, for example quiesce-libc=100");
  }
  for (const char* wrong : {"pray", "om", "ompx", ",omp", "auto=1", "none=1", "OMP", " omp"}) {
    EXPECT_NE(check_cures(wrong).find("no cure is called"), std::string::npos) << wrong;
  }
}

TEST(Cures, TheHelpDescribesAllCures) {
  const std::string help = describe_cures();
  for (const trace::CureTerms& cure : trace::kCures) EXPECT_NE(help.find(cure.words), std::string::npos) << cure.name;
}

}  // namespace
}  // namespace forksight
