// Any bytes as a schedule: read, checked on every level, written, and read again.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sim/schedule_file/check_file.hpp"

using namespace stagecraft;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const int choice = data[0];
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  FileCheckOptions options{.slices = 1 + choice % 2, .lint = true};
  if (choice & 2) options.torch = choice & 4 ? TorchVersion::V2_11 : TorchVersion::V2_8;
  if (choice & 8)
    options.rendezvous = RendezvousOptions{.streams = static_cast<CommStreams>(choice / 16 % 3),
                                           .grouped = (choice & 64) != 0,
                                           .eager_below = choice & 128 ? 2.0 : 0.0};
  options.placement = static_cast<CommsPlacement>(choice / 64 % 3);
  options.memory.message = 0.5;
  options.memory.capacity = 1 + choice % 8;
  const CheckedFile f = check_file(text, "fuzz.csv", options);
  if (!f.cells.empty()) return 0;
  for (const auto& rank : f.csv.actions.ranks)
    for (const Action& a : rank)  // PyTorch's CSV has no words for these passes.
      if (a.kind == ActionKind::Scores || a.kind == ActionKind::ScoresGradient) return 0;
  std::vector<CellProblem> problems;
  const CsvFile again = read_csv(to_csv(f.csv.actions), "again.csv", options.torch, problems);
  ActionTable given = f.csv.actions;
  while (given.ranks.back().empty()) given.ranks.pop_back();  // Blank lines at the end are no ranks.
  if (!problems.empty() || !(again.actions == given)) std::abort();
  if (!f.good() || f.csv.communicates) return 0;
  // A good order has messages that are good too.
  const CheckedFile lowered = check_file(to_csv(add_comms(f.compute.schedule, f.plan, CommsPlacement::Lowered)),
                                         "lowered.csv", {.rendezvous = RendezvousOptions{}});
  if (!lowered.good()) std::abort();
  return 0;
}
