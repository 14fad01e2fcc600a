// Models whose reports together contain everything that a report can contain.
#pragma once

#include <string>
#include <vector>

#include "model/model.hpp"

namespace forksight::test {

struct Sample {
  std::string name;
  model::Model model;
};

// For the first samples there are golden files with the names of the samples.
std::vector<Sample> all_samples();

}  // namespace forksight::test
