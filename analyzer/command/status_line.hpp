// One line on a terminal that each call of show() writes again, for example for progress. Prints nothing if standard
// error is no terminal.
#pragma once

#include <string_view>

namespace forksight {

class StatusLine {
 public:
  StatusLine();
  ~StatusLine() { clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  bool is_on_terminal() const { return is_on_terminal_; }
  // Cuts the text to the width of the terminal, because clear() could not remove a longer line.
  void show(std::string_view text);
  // Removes the line.
  void clear();

 private:
  bool is_on_terminal_;
  bool is_shown_ = false;
};

}  // namespace forksight
