#include "command/nearest.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace forksight {
namespace {

constexpr std::size_t kMostSuggestions = 3;

}  // namespace

std::size_t edit_distance(std::string_view one, std::string_view other) {
  std::vector<std::size_t> before(other.size() + 1);  // the row before `last`
  std::vector<std::size_t> last(other.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 0; i < one.size(); ++i) {
    std::vector<std::size_t> row(other.size() + 1);
    row[0] = i + 1;
    for (std::size_t j = 0; j < other.size(); ++j) {
      const std::size_t replaced = last[j] + (one[i] == other[j] ? 0 : 1);
      row[j + 1] = std::min({replaced, last[j + 1] + 1, row[j] + 1});
      const bool is_swap = i > 0 && j > 0 && one[i] == other[j - 1] && one[i - 1] == other[j];
      if (is_swap) row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
    }
    before = std::move(last);
    last = std::move(row);
  }
  return last.back();
}

std::vector<std::string> find_nearest(std::string_view word, const std::vector<std::string>& known) {
  // A word of more than kLongest bytes is no typing error. To save time, only the beginning of such a word is compared.
  constexpr std::size_t kLongest = 64;
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const std::string& candidate : known) {
    const bool is_part = word.size() >= 3 && candidate.find(word) != std::string::npos;
    const std::size_t distance = is_part ? 0 : edit_distance(word.substr(0, kLongest), candidate);
    // In a short word, more than one wrong letter makes another word: "nope" is not "core".
    if (distance <= std::max<std::size_t>(1, candidate.size() / 3)) ranked.emplace_back(distance, candidate);
  }
  std::ranges::stable_sort(ranked, {}, [](const auto& entry) { return entry.first; });
  std::vector<std::string> nearest;
  for (std::size_t i = 0; i < ranked.size() && i < kMostSuggestions; ++i) nearest.push_back(ranked[i].second);
  return nearest;
}

}  // namespace forksight
