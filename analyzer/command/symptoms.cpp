#include "command/symptoms.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <set>
#include <utility>

#include "command/nearest.hpp"
#include "command/pages.hpp"
#include "render/printable.hpp"

namespace forksight {
namespace {

constexpr double kTitleWeight = 4;
constexpr double kFirstOfTitleWeight = 5;  // the first word of a title mostly names what the section is about
constexpr double kInflectedWeight = 2;     // for "fork" in a title that has "forked"
// The weight of two words that stand side by side in a title or in a text, as they were typed: "daemon thread".
constexpr double kPairInTitleWeight = 2;
constexpr double kPairInTextWeight = 1;
// The weight of the words "pipe" and "read" if `pipe_read` was typed, and a page has the whole name.
constexpr double kPartOfNameWeight = 0.5;
// The first symptom is printed whole if its words have this share of the weight of all words.
constexpr double kShareOfBest = 0.45;
// A page is listed if it ranks at least this share of the best page of its kind.
constexpr double kShareOfListed = 0.4;

// Words that do not tell one page from another: articles and the like, and words that say that something hangs. Sorted.
// "no" and "go" are not among them: "no output" is a symptom, and Go is a language.
constexpr std::array<std::string_view, 111> kFillers{
    "a",      "after", "again",  "all",     "always", "am",      "an",    "and",       "any",    "anything", "app",
    "are",    "arent", "as",     "at",      "be",     "because", "been",  "block",     "but",    "by",       "can",
    "cannot", "cant",  "come",   "couldnt", "day",    "didn",    "didnt", "do",        "does",   "doesn",    "doesnt",
    "doing",  "done",  "dont",   "end",     "ever",   "finish",  "for",   "forever",   "freeze", "from",     "froze",
    "frozen", "get",   "got",    "hang",    "has",    "hasnt",   "have",  "havent",    "hour",   "hung",     "i",
    "if",     "in",    "is",     "isn",     "isnt",   "it",      "its",   "just",      "keep",   "like",     "minute",
    "my",     "never", "not",    "nothing", "of",     "on",      "or",    "our",       "out",    "problem",  "program",
    "return", "s",     "script", "see",     "shows",  "so",      "some",  "sometimes", "stall",  "still",    "stuck",
    "t",      "that",  "the",    "there",   "this",   "to",      "use",   "using",     "was",    "wasnt",    "we",
    "what",   "when",  "where",  "which",   "while",  "who",     "why",   "will",      "with",   "wont",     "wouldnt",
    "you"};

// Names that no page has to have, and that resemble a word of a page. They are not misspelt. Sorted.
constexpr std::array<std::string_view, 12> kWellKnown{"apache", "bash",  "boost", "cython",      "dash",    "lagging",
                                                      "parse",  "patch", "spark", "supervisord", "systemd", "waitress"};

// The section for a user who knows only that something hangs.
constexpr std::string_view kGeneralSection = "A process is idle";

// A word without the ending of a plural or of a tense.
struct Stem {
  std::string text;
  bool may_lack_e = false;  // "freez" of "freezing", and not of "freeze"
};

// Removes the ending if at least `fewest_left` letters are left.
bool remove_ending(std::string& word, std::string_view ending, std::size_t fewest_left) {
  if (!word.ends_with(ending) || word.size() < fewest_left + ending.size()) return false;
  word.resize(word.size() - ending.size());
  return true;
}

Stem find_stem(std::string word) {
  constexpr std::size_t kFewestLeft = 3;
  constexpr std::size_t kFewestBeforeY = 5;  // of a word such as "retrie", which becomes "retry"
  Stem stem;
  const auto ends_with_any = [&](std::initializer_list<std::string_view> endings) {
    return std::ranges::any_of(endings, [&](std::string_view ending) { return word.ends_with(ending); });
  };
  if (ends_with_any({"sses", "shes", "ches", "xes"})) {
    stem.may_lack_e = remove_ending(word, "es", kFewestLeft);
  } else if (!ends_with_any({"ss", "us", "is"})) {
    remove_ending(word, "s", kFewestLeft);
  }
  if (word.size() >= kFewestBeforeY && remove_ending(word, "ie", 1)) word += 'y';
  if (remove_ending(word, "ing", kFewestLeft) || remove_ending(word, "ed", kFewestLeft)) {
    stem.may_lack_e = true;
    const std::size_t size = word.size();
    const bool is_doubled = size > kFewestLeft && word[size - 1] == word[size - 2];
    if (is_doubled && !ends_with_any({"l", "s", "z"})) word.pop_back();  // "stopped"
  }
  stem.text = std::move(word);
  return stem;
}

// True for two forms of one word: "process" and "processes", "freeze" and "freezing".
bool has_same_stem(const std::string& one, const std::string& other) {
  const Stem first = find_stem(one);
  const Stem second = find_stem(other);
  return first.text == second.text || (first.may_lack_e && first.text + "e" == second.text) ||
         (second.may_lack_e && second.text + "e" == first.text);
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

bool is_letter_or_digit(char c) {
  constexpr unsigned char kFirstOfOtherScripts = 0x80;
  const auto byte = static_cast<unsigned char>(c);
  return byte >= kFirstOfOtherScripts || std::isalnum(byte) != 0;
}

// Returns the text with the letters of Latin-1 in lower case, with "'" for a typographic apostrophe, and with a blank
// for each sign that is neither ASCII nor a letter.
std::string fold_signs(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    std::uint32_t code_point = 0;
    const std::size_t length = render::sequence_length(text.substr(at), code_point);
    const std::string_view character = text.substr(at, std::max<std::size_t>(length, 1));
    at += character.size();
    const auto is_between = [&](std::uint32_t first, std::uint32_t last) {
      return first <= code_point && code_point <= last;
    };
    constexpr std::uint32_t kTimes = 0xd7;
    constexpr std::uint32_t kDivided = 0xf7;
    const bool is_sign = is_between(0x80, 0xbf) || is_between(0x2000, 0x303f) || code_point == kTimes ||
                         code_point == kDivided;
    if (length != 0 && is_between(0x2018, 0x2019)) {
      result += '\'';
    } else if (length == 0 || is_sign) {
      result += ' ';
    } else if (is_between(0xc0, 0xde)) {
      result += character[0];
      result += static_cast<char>(static_cast<unsigned char>(character[1]) + 0x20);
    } else {
      result += character;
    }
  }
  return result;
}

// Returns how many characters to leave out at an apostrophe inside of a word: "won't" is "wont", and "child's" is
// "child". Returns 0 if there is no such apostrophe.
std::size_t skip_apostrophe(std::string_view text, std::size_t at) {
  const auto is_letter = [&](std::size_t i) { return i < text.size() && is_letter_or_digit(text[i]); };
  if (text[at] != '\'' || at == 0 || !is_letter(at - 1) || !is_letter(at + 1)) return 0;
  return text[at + 1] == 's' && !is_letter(at + 2) ? 2 : 1;
}

// Returns the words of the text in lower case. Any character that is neither a letter nor a digit separates words.
// There are three exceptions. An apostrophe does not separate words. A number and the percent sign behind it are one
// word, because "0 % CPU" and "100 % CPU" are different symptoms. And a name such as `apply_async` is a word of its
// own, beside its parts.
std::vector<std::string> split_words(std::string_view unfolded) {
  const std::string folded = fold_signs(unfolded);
  const std::string_view text = folded;
  std::vector<std::string> words;
  std::string word;
  std::string name;  // the parts of a name so far, joined by "_"
  const auto end_word = [&](bool goes_on) {
    if (!word.empty()) {
      name += (name.empty() ? "" : "_") + word;
      if (word == "without") word = "no";  // "without output" means "no output"
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
    if (is_letter_or_digit(c)) {
      word += c >= 'A' && c <= 'Z' ? static_cast<char>(std::tolower(static_cast<unsigned char>(c))) : c;
      continue;
    }
    if (const std::size_t skipped = skip_apostrophe(text, at); skipped != 0) {
      at += skipped - 1;
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
  const std::string stem = find_stem(word).text;
  return is_it(word) || is_it(stem) || is_it(stem + "e");
}

// True for a word that says nothing if it is alone with fillers: "my process hangs".
bool is_vague(const std::string& word) { return is_filler(word) || word == "process"; }

// True if the word of a page is the wanted word, has another ending, or begins with the wanted word.
bool is_match(const std::string& wanted, const std::string& word) {
  constexpr std::size_t kShortestStart = 4;  // of words that are compared by their beginning
  if (wanted.front() != word.front()) return false;
  if (wanted == word || has_same_stem(wanted, word)) return true;
  return wanted.size() >= kShortestStart && word.starts_with(wanted);
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

using Pair = std::pair<std::string, std::string>;  // two words, side by side

bool has_pair(const std::vector<std::string>& words, const Pair& pair) {
  const auto is_pair = [&](const std::string& one, const std::string& next) {
    return one == pair.first && next == pair.second;
  };
  return std::ranges::adjacent_find(words, is_pair) != words.end();
}

struct Document {
  std::vector<std::string> title;
  std::vector<std::string> title_without_fillers;
  std::vector<std::string> text_in_order;
  Counts text;
};

Document make_document(std::string_view title, std::string_view text) {
  Document document;
  document.title = split_words(title);
  document.title_without_fillers = document.title;
  std::erase_if(document.title_without_fillers, is_filler);
  document.text_in_order = split_page(text);
  for (const std::string& word : document.text_in_order) ++document.text[word];
  return document;
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

using Forms = std::vector<std::string>;  // the words of all pages that match a wanted word, sorted

Forms find_forms(const Vocabulary& vocabulary, const std::string& wanted) {
  Forms forms;
  for (auto at = vocabulary.lower_bound(wanted.substr(0, 1)); at != vocabulary.end(); ++at) {
    if (at->first.front() != wanted.front()) break;
    if (is_match(wanted, at->first)) forms.push_back(at->first);
  }
  return forms;
}

bool is_form(const Forms& forms, const std::string& word) { return std::ranges::binary_search(forms, word); }

bool has_form(const std::vector<std::string>& words, const Forms& forms) {
  return std::ranges::any_of(words, [&](const std::string& word) { return is_form(forms, word); });
}

std::size_t count_forms(const Counts& text, const Forms& forms) {
  std::size_t sum = 0;
  for (const std::string& form : forms) {
    if (const auto found = text.find(form); found != text.end()) sum += found->second;
  }
  return sum;
}

std::ptrdiff_t count_pages(const std::vector<Document>& documents, const Forms& forms) {
  return std::ranges::count_if(
      documents, [&](const Document& one) { return has_form(one.title, forms) || count_forms(one.text, forms) > 0; });
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

// True if a word that resembles a known word may be a word of its own. It is one if only its last letters differ
// ("systemd" and "system"), unless the last letter was typed twice. A word of five letters is one, unless it lacks a
// letter or has two letters in the wrong order.
bool may_be_another_word(std::string word, std::string known) {
  constexpr std::size_t kShort = 5;
  const bool is_longer = word.size() == known.size() + 1 && word.back() == known.back();
  if (word.starts_with(known) && !is_longer) return true;
  if (word.size() == known.size() && known.starts_with(std::string_view(word).substr(0, word.size() - 1))) return true;
  if (word.size() != kShort || word.size() < known.size()) return false;
  std::ranges::sort(word);
  std::ranges::sort(known);
  return word != known;
}

// Returns the word of a page that the user probably meant by a word that no page has; "" if there is none. Only a few
// letters may be wrong, and not the first one.
std::string correct(const std::string& word, const Vocabulary& vocabulary) {
  constexpr std::size_t kShortest = 5;
  constexpr std::size_t kShortestKnown = 4;
  constexpr std::size_t kLong = 8;  // a word that may have two wrong letters
  constexpr std::size_t kLongest = 32;
  const bool is_ascii = std::ranges::all_of(word, [](unsigned char c) { return std::isalnum(c) != 0; });
  if (word.size() < kShortest || word.size() > kLongest || !is_ascii) return {};
  if (std::ranges::binary_search(kWellKnown, word)) return {};
  const std::size_t allowed = word.size() >= kLong ? 2 : 1;
  std::string best;
  std::pair<std::size_t, std::size_t> rank{allowed, 0};  // the distance, then how many pages have the word
  for (const auto& [known, count] : vocabulary) {
    const bool is_near = known.size() >= kShortestKnown && known.size() + allowed >= word.size() &&
                         word.size() + allowed >= known.size() && known.front() == word.front();
    const std::size_t distance = is_near ? edit_distance(word, known) : allowed + 1;
    if (distance > rank.first || (distance == rank.first && count <= rank.second)) continue;
    if (may_be_another_word(word, known)) continue;
    rank = {distance, count};
    best = known;
  }
  return best;
}

struct Word {
  std::string text;
  Forms forms;
  double weight = 0;  // greater if fewer pages have the word
};

struct WeightedPair {
  Pair words;
  double weight = 0;
};

struct Query {
  std::vector<Word> words;
  std::vector<WeightedPair> pairs;
};

// Returns the weight of something that `count` of `all` pages have.
double weight_of_rarity(std::size_t all, std::ptrdiff_t count) {
  return std::log(1 + static_cast<double>(all) / static_cast<double>(std::max<std::ptrdiff_t>(count, 1)));
}

// Returns the pairs of words that were typed side by side, and that a page has side by side. A pair with a filler says
// nothing.
std::vector<WeightedPair> weigh_pairs(const std::vector<std::string>& typed, const std::vector<Document>& documents) {
  std::vector<WeightedPair> weighted;
  std::set<Pair> pairs;
  for (std::size_t i = 0; i + 1 < typed.size(); ++i) pairs.emplace(typed[i], typed[i + 1]);
  for (const Pair& pair : pairs) {
    if (is_filler(pair.first) || is_filler(pair.second)) continue;
    const auto count = std::ranges::count_if(
        documents, [&](const Document& one) { return has_pair(one.title, pair) || has_pair(one.text_in_order, pair); });
    if (count != 0) weighted.push_back({pair, weight_of_rarity(documents.size(), count)});
  }
  return weighted;
}

struct Rank {
  double sum = 0;
  double share = 0;  // the weight of the words that the document has, as a share of the weight of all words
};

// Returns the share of the title that `words` cover: 1 if the title has no other words. `title` has no fillers.
double find_coverage(const std::vector<std::string>& title, const std::vector<Word>& words) {
  const auto is_covered = [&](const std::string& word) {
    return std::ranges::any_of(words, [&](const Word& one) { return is_form(one.forms, word); });
  };
  const auto covered = static_cast<double>(std::ranges::count_if(title, is_covered));
  return title.empty() ? 0 : covered / static_cast<double>(title.size());
}

double weigh_title(const std::vector<std::string>& title, const Word& word) {
  if (!title.empty() && title.front() == word.text) return kFirstOfTitleWeight;
  if (std::ranges::find(title, word.text) != title.end()) return kTitleWeight;
  return has_form(title, word.forms) ? kInflectedWeight : 0;
}

Rank rank(const Document& document, const Query& query) {
  constexpr double kCoverageWeight = 0.5;
  Rank result;
  double all = 0;
  for (const Word& word : query.words) {
    all += word.weight;
    const double title = weigh_title(document.title, word);
    const double count = weight_of_count(count_forms(document.text, word.forms));
    result.sum += word.weight * (title + count);
    result.share += title > 0 || count > 0 ? word.weight : 0;
  }
  for (const WeightedPair& pair : query.pairs) {
    result.sum += has_pair(document.title, pair.words) ? pair.weight * kPairInTitleWeight : 0;
    result.sum += has_pair(document.text_in_order, pair.words) ? pair.weight * kPairInTextWeight : 0;
  }
  result.share = all > 0 ? result.share / all : 0;
  // A page that lacks a rare word is less likely to be meant, even if the page has a frequent word in its title.
  result.sum *= result.share * (1 + kCoverageWeight * find_coverage(document.title_without_fillers, query.words));
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
  static const Library library = read_library();
  const auto& [symptoms, documents, vocabulary] = library;
  const auto is_on_a_page = [&](const std::string& word) { return !find_forms(library.vocabulary, word).empty(); };
  const auto contains = [](const auto& words, const std::string& word) {
    return std::ranges::find(words, word) != words.end();
  };
  std::vector<std::string> typed;
  std::vector<std::string> parts;  // of typed names that a page has
  for (const std::string& text : texts) {
    for (std::string& word : split_words(text)) {
      if (word.find('_') != std::string::npos && is_on_a_page(word)) {
        const auto count = std::min<std::ptrdiff_t>(std::ranges::count(word, '_') + 1, std::ssize(typed));
        const auto of_name = typed.end() - count;
        parts.insert(parts.end(), of_name, typed.end());
        typed.erase(of_name, typed.end());
      }
      typed.push_back(std::move(word));
    }
  }
  std::vector<std::string> wanted;
  const auto add_wanted = [&](const std::string& word) {
    if (!contains(wanted, word)) wanted.push_back(word);
  };
  for (const std::string& word : typed) add_wanted(word);
  for (const std::string& word : parts) add_wanted(word);
  Found found;
  if (wanted.empty()) return found;
  // "data loader" also means "dataloader".
  for (std::size_t i = 0; i + 1 < typed.size(); ++i) {
    const std::string joined = typed[i] + typed[i + 1];
    if (vocabulary.contains(joined)) add_wanted(joined);
  }
  const bool has_no_other = std::ranges::all_of(wanted, is_vague);
  if (!has_no_other) std::erase_if(wanted, is_filler);

  std::vector<std::string> meant;
  for (const std::string& word : wanted) {
    const bool is_known = is_incidental(word) || is_on_a_page(word);
    const std::string nearest = is_known ? "" : correct(word, vocabulary);
    if (!nearest.empty()) found.corrected.emplace_back(word, nearest);
    const std::string& one = nearest.empty() ? word : nearest;
    if (!contains(meant, one) && (has_no_other || !is_filler(one))) meant.push_back(one);
  }
  // True if the words say only that something hangs.
  const bool says_only_hang = has_no_other || meant.empty();
  Query query{{}, weigh_pairs(typed, documents)};
  for (const std::string& word : meant) {
    Forms forms = find_forms(vocabulary, word);
    const auto count = count_pages(documents, forms);
    const bool is_unknown = count == 0 && word.size() > 1 && !is_incidental(word);
    if (is_unknown && !says_only_hang) found.unknown.push_back(word);
    if (is_unknown || count != 0) {
      const bool is_part = contains(parts, word) && !contains(typed, word);
      const double weight = weight_of_rarity(documents.size(), count) * (is_part ? kPartOfNameWeight : 1);
      query.words.push_back({word, std::move(forms), weight});
    }
  }
  std::vector<Ranked<Symptom>> of_symptoms;
  std::vector<Ranked<std::string>> of_hazards;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const Rank value = rank(documents[i], query);
    if (i < symptoms.size()) {
      of_symptoms.push_back({value, symptoms[i]});
    } else {
      of_hazards.push_back({value, std::string(hazard_pages()[i - symptoms.size()].name)});
    }
  }
  sort_best_first(of_symptoms);
  sort_best_first(of_hazards);
  found.has_best = !says_only_hang && !of_symptoms.empty() && of_symptoms.front().rank.share >= kShareOfBest;
  const auto is_general = [](const Symptom& one) { return one.title.starts_with(kGeneralSection); };
  if (const auto general = std::ranges::find_if(symptoms, is_general); says_only_hang && general != symptoms.end())
    found.symptoms.push_back(*general);
  for (Ranked<Symptom>& entry : of_symptoms) {
    if (!says_only_hang || !is_general(entry.item)) found.symptoms.push_back(std::move(entry.item));
  }
  for (Ranked<std::string>& entry : of_hazards) found.hazards.push_back(std::move(entry.item));
  return found;
}

}  // namespace forksight
