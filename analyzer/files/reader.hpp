// The right to read what strangers control: traces, cores, ELF files, the memory of processes, queues.
#pragma once

namespace forksight {

namespace guard {
class ReaderMaker;
}

namespace files {

// A function that begins to parse data of strangers takes a `const Reader&`. Only the code that makes a child process
// without rights (guard/child.cpp) can make a Reader, and passes it to the work of that child. So a new verb cannot
// parse such data in the process that the user started: it does not compile.
class Reader {
 public:
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

 private:
  Reader() = default;
  friend class guard::ReaderMaker;
  friend struct ReaderOfTest;  // tests/support/reader.hpp: a test is its own stranger
};

}  // namespace files
}  // namespace forksight
