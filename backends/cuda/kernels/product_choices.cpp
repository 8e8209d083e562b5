// Keeps the algorithm of each matrix product of this process, and reads and writes files of them.

#include "backends/cuda/kernels/product_choices.hpp"

#include <filesystem>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/file.hpp"
#include "sim/core/json_reader.hpp"
#include "sim/core/output.hpp"

namespace stagecraft::cuda {
namespace {

constexpr const char* kFormat = "gpu-products/1";
[[noreturn]] void refuse(
    const std::string& path, const std::string& why,
    const std::string& help = "name a file that a run on such a GPU wrote, or one that does not exist yet") {
  throw InputError(fmt::format("run.gpu.products: {} {}", path, why), help);
}

ProductChoice choice_of(const Json& entry) {
  const double algorithm = entry.at("algorithm").number(), offered = entry.at("of").number();
  if (!entry.at("algorithm").is_whole() || !entry.at("of").is_whole() || algorithm < 1 || algorithm > offered ||
      offered > 1e6)
    throw JsonError(fmt::format("algorithm {} of {} is none", algorithm, offered));
  return {static_cast<int>(algorithm) - 1, static_cast<int>(offered)};
}

}  // namespace

ProductChoices& ProductChoices::of_process() {
  static ProductChoices choices;
  return choices;
}

void ProductChoices::open(const std::string& path) {
  const std::lock_guard lock(mutex_);
  path_ = path;
  machine_.clear();
  in_file_.clear();
  is_read_ = is_changed_ = false;
  if (path.empty()) return;
  check_output(path, Overwrite::Anything);
  if (!std::filesystem::exists(path)) return;
  try {
    const Json file = parse_json(read_output(path));
    if (file.at("format").text() != kFormat) throw JsonError("its format is another one");
    machine_ = file.at("machine").text();
    is_read_ = true;
    for (const JsonMember& product : file.at("products").members()) in_file_[product.key] = choice_of(product.value);
  } catch (const JsonSyntaxError& e) {
    refuse(path, fmt::format("has no choices of matrix products: {}", e.what()));
  } catch (const JsonError& e) {
    refuse(path, fmt::format("has no choices of matrix products: {}", e.what()));
  }
}

void ProductChoices::require_machine(const std::string& machine) {
  const std::lock_guard lock(mutex_);
  if (path_.empty()) return;
  if (machine_.empty()) machine_ = machine;
  if (machine_ == machine) return;
  if (!is_read_)
    refuse(path_,
           fmt::format("would have the choices for one kind of GPU, and this run has {} and {}", machine_, machine),
           "let CUDA_VISIBLE_DEVICES name GPUs of one kind, or run without run.gpu.products");
  refuse(path_, fmt::format("has the choices for {}, and this is {}", machine_, machine));
}

int ProductChoices::find(int gpu, const std::string& product, int offered, const std::function<int()>& choose) {
  const std::lock_guard lock(mutex_);
  const auto in_file = in_file_.find(product);
  const auto taken = taken_.find({gpu, product});
  if (in_file == in_file_.end() && taken == taken_.end() && !choose) return 0;
  if (in_file != in_file_.end() && in_file->second.offered != offered)
    refuse(path_,
           fmt::format("has one of {} algorithms for the product {}, and cuBLASLt offers {} now",
                       in_file->second.offered, product, offered),
           "delete it, or name one that does not exist yet");
  const ProductChoice choice = in_file != in_file_.end() ? in_file->second
                               : taken != taken_.end()   ? taken->second
                                                         : ProductChoice{choose(), offered};
  taken_[{gpu, product}] = choice;
  if (!path_.empty() && in_file == in_file_.end()) {
    in_file_[product] = choice;
    is_changed_ = true;
  }
  return choice.algorithm;
}

void ProductChoices::save() {
  const std::lock_guard lock(mutex_);
  if (path_.empty() || !is_changed_) return;
  Json products{JsonObject{}};
  for (const auto& [product, choice] : in_file_)
    products[product] = JsonObject{{"algorithm", choice.algorithm + 1}, {"of", choice.offered}};
  const Json file = JsonObject{{"format", kFormat}, {"machine", machine_}, {"products", std::move(products)}};
  write_output(path_, file.dump(1) + "\n", Overwrite::Anything);  // open() has refused what is no such file.
  is_changed_ = false;
}

std::vector<std::string> ProductChoices::texts() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> texts;
  for (const auto& [where, choice] : taken_)
    texts.push_back(fmt::format("{}: {} of {}", where.second.substr(0, where.second.find(';')), choice.algorithm + 1,
                                choice.offered));
  return texts;
}

}  // namespace stagecraft::cuda
