// Models that show everything that a report can contain.
#pragma once

#include <string>
#include <vector>

#include "model/model.hpp"

namespace forksight::test {

struct Sample {
  std::string name;
  model::Model model;
};

// The first of them have golden files of their names.
std::vector<Sample> all_samples();

}  // namespace forksight::test
