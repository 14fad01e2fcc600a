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

// The golden file of a sample has the sample's name.
std::vector<Sample> all_samples();

}  // namespace forksight::test
