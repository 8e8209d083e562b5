#include "tools/stagecraft/completion_words.hpp"

#include <algorithm>

#include "backends/backend.hpp"
#include "sim/core/text.hpp"
#include "sim/plan/planner.hpp"
#include "sim/run/library.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/weights/policy.hpp"

namespace stagecraft {
namespace {

using Words = std::vector<std::string>;

Words files(FileKind kind) {
  Words names;
  for (const NamedFile& file : named_files(kind)) names.push_back(file.name);
  return names;
}

Words and_all(Words names) {
  names.emplace_back("all");
  return names;
}

Words simulators() {
  Words names;
  for (const BackendDef* b : backends::all())
    if (b->clock == Clock::Simulated) names.emplace_back(b->name);
  return names;
}

/// "run.schedule=1f1b" and all others of the paths that a catalogue or a folder has names for.
Words assignments() {
  Words all;
  const auto add = [&](const std::string& path, const Words& names) {
    for (const std::string& name : names) all.push_back(path + "=" + name);
  };
  add("model", files(FileKind::Model));
  add("cluster", files(FileKind::Cluster));
  add("run.schedule", names_of(schedules::all()));
  add("plan.planner", names_of(planners::all()));
  add("weights", names_of(weights::all()));
  return all;
}

/// "text, csv or json": what may stand there, and nothing else.
Words listed_in(std::string doc) {
  if (const auto last = doc.rfind(" or "); last != doc.npos) doc = doc.substr(0, last) + ", " + doc.substr(last + 4);
  Words words;
  for (const std::string& word : split(doc, ',')) words.emplace_back(trim(word));
  const auto is_word = [](const std::string& w) { return w.find_first_not_of("abcdefghijklmnopqrstuvwxyz") == w.npos; };
  return words.size() > 1 && std::all_of(words.begin(), words.end(), is_word) ? words : Words{};
}

}  // namespace

Words flags_of(const Argument& a) {
  Words flags;
  for (const std::string& flag : split(a.flags, ','))
    if (flag.starts_with('-')) flags.push_back(flag);
  return flags;
}

Words words_of(const Command& command, const Argument& a) {
  const std::string name = split(a.flags, ',').back();
  const bool scenario = a.doc.starts_with("Scenario");
  if (name == "--backend") return names_of(backends::all());
  if (name == "--simulator") return simulators();
  if (name == "--planner") return and_all(names_of(planners::all()));
  if (name == "--schedules") return and_all(names_of(schedules::all()));
  if (name == "--schedule" || (command.name == "schedule" && name == "NAME")) return names_of(schedules::all());
  if (name == "--weights") return names_of(weights::all());
  if (name == "--set" && a.doc.starts_with("path=value")) return assignments();
  if (name == "FILE" && (scenario || command.name == "check")) return files(FileKind::Scenario);
  if (name == "FILE" && command.name == "sweep") return files(FileKind::Sweep);
  if (command.name == "reproduce" && name == "NAME") return files(FileKind::Published);
  return listed_in(a.doc);
}

}  // namespace stagecraft
