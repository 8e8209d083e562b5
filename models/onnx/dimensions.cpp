// Finds the open dimensions of a graph and which of them counts samples, and gives them sizes.

#include "models/onnx/graph.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::onnx {
namespace {

/// A dimension of an input without a size.
struct OpenDimension {
  std::string name, input;
  bool first = false;
};

std::string name_of(const ValueInfo& input, std::size_t d) {
  const Dimension& dimension = (*input.shape)[d];
  return dimension.name.empty() ? fmt::format("{}.{}", input.name, d) : dimension.name;
}

std::vector<OpenDimension> open_dimensions(const std::vector<ValueInfo>& inputs) {
  std::vector<OpenDimension> open;
  for (const ValueInfo& input : inputs)
    for (std::size_t d = 0; d < input.shape->size(); ++d)
      if ((*input.shape)[d].size < 0) open.push_back({name_of(input, d), input.name, d == 0});
  return open;
}

bool counts_samples(const std::string& name) {
  std::string lower;
  for (const char c : name) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower == "n" || lower.find("batch") != std::string::npos;
}

std::set<std::string> sample_names(const std::vector<OpenDimension>& open) {
  const bool has_sample_name =
      std::any_of(open.begin(), open.end(), [](const OpenDimension& o) { return counts_samples(o.name); });
  std::set<std::string> names;
  for (const OpenDimension& o : open)
    if (has_sample_name ? counts_samples(o.name) : o.first) names.insert(o.name);
  return names;
}

std::string shape_text(const ValueInfo& input) {
  std::vector<std::string> words;
  for (std::size_t d = 0; d < input.shape->size(); ++d) {
    const std::int64_t size = (*input.shape)[d].size;
    words.push_back(size >= 0 ? std::to_string(size) : name_of(input, d));
  }
  return fmt::format("'{}' is {}", input.name, words.empty() ? "one number" : join(words, "x"));
}

void check_inputs(const std::vector<ValueInfo>& inputs) {
  if (inputs.empty()) throw InputError("the graph has no inputs", "a model reads data");
  for (const ValueInfo& input : inputs) {
    if (!input.shape)
      throw InputError(fmt::format("the input '{}' has no shape", input.name),
                       "only tensors with a known number of dimensions can be read");
    if (const std::string why = too_large(Shape(input.shape->size(), 1)); !why.empty())
      throw InputError(fmt::format("the input '{}' has {}", input.name, why));
  }
}

/// Each name must be one of the inputs, and each open dimension must get a size.
void fill_sizes(const std::vector<OpenDimension>& open, const std::map<std::string, std::int64_t>& given,
                Dimensions& dimensions) {
  std::vector<Diagnostic> problems;
  std::set<std::string> names;
  for (const OpenDimension& o : open) names.insert(o.name);
  for (const auto& [name, size] : given) {
    if (!names.count(name))
      problems.push_back({{},
                          {},
                          fmt::format("no dimension of the inputs is called '{}'", name),
                          names.empty() ? "all sizes are fixed in the file"
                                        : suggest(name, std::vector<std::string>(names.begin(), names.end())),
                          "unknown-dimension"});
    dimensions.sizes[name] = size;
  }
  for (const OpenDimension& o : open)
    if (dimensions.sizes.emplace(o.name, 1).second)
      problems.push_back({{},
                          {},
                          fmt::format("the dimension '{}' of the input '{}' has no size", o.name, o.input),
                          fmt::format("give it with --set {0}=N, or in a scenario as model.sizes.{0}", o.name),
                          "open-dimension"});
  if (!problems.empty()) throw InputError(std::move(problems));
}

/// The number of samples of a file without open dimensions for them.
std::int64_t fixed_samples(const std::vector<ValueInfo>& inputs, std::optional<std::int64_t> batch,
                           const Dimensions& dimensions) {
  const Shape first = dimensions.bind(inputs.front()).value();
  if (!batch) return first.empty() ? 1 : std::max<std::int64_t>(1, first.front());
  for (const ValueInfo& input : inputs) {
    const Shape shape = dimensions.bind(input).value();
    if (std::find(shape.begin(), shape.end(), *batch) != shape.end()) return *batch;
  }
  throw InputError(fmt::format("no input has a dimension of {}, the samples said with --batch; {}", *batch,
                               shape_text(inputs.front())),
                   "export the model with this size, or with an open one");
}

/// A size for a name such as batch is the number of samples; a size for a first dimension means it counts other things.
std::optional<std::int64_t> resolve_samples(std::optional<std::int64_t> batch,
                                            const std::map<std::string, std::int64_t>& sizes,
                                            std::set<std::string>& samples) {
  for (const auto& [name, size] : sizes) {
    if (!samples.count(name)) continue;
    if (!counts_samples(name)) {
      samples.erase(name);
    } else if (batch.value_or(size) != size) {
      throw InputError(fmt::format("the dimension '{}' counts samples: {} of them, or {}?", name, size, *batch),
                       "give --batch alone");
    } else {
      batch = size;
    }
  }
  return batch;
}

}  // namespace

std::optional<Shape> Dimensions::bind(const ValueInfo& value) const {
  if (!value.shape || value.shape->size() > kHighestRank) return {};
  Shape shape;
  for (std::size_t d = 0; d < value.shape->size(); ++d) {
    const Dimension& dimension = (*value.shape)[d];
    const auto it = sizes.find(name_of(value, d));
    if (dimension.size < 0 && it == sizes.end()) return {};
    shape.push_back(dimension.size >= 0 ? dimension.size : it->second);
  }
  return shape;
}

std::vector<ValueInfo> data_inputs(const File& file) {
  std::set<std::string> weights;
  for (const Constant& c : file.initializers) weights.insert(c.name);
  std::vector<ValueInfo> inputs;
  for (const ValueInfo& input : file.inputs)
    if (!weights.count(input.name)) inputs.push_back(input);
  return inputs;
}

Dimensions bind_dimensions(const File& file, std::optional<std::int64_t> batch,
                           const std::map<std::string, std::int64_t>& sizes) {
  const std::vector<ValueInfo> inputs = data_inputs(file);
  check_inputs(inputs);
  const std::vector<OpenDimension> open = open_dimensions(inputs);
  std::set<std::string> samples = sample_names(open);
  batch = resolve_samples(batch, sizes, samples);
  Dimensions dimensions;
  for (const std::string& name : samples) dimensions.sizes[name] = batch.value_or(1);
  fill_sizes(open, sizes, dimensions);
  dimensions.samples = samples.empty() ? fixed_samples(inputs, batch, dimensions) : batch.value_or(1);
  for (const auto& [name, size] : dimensions.sizes)
    dimensions.notes.push_back(
        fmt::format("the dimension '{}' is {}{}", name, size, samples.count(name) ? ", samples" : ""));
  if (samples.empty())
    dimensions.notes.push_back(fmt::format("the sizes are for {}", pluralize(dimensions.samples, "sample")));
  return dimensions;
}

}  // namespace stagecraft::onnx
