// Parameters of tests that share their data. A copy of a model takes longer than most tests of the text.
#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace forksight::test {

template <class T>
std::vector<std::shared_ptr<const T>> share(std::vector<T> items) {
  std::vector<std::shared_ptr<const T>> shared;
  for (T& item : items) shared.push_back(std::make_shared<const T>(std::move(item)));
  return shared;
}

}  // namespace forksight::test
