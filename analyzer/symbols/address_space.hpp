// The modules of one process image by address.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "symbols/binary.hpp"
#include "symbols/symbols.hpp"

namespace forksight::symbols {

class AddressSpace {
 public:
  // Modules come from a trace: those with impossible or overlapping ranges are left out.
  explicit AddressSpace(std::vector<Module> modules);

  struct Place {
    const Module* module = nullptr;  // null: the address is in no module
    Binary* binary = nullptr;        // null: the module's file cannot be used, limits() says why
    std::uint64_t address = 0;       // link-time
    explicit operator bool() const { return binary != nullptr; }
  };
  // Opens the module's file if need be.
  Place locate(std::uint64_t address);

  // The modules in order, opened if need be: of the one at `index`, less than size().
  std::size_t size() const { return entries_.size(); }
  const Module& module(std::size_t index) const { return entries_[index].module; }
  Binary* binary(std::size_t index);

  // Adds a sentence to limits(), each sentence once.
  void add_limit(std::string sentence);
  // Those, and what the open files say of themselves.
  const std::vector<std::string>& limits();

 private:
  struct Entry {
    Module module;
    bool is_opened = false;
    Binary* binary = nullptr;
  };
  void open(Entry& entry);

  std::vector<Entry> entries_;  // by start
  std::vector<std::string> limits_;
  std::unordered_set<std::string> said_;
};

}  // namespace forksight::symbols
