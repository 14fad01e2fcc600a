// The sections of docs/symptoms.md, and the search in them and in the hazard pages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace forksight {

struct Symptom {
  std::string title;  // what a user sees
  std::string text;   // in Markdown, as on the page
};

// Returns the sections of the page in its order. "## TITLE" begins a section.
std::vector<Symptom> read_symptoms(std::string_view page);

struct Found {
  std::vector<Symptom> symptoms;     // the best match first
  std::vector<std::string> hazards;  // slugs, the best match first
};

// Finds pages that contain all words, in upper or lower case. A word in a title counts more than a word in a text.
Found search_pages(const std::vector<std::string>& words);

}  // namespace forksight
