#pragma once

#include <utility>

namespace stagecraft {

/// An open file, which this closes.
class OpenFile {
 public:
  explicit OpenFile(int number = -1) : number_(number) {}
  OpenFile(OpenFile&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  OpenFile& operator=(OpenFile&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~OpenFile();

  int number() const { return number_; }
  void close();

 private:
  int number_;
};

}  // namespace stagecraft
