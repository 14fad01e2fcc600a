#include "command/nearest.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace forksight {
namespace {

constexpr std::size_t kMostSuggestions = 3;

// Returns the smallest number of insertions, deletions and replacements that turn one word into the other.
std::size_t edit_distance(std::string_view one, std::string_view other) {
  std::vector<std::size_t> row(other.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < one.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < other.size(); ++j) {
      const std::size_t replaced = diagonal + (one[i] == other[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::vector<std::string> find_nearest(std::string_view word, const std::vector<std::string>& known) {
  // A word that is longer than this is no typing error, so only its beginning is compared.
  constexpr std::size_t kLongest = 64;
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const std::string& candidate : known) {
    const bool is_part = word.size() >= 3 && candidate.find(word) != std::string::npos;
    const std::size_t distance = is_part ? 0 : edit_distance(word.substr(0, kLongest), candidate);
    if (distance <= std::max<std::size_t>(2, candidate.size() / 3)) ranked.emplace_back(distance, candidate);
  }
  std::ranges::stable_sort(ranked, {}, [](const auto& entry) { return entry.first; });
  std::vector<std::string> nearest;
  for (std::size_t i = 0; i < ranked.size() && i < kMostSuggestions; ++i) nearest.push_back(ranked[i].second);
  return nearest;
}

}  // namespace forksight
