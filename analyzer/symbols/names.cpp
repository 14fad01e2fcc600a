#include "symbols/names.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "model/base_name.hpp"
#include "symbols/demangle.hpp"

namespace forksight::symbols {
namespace {

constexpr std::string_view kAnonymous = "(anonymous namespace)";

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

// Returns the length of the operator name at `at` ("operator()", "operator<<", "operator new[]"); 0 if there is no such
// name. Callers must not count the brackets in such a name.
std::size_t operator_length(std::string_view text, std::size_t at) {
  constexpr std::string_view kWord = "operator";
  if (text.substr(at, kWord.size()) != kWord || (at > 0 && is_word(text[at - 1]))) return 0;
  std::string_view rest = text.substr(at + kWord.size());
  if (rest.empty() || is_word(rest.front())) return 0;
  for (std::string_view symbol : {"()", "[]", "<=>", "->*", "->", "<<=", ">>=", "<<", ">>", "<=", ">=", "<", ">"}) {
    if (rest.starts_with(symbol)) return kWord.size() + symbol.size();
  }
  return kWord.size();
}

// Shortens the names of lambdas: "{lambda(int, char)#2}" (GCC) and "$_1" (Clang) become "{lambda#2}".
std::string with_short_lambdas(std::string_view text) {
  constexpr std::string_view kGcc = "{lambda(";
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (text.substr(i).starts_with(kGcc)) {
      int depth = 1;
      std::size_t end = i + kGcc.size();
      for (; end < text.size() && depth > 0; ++end) {
        if (text[end] == '(') ++depth;
        if (text[end] == ')') --depth;
      }
      out.append("{lambda");
      i = end;
    } else if (text.substr(i).starts_with("$_") && i + 2 < text.size() && text[i + 2] >= '0' && text[i + 2] <= '9') {
      unsigned number = 0;
      for (i += 2; i < text.size() && text[i] >= '0' && text[i] <= '9' && number < 100000; ++i) {
        number = number * 10 + static_cast<unsigned>(text[i] - '0');
      }
      out.append("{lambda#").append(std::to_string(number + 1)).append("}");
    } else {
      out.push_back(text[i++]);
    }
  }
  return out;
}

// Removes parameter lists, which are round brackets outside of template arguments and lambda descriptions. Also removes
// what follows the last list (" const", " &").
std::string without_parameters(std::string_view text) {
  std::string out;
  int angle = 0;
  int curly = 0;
  for (std::size_t i = 0; i < text.size();) {
    if (std::size_t length = operator_length(text, i); length > 0) {
      out.append(text.substr(i, length));
      i += length;
      continue;
    }
    if (text.substr(i).starts_with(kAnonymous)) {
      out.append(kAnonymous);
      i += kAnonymous.size();
      continue;
    }
    const char c = text[i];
    if (c == '<') ++angle;
    if (c == '>' && angle > 0) --angle;
    if (c == '{') ++curly;
    if (c == '}' && curly > 0) --curly;
    if (c == '(' && angle == 0 && curly == 0) {
      int depth = 0;
      std::size_t end = i;
      for (; end < text.size(); ++end) {
        if (text[end] == '(') ++depth;
        if (text[end] == ')' && --depth == 0) break;
      }
      if (end >= text.size()) return out;  // the brackets are not balanced, so the text before them counts as the name
      i = end + 1;
      const std::size_t next = text.find("::", i);
      if (next == std::string_view::npos) return out;  // this was the last list; only qualifiers follow
      for (std::string_view qualifier : {" const", " volatile", " &&", " &"}) {
        if (text.substr(i).starts_with(qualifier)) i += qualifier.size();
      }
      continue;
    }
    out.push_back(c);
    ++i;
  }
  return out;
}

// Removes the return type, which ends at the last space outside of brackets: "void app::f<int>" becomes "app::f<int>".
std::string without_return_type(const std::string& text) {
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i < text.size();) {
    if (std::size_t length = operator_length(text, i); length > 0) break;  // "operator bool" itself contains a space
    if (std::string_view(text).substr(i).starts_with(kAnonymous)) {
      i += kAnonymous.size();
      continue;
    }
    const char c = text[i];
    if (c == '<' || c == '{' || c == '(') ++depth;
    if ((c == '>' || c == '}' || c == ')') && depth > 0) --depth;
    if (c == ' ' && depth == 0) start = i + 1;
    ++i;
  }
  return text.substr(start);
}

// Removes what compilers append to the names of parts and copies of a function. "._omp_fn.0" stays, because it tells a
// user that the code is an OpenMP region.
std::string_view without_clone_suffix(std::string_view name) {
  for (std::string_view suffix : {".isra.", ".part.", ".constprop.", ".llvm.", ".lto_priv.", ".cold"}) {
    if (const std::size_t at = name.find(suffix); at != std::string_view::npos && at > 0) name = name.substr(0, at);
  }
  return name;
}

// Removes the hash from a name of Rust, and decodes its characters. Rust's older mangling
// (rustc_symbol_mangling::legacy) is the mangling of C++, with two additions. The last part is a hash. Characters that
// C++ names cannot have are encoded, for example "{" as "$u7b$". An example of a whole name:
// "fn::main::_$u7b$$u7b$closure$u7d$$u7d$::h5e3b1e91b2b0fec4". Other names are returned unchanged.
std::string without_rust_hash(std::string name) {
  constexpr std::size_t kHash = 16;
  const std::size_t hash = name.rfind("::h");
  const bool is_rust = hash != std::string::npos && hash > 0 && name.size() - hash == 3 + kHash &&
                       name.find_first_not_of("0123456789abcdef", hash + 3) == std::string::npos;
  if (!is_rust) return name;
  name.resize(hash);
  replace_all(name, "::_$", "::$");
  constexpr std::pair<std::string_view, std::string_view> kSigns[] = {{"$u7b$", "{"}, {"$u7d$", "}"}, {"$LT$", "<"},
                                                                      {"$GT$", ">"},  {"$RF$", "&"},  {"$BP$", "*"},
                                                                      {"$C$", ","},   {"$u20$", " "}, {"..", "::"}};
  for (const auto& [sign, text] : kSigns) replace_all(name, sign, text);
  return name;
}

}  // namespace

std::string simplify_name(std::string_view demangled) {
  std::string_view body = demangled;
  std::string suffix;
  if (const std::size_t clone = body.find(" [clone "); clone != std::string_view::npos) {
    const std::size_t omp = body.find("._omp_fn.", clone);
    if (omp != std::string_view::npos) suffix = body.substr(omp, body.find(']', omp) - omp);
    body = body.substr(0, clone);
  }
  if (const std::size_t version = body.find('@'); version != std::string_view::npos && version > 0) {
    body = body.substr(0, version);
  }
  // "vtable for X", "guard variable for f()::x", "non-virtual thunk to X::f()": these first words are part of the name,
  // so they stay.
  std::string prefix;
  for (std::string_view words : {"guard variable for ", "vtable for ", "VTT for ", "typeinfo for ",
                                 "typeinfo name for ", "non-virtual thunk to ", "virtual thunk to ",
                                 "reference temporary for ", "TLS wrapper function for ", "TLS init function for "}) {
    if (body.starts_with(words)) {
      prefix = words;
      body.remove_prefix(words.size());
      break;
    }
  }
  std::string text = with_short_lambdas(body);
  replace_all(text, "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string");
  replace_all(text, "std::__cxx11::", "std::");
  replace_all(text, "std::__1::", "std::");
  replace_all(text, "> >", ">>");
  replace_all(text, "> >", ">>");
  text = without_return_type(without_parameters(text));
  return prefix + std::string(without_clone_suffix(text)) + suffix;
}

std::string readable_name(const char* linkage_name) {
  if (linkage_name == nullptr) return {};
  std::string_view name(linkage_name, ::strnlen(linkage_name, kMaxNameBytes));
  if (name.starts_with("_Z")) {
    if (const auto text = demangle(linkage_name)) {
      std::string rust = without_rust_hash(*text);
      return rust == *text ? simplify_name(rust) : rust;
    }
  }
  if (const std::size_t version = name.find('@'); version != std::string_view::npos && version > 0) {
    name = name.substr(0, version);
  }
  return std::string(without_clone_suffix(name));
}

bool is_c_library(std::string_view path) {
  const std::string_view name = model::base_name(path);
  const std::array<std::string_view, 5> prefixes{"libc.so", "libc-2", "libpthread", "ld-linux", "ld-2"};
  return std::ranges::any_of(prefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace forksight::symbols
