// Any bytes as the files of a run's folder (results.json, spans.csv, memory.csv): the page has all of their data, or
// the files are refused.

#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "sim/core/diagnostic.hpp"
#include "sim/output/html.hpp"
#include "tests/fuzz/tree.hpp"
#include "tests/support/page_data.hpp"

using namespace stagecraft;

namespace {

using ParsedJson = nlohmann::json;

/// Checks that the lanes have all spans, and that no span begins before the previous one ends.
void check_spans(const ParsedJson& run) {
  const ParsedJson& spans = run.at("spans");
  const std::size_t count = spans.at("gap").size();
  for (const ParsedJson& column : spans)
    if (column.size() != count) std::abort();
  std::size_t in_lanes = 0;
  for (const ParsedJson& lane : run.at("lanes")) {
    in_lanes += lane.at("spans").get<std::size_t>();
    if (lane.at("device").get<std::size_t>() >= run.at("devices").size()) std::abort();
  }
  if (in_lanes != count || run.at("results").at("instructions") != count) std::abort();
  for (const char* name : {"gap", "length", "op"})
    for (const ParsedJson& number : spans.at(name))
      if (number.get<std::int64_t>() < 0) std::abort();
  for (const ParsedJson& op : spans.at("op"))
    if (op.get<std::size_t>() >= run.at("ops").size()) std::abort();
  for (const ParsedJson& critical : run.at("critical"))
    if (critical.get<std::size_t>() >= count) std::abort();
}

/// Checks that memory curves have only numbers; JSON writes any other value as null.
void check_memory(const ParsedJson& run) {
  for (const ParsedJson& curve : run.at("memory")) {
    if (!curve.at("resident").is_number()) std::abort();
    for (const char* name : {"gap", "stash", "messages"}) {
      if (curve.at(name).size() != curve.at("gap").size()) std::abort();
      for (const ParsedJson& number : curve.at(name))
        if (!number.is_number()) std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  KeptRun run{"fuzz", {}, {}, {}, {}};
  for (std::string KeptRun::*file : {&KeptRun::results, &KeptRun::spans, &KeptRun::memory})
    run.*file = fuzz::next_file(text);
  try {
    const ParsedJson whole = test::data_of(html_page({&run, 1}, "Any bytes")).at("runs").at(0);
    check_spans(whole);
    check_memory(whole);
  } catch (const InputError& error) {
    if (error.problems().empty()) std::abort();
  } catch (const Infeasible&) {
  }
  return 0;
}
