#include "command/symptoms.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <utility>

#include "command/nearest.hpp"
#include "command/pages.hpp"

namespace forksight {
namespace {

constexpr double kTitleWeight = 4;
constexpr double kInflectedWeight = 3;  // for "fork" in a title that has "forked"
// The first symptom is printed whole if its words have this share of the weight of all words.
constexpr double kShareOfBest = 0.45;
// A page is listed if it ranks at least this share of the best page of its kind.
constexpr double kShareOfListed = 0.4;

// Words that do not tell one page from another: articles and the like, and words that say that something hangs. Sorted.
constexpr std::array<std::string_view, 101> kFillers{
    "a",       "all",     "am",     "an",     "and",    "any",     "app",    "are",  "as",     "at",        "be",
    "because", "been",    "block",  "but",    "by",     "can",     "cannot", "cant", "come",   "day",       "do",
    "does",    "doesn",   "doesnt", "doing",  "done",   "dont",    "end",    "ever", "finish", "for",       "forever",
    "freeze",  "from",    "froze",  "frozen", "get",    "go",      "got",    "hang", "has",    "have",      "hour",
    "hung",    "i",       "if",     "in",     "is",     "isn",     "it",     "its",  "just",   "keep",      "like",
    "minute",  "my",      "never",  "no",     "not",    "nothing", "of",     "on",   "or",     "our",       "out",
    "problem", "program", "return", "s",      "script", "see",     "shows",  "so",   "some",   "sometimes", "stall",
    "still",   "stuck",   "t",      "that",   "the",    "there",   "this",   "to",   "use",    "using",     "was",
    "we",      "what",    "when",   "where",  "which",  "while",   "who",    "why",  "will",   "with",      "without",
    "wont",    "you"};

// Returns the word without an ending such as "s", "ed" or "ing", if at least three letters are left.
std::string without_ending(const std::string& word) {
  constexpr std::size_t kFewestLeft = 3;
  for (const std::string_view ending : {"ing", "ed", "es", "s"}) {
    if (word.ends_with(ending) && word.size() >= kFewestLeft + ending.size())
      return word.substr(0, word.size() - ending.size());
  }
  return word;
}

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

bool is_number(const std::string& word) { return !word.empty() && std::ranges::all_of(word, is_digit); }

// Replaces a share of a processor by one of the two shares that the pages have: "0%" for a process that sleeps, and
// "100%" for a process that is busy.
std::string make_share(const std::string& number) {
  constexpr int kBusy = 50;
  constexpr std::size_t kMostDigits = 4;
  return number.size() > kMostDigits || std::stoi(number) >= kBusy ? "100%" : "0%";
}

// Returns the words of the text in lower case. Any character that is neither a letter nor a digit separates words.
// There are two exceptions. A number and the percent sign behind it are one word, because "0 % CPU" and "100 % CPU" are
// different symptoms. And a name such as `apply_async` is a word of its own, beside its parts.
std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  std::string name;  // the parts of a name so far, joined by "_"
  const auto end_word = [&](bool goes_on) {
    if (!word.empty()) {
      name += (name.empty() ? "" : "_") + word;
      const bool is_percent = word == "percent" && !words.empty() && is_number(words.back());
      if (is_percent) {
        words.back() = make_share(words.back());
      } else {
        words.push_back(word);
      }
      word.clear();
    }
    if (goes_on) return;
    if (name.find('_') != std::string::npos) words.push_back(name);
    name.clear();
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) {
      word += static_cast<char>(std::tolower(byte));
      continue;
    }
    // The dot of "98.7 %" does not end the number.
    const bool is_in_number = c == '.' && is_number(word) && at + 1 < text.size() && is_digit(text[at + 1]);
    const std::size_t fraction_end =
        is_in_number ? std::min(text.find_first_not_of("0123456789", at + 1), text.size()) : at;
    const std::size_t sign = is_in_number ? std::min(text.find_first_not_of(' ', fraction_end), text.size()) : at;
    if (is_in_number && (text.substr(sign).starts_with('%') || text.substr(sign).starts_with("percent"))) {
      at = fraction_end - 1;
      continue;
    }
    end_word(c == '_');
    if (c == '%' && !words.empty() && is_number(words.back())) words.back() = make_share(words.back());
  }
  end_word(false);
  return words;
}

// True for a word whose absence from all pages means nothing: a number, an address, an option with a number, or a long
// name whose parts are searched for, too.
bool is_incidental(const std::string& word) {
  return std::ranges::any_of(word, [](unsigned char c) { return c == '_' || std::isdigit(c) != 0; });
}

bool is_filler(const std::string& word) {
  const auto is_it = [&](const std::string& one) { return std::ranges::binary_search(kFillers, one); };
  return is_it(word) || is_it(without_ending(word)) || is_it(without_ending(word) + "e");
}

// True if the word of a page is the wanted word, has another ending, or begins with the wanted word.
bool is_match(const std::string& wanted, const std::string& word) {
  constexpr std::size_t kShortestStart = 4;  // of words that are compared by their beginning
  if (wanted == word || without_ending(wanted) == without_ending(word)) return true;
  return wanted.size() >= kShortestStart && word.starts_with(wanted);
}

std::size_t count_word(const std::vector<std::string>& words, const std::string& wanted) {
  const auto count = std::ranges::count_if(words, [&](const std::string& word) { return is_match(wanted, word); });
  return static_cast<std::size_t>(count);
}

// Returns the weight of a word that occurs `count` times in a text. A page that has a word often is more likely to be
// about it.
double weight_of_count(std::size_t count) {
  constexpr double kGrowth = 0.3;
  return count == 0 ? 0 : 1 + kGrowth * std::log(static_cast<double>(count));
}

// Returns the text without the parts that begin with `from` and end with `to`.
std::string without_parts(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = std::min(text.find(from, at), text.size());
    const std::size_t end = text.find(to, begin);
    const bool is_part = begin < text.size() && end != std::string_view::npos;
    const std::size_t next = is_part ? end + to.size() : text.size();
    result += text.substr(at, (is_part ? begin : next) - at);
    at = next;
  }
  return result;
}

// Returns the words of a text in Markdown. Leaves out the labels that every section of docs/symptoms.md has, such as
// "**Make sure:**", and the targets of links.
std::vector<std::string> split_page(std::string_view text) {
  return split_words(without_parts(without_parts(text, "- **", ":**"), "](", ")"));
}

using Counts = std::map<std::string, std::size_t>;  // how often a text has each of its words

struct Document {
  std::vector<std::string> title;
  Counts text;
};

Document make_document(std::string_view title, std::string_view text) {
  Document document{split_words(title), {}};
  for (std::string& word : split_page(text)) ++document.text[std::move(word)];
  return document;
}

std::size_t count_word(const Counts& text, const std::string& wanted) {
  std::size_t sum = 0;
  for (const auto& [word, count] : text) sum += is_match(wanted, word) ? count : 0;
  return sum;
}

bool has_word(const Document& document, const std::string& wanted) {
  return count_word(document.title, wanted) + count_word(document.text, wanted) > 0;
}

// Maps each word of all pages to the number of pages whose text has the word. A word of a title adds much more to the
// number.
using Vocabulary = std::map<std::string, std::size_t>;

Vocabulary collect_words(const std::vector<Document>& documents) {
  constexpr std::size_t kOfTitle = 1000;
  Vocabulary words;
  for (const Document& document : documents) {
    for (const std::string& word : document.title) words[word] += kOfTitle;
    for (const auto& [word, count] : document.text) ++words[word];
  }
  return words;
}

// Everything that the search looks at.
struct Library {
  std::vector<Symptom> symptoms;
  std::vector<Document> documents;  // first those of `symptoms`, then those of the hazard pages
  Vocabulary vocabulary;
};

Library read_library() {
  Library library;
  for (const Page& page : symptom_pages()) {
    for (Symptom& symptom : read_symptoms(page.text)) {
      library.documents.push_back(make_document(symptom.title, symptom.text));
      library.symptoms.push_back(std::move(symptom));
    }
  }
  for (const Page& page : hazard_pages()) library.documents.push_back(make_document(page.name, page.text));
  library.vocabulary = collect_words(library.documents);
  return library;
}

// Returns the word of a page that the user probably meant by a word that no page has; "" if there is none. Only a few
// letters may be wrong, and not the first one.
std::string correct(const std::string& word, const Vocabulary& vocabulary) {
  constexpr std::size_t kShortest = 4;
  constexpr std::size_t kLong = 8;  // a word that may have two wrong letters
  constexpr std::size_t kLongest = 32;
  if (word.size() < kShortest || word.size() > kLongest) return {};
  const std::size_t allowed = word.size() >= kLong ? 2 : 1;
  std::string best;
  std::pair<std::size_t, std::size_t> rank{allowed, 0};  // the distance, then how many pages have the word
  for (const auto& [known, count] : vocabulary) {
    const bool is_near = known.size() >= kShortest && known.size() + allowed >= word.size() &&
                         word.size() + allowed >= known.size() && known.front() == word.front();
    const std::size_t distance = is_near ? edit_distance(word, known) : allowed + 1;
    if (distance > rank.first || (distance == rank.first && count <= rank.second)) continue;
    rank = {distance, count};
    best = known;
  }
  return best;
}

struct Word {
  std::string text;
  double weight = 0;  // greater if fewer pages have the word
};

struct Rank {
  double sum = 0;
  double share = 0;  // the weight of the words that the document has, as a share of the weight of all words
};

// Returns the share of the title that `words` cover: 1 if the title has no other words. Fillers do not count.
double find_coverage(const std::vector<std::string>& title, const std::vector<Word>& words) {
  double all = 0;
  double covered = 0;
  for (const std::string& word : title) {
    if (is_filler(word)) continue;
    ++all;
    if (std::ranges::any_of(words, [&](const Word& one) { return is_match(one.text, word); })) ++covered;
  }
  return all > 0 ? covered / all : 0;
}

Rank rank(const Document& document, const std::vector<Word>& words) {
  constexpr double kCoverageWeight = 0.5;
  Rank result;
  double all = 0;
  for (const Word& word : words) {
    all += word.weight;
    const bool is_in_title = count_word(document.title, word.text) > 0;
    const bool is_as_typed = std::ranges::find(document.title, word.text) != document.title.end();
    const double count = weight_of_count(count_word(document.text, word.text));
    result.sum += word.weight * ((is_as_typed ? kTitleWeight : is_in_title ? kInflectedWeight : 0) + count);
    result.share += is_in_title || count > 0 ? word.weight : 0;
  }
  result.share = all > 0 ? result.share / all : 0;
  // A page that lacks a rare word is less likely to be meant, even if the page has a frequent word in its title.
  result.sum *= result.share * (1 + kCoverageWeight * find_coverage(document.title, words));
  return result;
}

template <typename T>
struct Ranked {
  Rank rank;
  T item;
};

// Sorts the entries, and leaves out those that rank far below the first.
template <typename T>
void sort_best_first(std::vector<Ranked<T>>& entries) {
  std::erase_if(entries, [](const auto& entry) { return entry.rank.sum <= 0; });
  std::ranges::stable_sort(entries, std::greater<>(), [](const auto& entry) { return entry.rank.sum; });
  const double best = entries.empty() ? 0 : entries.front().rank.sum;
  std::erase_if(entries, [&](const auto& entry) { return entry.rank.sum < best * kShareOfListed; });
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

Found search_pages(const std::vector<std::string>& texts) {
  std::vector<std::string> typed;
  std::vector<std::string> wanted;
  for (const std::string& text : texts) {
    for (std::string& word : split_words(text)) {
      typed.push_back(word);
      if (std::ranges::find(wanted, word) == wanted.end()) wanted.push_back(std::move(word));
    }
  }
  static const Library library = read_library();
  const auto& [symptoms, documents, vocabulary] = library;
  // "data loader" also means "dataloader".
  for (std::size_t i = 0; i + 1 < typed.size(); ++i) {
    std::string joined = typed[i] + typed[i + 1];
    if (vocabulary.contains(joined) && std::ranges::find(wanted, joined) == wanted.end())
      wanted.push_back(std::move(joined));
  }
  const bool has_no_other = std::ranges::all_of(wanted, is_filler);
  if (!has_no_other) std::erase_if(wanted, is_filler);

  Found found;
  const auto count_pages = [&](const std::string& word) {
    return std::ranges::count_if(library.documents, [&](const Document& one) { return has_word(one, word); });
  };
  std::vector<std::string> meant;
  for (const std::string& word : wanted) {
    const bool is_known = is_incidental(word) || count_pages(word) != 0;
    const std::string nearest = is_known ? "" : correct(word, vocabulary);
    if (!nearest.empty()) found.corrected.emplace_back(word, nearest);
    const std::string& one = nearest.empty() ? word : nearest;
    const bool is_new = std::ranges::find(meant, one) == meant.end();
    if (is_new && (has_no_other || !is_filler(one))) meant.push_back(one);
  }
  std::vector<Word> words;
  for (const std::string& word : meant) {
    const auto count = count_pages(word);
    const bool is_unknown = count == 0 && word.size() > 1 && !is_incidental(word);
    if (is_unknown) found.unknown.push_back(word);
    if (is_unknown || count != 0) {
      const double pages = static_cast<double>(documents.size());
      words.push_back({word, std::log(1 + pages / static_cast<double>(std::max<std::ptrdiff_t>(count, 1)))});
    }
  }
  std::vector<Ranked<Symptom>> of_symptoms;
  std::vector<Ranked<std::string>> of_hazards;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const Rank value = rank(documents[i], words);
    if (i < symptoms.size()) {
      of_symptoms.push_back({value, symptoms[i]});
    } else {
      of_hazards.push_back({value, std::string(hazard_pages()[i - symptoms.size()].name)});
    }
  }
  sort_best_first(of_symptoms);
  sort_best_first(of_hazards);
  found.has_best = !has_no_other && !of_symptoms.empty() && of_symptoms.front().rank.share >= kShareOfBest;
  for (Ranked<Symptom>& entry : of_symptoms) found.symptoms.push_back(std::move(entry.item));
  for (Ranked<std::string>& entry : of_hazards) found.hazards.push_back(std::move(entry.item));
  return found;
}

}  // namespace forksight
