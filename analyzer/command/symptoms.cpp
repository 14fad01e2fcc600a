#include "command/symptoms.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include "command/pages.hpp"

namespace forksight {
namespace {

constexpr std::size_t kTitleWeight = 10;

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

// Returns how well a page matches the words; 0 if the page does not contain all of them.
std::size_t rank(std::string_view title, std::string_view text, const std::vector<std::string>& words) {
  std::size_t sum = 0;
  for (const std::string& word : words) {
    const bool is_in_title = title.find(word) != std::string_view::npos;
    if (!is_in_title && text.find(word) == std::string_view::npos) return 0;
    sum += is_in_title ? kTitleWeight : 1;
  }
  return sum;
}

template <typename T>
std::vector<T> in_order(std::vector<std::pair<std::size_t, T>> ranked) {
  std::ranges::stable_sort(ranked, std::greater<>(), [](const auto& entry) { return entry.first; });
  std::vector<T> result;
  for (auto& [sum, item] : ranked) result.push_back(std::move(item));
  return result;
}

}  // namespace

std::vector<Symptom> read_symptoms(std::string_view page) {
  constexpr std::string_view kHeading = "\n## ";
  std::vector<Symptom> symptoms;
  std::size_t at = page.find(kHeading);
  while (at != std::string_view::npos) {
    const std::size_t title = at + kHeading.size();
    const std::size_t text = std::min(page.find('\n', title), page.size());
    at = page.find(kHeading, text);
    std::string_view body = page.substr(text, at == std::string_view::npos ? at : at - text);
    while (body.starts_with('\n')) body.remove_prefix(1);
    while (body.ends_with('\n')) body.remove_suffix(1);
    symptoms.push_back({std::string(page.substr(title, text - title)), std::string(body)});
  }
  return symptoms;
}

Found search_pages(const std::vector<std::string>& words) {
  std::vector<std::string> wanted;
  for (const std::string& word : words) wanted.push_back(lower(word));
  std::vector<std::pair<std::size_t, Symptom>> symptoms;
  for (const Page& page : symptom_pages()) {
    for (Symptom& symptom : read_symptoms(page.text)) {
      const std::size_t sum = rank(lower(symptom.title), lower(symptom.text), wanted);
      if (sum != 0) symptoms.emplace_back(sum, std::move(symptom));
    }
  }
  std::vector<std::pair<std::size_t, std::string>> hazards;
  for (const Page& page : hazard_pages()) {
    const std::size_t sum = rank(page.name, lower(page.text), wanted);
    if (sum != 0) hazards.emplace_back(sum, page.name);
  }
  return {in_order(std::move(symptoms)), in_order(std::move(hazards))};
}

}  // namespace forksight
