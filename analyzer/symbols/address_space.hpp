// Finds the module of an address, among the modules of one process image.
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
  // `modules` may come from a trace, which is hostile input. Modules with impossible or overlapping ranges are left
  // out.
  explicit AddressSpace(std::vector<Module> modules);

  struct Place {
    const Module* module = nullptr;  // null: the address is in no module
    // null: forksight has no file for the module; if a file exists but cannot be used, limits() says why
    Binary* binary = nullptr;
    std::uint64_t address = 0;  // the link-time address
    explicit operator bool() const { return binary != nullptr; }
  };
  // Finds the module of a run-time address. Opens the module's file if it is not open.
  Place locate(std::uint64_t address);

  // size(), module() and binary() give access to the modules, ordered by address. `index` must be less than size().
  // binary() opens the module's file if it is not open.
  std::size_t size() const { return entries_.size(); }
  const Module& module(std::size_t index) const { return entries_[index].module; }
  Binary* binary(std::size_t index);

  // Adds a sentence to limits(), unless limits() already has it.
  void add_limit(std::string sentence);
  // Returns the sentences of add_limit(), and the limits of the open files.
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
