#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/diagnostic.hpp"

namespace stagecraft::test {

/// The numbers of a text that sim/output/html_data.hpp describes.
class PageNumbers {
 public:
  explicit PageNumbers(std::string text) : text_(std::move(text)) {}
  std::uint64_t next() {
    static const std::string kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::uint64_t number = 0;
    for (int shift = 0;; shift += 5) {
      const std::size_t digit = kDigits.find(text_.at(at_++));
      STAGECRAFT_CHECK(digit != kDigits.npos);
      number |= static_cast<std::uint64_t>(digit % 32) << shift;
      if (digit < 32) return number;
    }
  }
  std::uint64_t unfolded() {
    const std::uint64_t n = next();
    return n % 2 ? ~(n / 2) : n / 2;
  }
  bool over() const { return at_ == text_.size(); }

 private:
  std::string text_;
  std::size_t at_ = 0;
};

/// Decodes the spans of a run; fields that a span omits are predicted from the last span of its op.
class PageSpans {
 public:
  explicit PageSpans(std::size_t ops) : expected_(ops) {}

  void read(std::size_t count, PageNumbers& numbers, nlohmann::json& run) {
    nlohmann::json& spans = run["spans"];
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t code = numbers.next(), op = code / 4;
      Expected& e = expected_.at(op);
      if (code & 2) run["critical"].push_back(spans["gap"].size());
      spans["gap"].push_back(numbers.next());
      if (code & 1) {
        e.length = numbers.next();
        for (std::uint64_t* column : {&e.micro, &e.iteration, &e.version}) *column += numbers.unfolded();
      }
      spans["length"].push_back(e.length);
      spans["op"].push_back(op);
      spans["micro"].push_back(static_cast<std::int64_t>(e.micro++));
      spans["iteration"].push_back(static_cast<std::int64_t>(e.iteration));
      spans["version"].push_back(static_cast<std::int64_t>(e.version));
    }
  }

 private:
  struct Expected {
    std::uint64_t length = 0, micro = 0, iteration = 0, version = 0;
  };
  std::vector<Expected> expected_;
};

/// A run of the page with its spans and memory column by column, taken from the front of `parts`.
inline nlohmann::json with_columns(nlohmann::json run, std::vector<nlohmann::json>& parts) {
  using nlohmann::json;
  for (const char* column : {"gap", "length", "op", "micro", "iteration", "version"})
    run["spans"][column] = json::array();
  run["critical"] = json::array();
  PageSpans spans(run["ops"].size());
  std::size_t lane = 0, curve = 0;
  for (const json& said : run["parts"]) {
    const json part = parts.at(0);
    parts.erase(parts.begin());
    PageNumbers numbers(part["spans"]);
    for (std::size_t k = said["lanes"]; k > 0; --k) spans.read(run["lanes"].at(lane++)["spans"], numbers, run);
    STAGECRAFT_CHECK(numbers.over());
    STAGECRAFT_CHECK(part["memory"].size() == said["memory"]);
    for (const json& m : part["memory"]) {
      json& memory = run["memory"].at(curve++);
      PageNumbers samples(m["samples"]);
      for (const char* column : {"gap", "stash", "messages"}) memory[column] = json::array();
      for (std::size_t i = memory["samples"]; i > 0; --i) {
        memory["gap"].push_back(samples.next());
        const std::size_t state = samples.next();
        memory["stash"].push_back(m["states"].at(2 * state));
        memory["messages"].push_back(m["states"].at(2 * state + 1));
      }
      STAGECRAFT_CHECK(samples.over());
    }
  }
  STAGECRAFT_CHECK(lane == run["lanes"].size() && curve == run["memory"].size());
  return run;
}

/// The JSON of a page with this id; the page has at most one. Empty where there is none.
inline std::string page_block(const std::string& page, const std::string& id) {
  const std::string open = "<script type=\"application/json\" id=\"" + id + "\">";
  const auto at = page.find(open);
  if (at == page.npos) return {};
  STAGECRAFT_CHECK(page.find(open, at + 1) == page.npos);
  const auto from = at + open.size();
  return page.substr(from, page.find("</script>", from) - from);
}

/// The data of a page of runs, with the spans and the memory of its parts joined column by column.
inline nlohmann::json data_of(const std::string& page) {
  nlohmann::json data = nlohmann::json::parse(page_block(page, "data"));
  std::vector<nlohmann::json> parts;
  for (std::string part; !(part = page_block(page, "part" + std::to_string(parts.size()))).empty();)
    parts.push_back(nlohmann::json::parse(part));
  for (nlohmann::json& run : data["runs"]) run = with_columns(run, parts);
  STAGECRAFT_CHECK(parts.empty());
  return data;
}

}  // namespace stagecraft::test
