// Tests that calls are found in the machine code of this program. The bytes of a constant must not be taken for a call.
#include <gtest/gtest.h>
#include <link.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <string>

#include "symbols/binary_store.hpp"
#include "symbols/call_graph.hpp"
#include "symbols/instruction.hpp"

extern "C" {
[[gnu::used]] void code_test_callee() { asm volatile(""); }
extern const char code_test_caller[];
extern const char code_test_after_constant[];
extern const char code_test_after_call[];
extern const char code_test_after_pointer_call[];
extern const char code_test_after_call_through_table[];
extern const char code_test_without_rules[];
extern const char code_test_after_call_without_rules[];
}

// The bytes of the constant in the first instruction look like a call of code_test_callee. The last call reads the
// address of code_test_callee from the table of addresses. Compilers of Rust make such calls.
asm(R"(
  .pushsection .text
  .globl code_test_caller, code_test_after_constant, code_test_after_call, code_test_after_pointer_call
  .globl code_test_after_call_through_table, code_test_without_rules, code_test_after_call_without_rules
code_test_caller:
  .cfi_startproc
  .byte 0x48, 0xb8, 0xe8
  .long code_test_callee - . - 4
code_test_after_constant:
  .byte 0, 0, 0
  call code_test_callee
code_test_after_call:
  call *8(%rax,%rbx,4)
code_test_after_pointer_call:
  .byte 0xff, 0x15
  .reloc ., R_X86_64_GOTPCREL, code_test_callee - 4
  .long 0
code_test_after_call_through_table:
  ret
  .cfi_endproc
code_test_without_rules:
  call code_test_callee
code_test_after_call_without_rules:
  ret
  .popsection
)");

namespace forksight::symbols {
namespace {

std::uint64_t own_bias() {
  std::uint64_t bias = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* found) {
        *static_cast<std::uint64_t*>(found) = info->dlpi_addr;
        return 1;  // the first module is the program
      },
      &bias);
  return bias;
}

class Code : public testing::Test {
 protected:
  void SetUp() override {
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    ASSERT_GT(length, 0);
    const auto binary = open_binary({std::string(path, static_cast<std::size_t>(length)), 0, 0, 0, {}});
    ASSERT_TRUE(binary) << binary.error();
    binary_ = binary.value();
  }

  static std::uint64_t address_of(const void* place) { return reinterpret_cast<std::uint64_t>(place) - own_bias(); }
  MachineCode& code() { return binary_->code(); }

  Binary* binary_ = nullptr;
};

TEST_F(Code, AConstantThatLooksLikeACallIsNotACall) {
  EXPECT_FALSE(code().is_after_call(address_of(code_test_after_constant)));
  EXPECT_FALSE(code().call_before(address_of(code_test_after_constant)));
  const auto function = code().function_at(address_of(code_test_caller));
  ASSERT_TRUE(function);
  for (const Branch& branch : code().facts(*function).branches) {
    EXPECT_NE(branch.end, address_of(code_test_after_constant));
  }
}

TEST_F(Code, ACallIsFoundWithItsTarget) {
  const std::uint64_t end = address_of(code_test_after_call);
  EXPECT_TRUE(code().is_after_call(end));
  EXPECT_FALSE(code().is_after_call(end - 1));
  const auto call = code().call_before(end);
  ASSERT_TRUE(call);
  EXPECT_TRUE(call->is_call);
  EXPECT_EQ(call->target, address_of(reinterpret_cast<const void*>(&code_test_callee)));
}

TEST_F(Code, ACallByPointerHasNoTarget) {
  const std::uint64_t end = address_of(code_test_after_pointer_call);
  EXPECT_TRUE(code().is_after_call(end));
  EXPECT_FALSE(code().call_before(end));
}

TEST_F(Code, ACallThroughTheBinarysOwnTableHasATarget) {
  const auto call = code().call_before(address_of(code_test_after_call_through_table));
  ASSERT_TRUE(call);
  EXPECT_TRUE(call->is_call);
  EXPECT_EQ(call->name, nullptr);
  EXPECT_EQ(call->target, address_of(reinterpret_cast<const void*>(&code_test_callee)));
}

// The unwind tables do not list the function code_test_without_rules, which is written in assembly.
TEST_F(Code, ACallIsFoundInAFunctionWithoutUnwindInformation) {
  EXPECT_TRUE(code().is_after_call(address_of(code_test_after_call_without_rules)));
  EXPECT_FALSE(code().is_after_call(address_of(code_test_without_rules) + 1));
}

template <std::size_t size>
std::optional<std::uint64_t> subtracted(const std::array<unsigned char, size>& bytes) {
  return prologue_subtraction(std::as_bytes(std::span(bytes)));
}

TEST(Prologue, GivesTheBytesSubtractedFromTheStackPointer) {
  // push %rbp; mov %rsp,%rbp; push %rbx; sub $0x28,%rsp
  EXPECT_EQ(subtracted(std::to_array<unsigned char>({0x55, 0x48, 0x89, 0xe5, 0x53, 0x48, 0x83, 0xec, 0x28})), 0x28);
  // with endbr64 at the start, and a larger number
  EXPECT_EQ(subtracted(std::to_array<unsigned char>(
                {0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x48, 0x81, 0xec, 0x00, 0x10, 0x00, 0x00})),
            0x1000);
  // push %rbp; mov %rsp,%rbp; add $-128,%rsp
  EXPECT_EQ(subtracted(std::to_array<unsigned char>({0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xc4, 0x80})), 128);
  // push %rbp; mov %rsp,%rbp; push %rax
  EXPECT_EQ(subtracted(std::to_array<unsigned char>({0x55, 0x48, 0x89, 0xe5, 0x50, 0xc3})), 8);
  // push %rbp; mov %rsp,%rbp; ret
  EXPECT_EQ(subtracted(std::to_array<unsigned char>({0x55, 0x48, 0x89, 0xe5, 0xc3, 0x48, 0x83, 0xec, 0x28})), 0);
  EXPECT_EQ(subtracted(std::array<unsigned char, 0>{}), 0);
}

TEST(Prologue, GivesNothingIfTheBytesAreNotConstant) {
  // push %rbp; mov %rsp,%rbp; and $-64,%rsp
  EXPECT_FALSE(subtracted(std::to_array<unsigned char>({0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xe4, 0xc0})));
  // push %rbp; mov %rsp,%rbp; sub %rax,%rsp
  EXPECT_FALSE(subtracted(std::to_array<unsigned char>({0x55, 0x48, 0x89, 0xe5, 0x48, 0x29, 0xc4})));
}

// The constant in mov $0x28ec8348,%eax has the bytes of "sub $0x28,%rsp".
TEST(Prologue, DoesNotTakeAConstantForASubtraction) {
  EXPECT_EQ(subtracted(std::to_array<unsigned char>({0x55, 0x48, 0x89, 0xe5, 0xb8, 0x48, 0x83, 0xec, 0x28, 0xc3})), 0);
}

TEST(ErrorFunctions, AreKnownByTheirWholeNames) {
  for (const char* name : {"__cxa_throw", "__cxa_end_catch", "_Unwind_Resume", "_ZSt9terminatev", "abort",
                           "__stack_chk_fail", "_ZSt20__throw_length_errorPKc"}) {
    EXPECT_TRUE(handles_errors(name)) << name;
  }
  // These functions handle no errors, or belong to the program.
  for (const char* name : {"__cxa_guard_acquire", "__cxa_atexit", "terminate_workers", "abort_transaction",
                           "_ZN3job5abortEv", "my__throw_away"}) {
    EXPECT_FALSE(handles_errors(name)) << name;
  }
}

}  // namespace
}  // namespace forksight::symbols
