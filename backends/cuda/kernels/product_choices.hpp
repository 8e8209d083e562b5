#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

// The algorithms that matrix products of this process take, and the file in which runs find them again.

namespace stagecraft::cuda {

/// Which of the algorithms that cuBLASLt offered was chosen, counted from 0, and how many it offered.
struct ProductChoice {
  int algorithm = 0, offered = 0;
};

/// One choice for each product on each GPU of this process, by its text: "512x1024x512, 1 of them, on 132
/// multiprocessors; tf32, ...".
class ProductChoices {
 public:
  static ProductChoices& of_process();

  /// From here on choices come from this file where it has them, and are added to it; empty: no file. InputError for a
  /// file of anything else.
  void open(const std::string& path);
  /// Writes the file with the choices that were added. Nothing happens if there are none.
  void save();
  /// InputError if the file has, or will have, the choices of another `machine`: the name of a GPU and the version of
  /// its library.
  void require_machine(const std::string& machine);

  /// The choice in the file, or an earlier one of this process. Without either it is what `choose` returns, or the
  /// first algorithm where that is a null function, which is not remembered.
  int find(int gpu, const std::string& product, int offered, const std::function<int()>& choose);
  /// "512x1024x512, 1 of them, on 132 multiprocessors: 3 of 8".
  std::vector<std::string> texts();

 private:
  std::mutex mutex_;
  std::map<std::pair<int, std::string>, ProductChoice> taken_;  ///< By GPU and product.
  std::string path_, machine_;                    ///< The file, if there is one, and whose choices it has.
  std::map<std::string, ProductChoice> in_file_;  ///< Choices that the file has, or will have.
  bool is_read_ = false, is_changed_ = false;     ///< Whether the file was there, and whether it has to be written.
};

}  // namespace stagecraft::cuda
