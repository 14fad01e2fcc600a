// The right to read what strangers control, for tests, which read only what they have made themselves.
#pragma once

#include "files/reader.hpp"

namespace forksight::files {

struct ReaderOfTest {
  Reader reader;
};

inline const Reader& reader_of_test() {
  static const ReaderOfTest mine;
  return mine.reader;
}

}  // namespace forksight::files
