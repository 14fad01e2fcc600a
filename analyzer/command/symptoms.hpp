// The sections of docs/symptoms.md, and the search in these sections and in the hazard pages.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace forksight {

struct Symptom {
  std::string title;  // what a user sees
  std::string text;   // in Markdown, as on the page
};

// Returns the sections in the order of the page. "## TITLE" begins a section.
std::vector<Symptom> read_symptoms(std::string_view page);

struct Found {
  std::vector<Symptom> symptoms;     // the best match first
  std::vector<std::string> hazards;  // slugs, the best match first
  bool has_best = false;             // the first symptom has most of the words, so its whole text is printed
  std::vector<std::string> unknown;  // words that no page has
  // Words that no page has, and the words that were searched for instead, because the user probably meant them.
  std::vector<std::pair<std::string, std::string>> corrected;
};

// Finds the pages that have the words of a text. The text is what a user types: "celery worker stuck", an error
// message, the name of a function. Upper and lower case and the endings of words make no difference. A rare word counts
// more than a frequent one, and a word in a title more than a word in a text. Two words that a page has side by side, as
// they were typed, count more than each of them. Words that say only that something hangs ("hangs", "never returns",
// "stuck") do not count, because all pages are about hangs. If there are no other words, the section about an idle process
// is the first. If no page has a word, the search uses another word that differs from it by one or two letters.
Found search_pages(const std::vector<std::string>& texts);

}  // namespace forksight
