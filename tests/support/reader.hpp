// Functions that parse data of other users need a files::Reader as an argument. Tests get one here, because they read
// only files that they have written themselves.
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
