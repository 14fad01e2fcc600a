// The string and memory functions of the shim. They have libc's names, so that calls in the sources, and calls that the
// compiler generates, use them. These functions are hidden, so no other code uses them. The shim must not call libc's
// own functions: sanitizers, memory checkers and tracers interpose libc's functions, and the interposers crash if they
// are called too early. For example, a sanitizer calls dlsym at its start, and the hook of dlsym then compares names.
//   async-signal-safe, fork-child-safe, almost no stack. This file is compiled so that no loop becomes a call.
#include <cstddef>

// NOLINTBEGIN(readability-identifier-naming, bugprone-easily-swappable-parameters)
#define FORKSIGHT_OWN extern "C" [[gnu::visibility("hidden"), gnu::used]]

// libc's headers are not included, because they declare the functions that are defined below.
FORKSIGHT_OWN void* memcpy(void* to, const void* from, std::size_t bytes) {
  void* at = to;
  asm volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(bytes)::"memory");
  return to;
}

FORKSIGHT_OWN void* memmove(void* to, const void* from, std::size_t bytes) {
  auto* const out = static_cast<unsigned char*>(to);
  const auto* const in = static_cast<const unsigned char*>(from);
  if (out <= in || out >= in + bytes) return memcpy(to, from, bytes);
  for (std::size_t i = bytes; i-- > 0;) out[i] = in[i];
  return to;
}

FORKSIGHT_OWN void* memset(void* to, int value, std::size_t bytes) {
  void* at = to;
  asm volatile("rep stosb" : "+D"(at), "+c"(bytes) : "a"(value) : "memory");
  return to;
}

FORKSIGHT_OWN int memcmp(const void* one, const void* other, std::size_t bytes) {
  const auto* const left = static_cast<const unsigned char*>(one);
  const auto* const right = static_cast<const unsigned char*>(other);
  for (std::size_t i = 0; i < bytes; ++i) {
    if (left[i] != right[i]) return left[i] - right[i];
  }
  return 0;
}

// clang calls bcmp() instead of memcmp() where only equality matters.
FORKSIGHT_OWN int bcmp(const void* one, const void* other, std::size_t bytes) { return memcmp(one, other, bytes); }

FORKSIGHT_OWN const void* memchr(const void* text, int letter, std::size_t bytes) {
  const auto* const at = static_cast<const unsigned char*>(text);
  for (std::size_t i = 0; i < bytes; ++i) {
    if (at[i] == static_cast<unsigned char>(letter)) return at + i;
  }
  return nullptr;
}

FORKSIGHT_OWN std::size_t strnlen(const char* text, std::size_t most) {
  std::size_t length = 0;
  while (length < most && text[length] != '\0') ++length;
  return length;
}

FORKSIGHT_OWN std::size_t strlen(const char* text) { return strnlen(text, static_cast<std::size_t>(-1)); }

FORKSIGHT_OWN int strncmp(const char* one, const char* other, std::size_t most) {
  for (std::size_t i = 0; i < most; ++i) {
    const auto left = static_cast<unsigned char>(one[i]);
    const auto right = static_cast<unsigned char>(other[i]);
    if (left != right) return left - right;
    if (left == '\0') return 0;
  }
  return 0;
}

FORKSIGHT_OWN int strcmp(const char* one, const char* other) {
  return strncmp(one, other, static_cast<std::size_t>(-1));
}

FORKSIGHT_OWN const char* strchr(const char* text, int letter) {
  for (;; ++text) {
    if (*text == static_cast<char>(letter)) return text;
    if (*text == '\0') return nullptr;
  }
}

FORKSIGHT_OWN const char* strrchr(const char* text, int letter) {
  const char* last = nullptr;
  for (;; ++text) {
    if (*text == static_cast<char>(letter)) last = text;
    if (*text == '\0') return last;
  }
}

FORKSIGHT_OWN char* strncpy(char* to, const char* from, std::size_t most) {
  const std::size_t length = strnlen(from, most);
  memcpy(to, from, length);
  memset(to + length, 0, most - length);
  return to;
}
// NOLINTEND(readability-identifier-naming, bugprone-easily-swappable-parameters)
