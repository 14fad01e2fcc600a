// A Reader is the right to read what strangers (other users) control: traces, cores, ELF files, the memory of
// processes, queues.
#pragma once

namespace forksight {

namespace guard {
class ReaderMaker;
}

namespace files {

// A function that begins to parse data of strangers takes a `const Reader&`. Only the code that makes a child process
// without rights (guard/child.cpp) can make a Reader. This code passes the Reader to the work of that child. So if a
// new verb parses such data in the process that the user started, the verb does not compile.
class Reader {
 public:
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

 private:
  Reader() = default;
  friend class guard::ReaderMaker;
  // Defined in tests/support/reader.hpp. A test may make a Reader, because a test parses only data that the test itself
  // has made.
  friend struct ReaderOfTest;
};

}  // namespace files
}  // namespace forksight
