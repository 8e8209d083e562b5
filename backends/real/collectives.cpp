// What each kind of collective does with data: which numbers of which member become, or are added to, which numbers of
// a result.

#include "backends/real/collectives.hpp"

#include <memory>

#include "sim/core/diagnostic.hpp"

namespace stagecraft::real {
namespace {

void* offset(void* data, std::int64_t numbers, std::size_t width) {
  return static_cast<char*>(data) + numbers * static_cast<std::int64_t>(width);
}

/// The first number of a part, as equal as whole numbers allow.
std::int64_t part_begin(std::int64_t numbers, int members, int part) { return numbers * part / members; }

std::int64_t part_size(std::int64_t numbers, int members, int part) {
  return part_begin(numbers, members, part + 1) - part_begin(numbers, members, part);
}

/// A program that folds several collectives into one has no arrays for each of them.
void require_one_round(const CollectiveCall& c) { STAGECRAFT_CHECK(c.rounds == 1); }

}  // namespace

std::vector<ResultPart> result_parts(CollectiveKind kind, int members, int rank, std::int64_t numbers) {
  std::vector<ResultPart> parts;
  const std::int64_t begin = part_begin(numbers, members, rank), size = part_size(numbers, members, rank);
  const std::int64_t equal = numbers / members;
  if (kind == CollectiveKind::Broadcast) return {{0, 0, 0, numbers, false}};
  for (int m = 0; m < members; ++m) {
    switch (kind) {
      case CollectiveKind::AllReduce:
        parts.push_back({m, 0, 0, numbers, m > 0});
        break;
      case CollectiveKind::ReduceScatter:
        parts.push_back({m, begin, 0, size, m > 0});
        break;
      case CollectiveKind::AllGather:
        parts.push_back({m, 0, part_begin(numbers, members, m), part_size(numbers, members, m), false});
        break;
      case CollectiveKind::AllToAll:
        parts.push_back({m, rank * equal, m * equal, equal, false});
        break;
      case CollectiveKind::Broadcast:
        break;
    }
  }
  return parts;
}

std::int64_t input_numbers(CollectiveKind kind, int members, int rank, std::int64_t numbers) {
  if (kind == CollectiveKind::AllGather) return part_size(numbers, members, rank);
  return kind == CollectiveKind::Broadcast && rank > 0 ? 0 : numbers;
}

MemberArrays in_place(CollectiveKind kind, int members, int rank, Tensor whole, std::size_t width) {
  const Tensor part{offset(whole.data, part_begin(whole.size(), members, rank), width), 1,
                    part_size(whole.size(), members, rank), whole.is_wide};
  if (kind == CollectiveKind::ReduceScatter) return {whole, part};
  if (kind == CollectiveKind::AllGather) return {part, whole};
  return {whole, whole};
}

void write_part(Kernels& kernels, const ResultPart& part, Tensor input, Tensor output) {
  const std::size_t width = width_of(kernels, output);
  const Tensor from{offset(input.data, part.from, width), 1, part.count, output.is_wide};
  const Tensor to{offset(output.data, part.to, width), 1, part.count, output.is_wide};
  if (part.count == 0) return;
  if (part.add) return kernels.add(from, to);
  if (from.data != to.data) kernels.copy(from.data, to.data, bytes_of(kernels, to));
}

ScratchCopy::ScratchCopy(Kernels& kernels, Tensor original) : kernels_(kernels), copy_(original) {
  copy_.data = kernels.allocate(bytes_of(kernels, original));
  kernels.copy(original.data, copy_.data, bytes_of(kernels, original));
}

ScratchCopy::~ScratchCopy() { kernels_.release(copy_.data, bytes_of(kernels_, copy_)); }

Tensor overwritten_early(CollectiveKind kind, int rank, const MemberArrays& arrays) {
  if (kind == CollectiveKind::AllToAll && arrays.input.data == arrays.output.data) return arrays.input;
  // Numbers have at most 8 bytes; to copy once too often does no harm.
  const auto begin = reinterpret_cast<std::uintptr_t>(arrays.input.data);
  const auto result = reinterpret_cast<std::uintptr_t>(arrays.output.data);
  const bool inside = result >= begin && result - begin < arrays.input.size() * sizeof(double);
  return kind == CollectiveKind::ReduceScatter && rank > 0 && inside ? arrays.output : Tensor{};
}

SafeStep safe_step(CollectiveKind kind, int rank, const ResultPart& part, Tensor input, const ScratchCopy* copy) {
  SafeStep step{part, input};
  if (copy == nullptr || (kind == CollectiveKind::ReduceScatter && part.source != rank)) return step;
  step.input = copy->tensor();
  if (kind == CollectiveKind::ReduceScatter) step.part.from = 0;
  return step;
}

void run_collective(const Program& program, const CollectiveCall& c, CollectiveArrays& operands) {
  require_one_round(c);
  const CollectiveKind kind = program.shape(c).kind;
  Kernels& kernels = *operands.kernels_of(c.first);
  std::vector<MemberArrays> members;
  std::vector<std::unique_ptr<ScratchCopy>> copies(c.members);
  for (int m = 0; m < c.members; ++m) {
    members.push_back(operands.arrays(c.member(m)));
    if (const Tensor early = overwritten_early(kind, m, members[m]))
      copies[m] = std::make_unique<ScratchCopy>(kernels, early);
  }
  const int computed = is_computed_once(kind) ? 1 : c.members;
  for (int rank = 0; rank < computed; ++rank)
    for (const ResultPart& part : result_parts(kind, c.members, rank, operands.numbers(c))) {
      const SafeStep step = safe_step(kind, rank, part, members[part.source].input, copies[part.source].get());
      write_part(kernels, step.part, step.input, members[rank].output);
    }
  for (int rank = computed; rank < c.members; ++rank)
    kernels.copy(members[0].output.data, members[rank].output.data, bytes_of(kernels, members[rank].output));
}

void finish_collective(const Program& program, const CollectiveCall& c, CollectiveArrays& operands,
                       std::span<const void* const> inputs) {
  require_one_round(c);
  const CollectiveKind kind = program.shape(c).kind;
  Tensor computed;
  for (int rank = 0; rank < c.members; ++rank) {
    Kernels* const kernels = operands.kernels_of(c.member(rank));
    if (kernels == nullptr) continue;
    const Tensor output = operands.arrays(c.member(rank)).output;
    if (computed && is_computed_once(kind)) {
      kernels->copy(computed.data, output.data, bytes_of(*kernels, output));
      continue;
    }
    computed = output;
    const std::size_t width = width_of(*kernels, output);
    for (const ResultPart& part : result_parts(kind, c.members, rank, operands.numbers(c))) {
      // What other processes sent lies in plain memory, which kernels can copy from but may not compute in.
      const std::size_t bytes = part.count * width;
      const void* const from = static_cast<const char*>(inputs[part.source]) + part.from * width;
      const Tensor target{offset(output.data, part.to, width), 1, part.count, output.is_wide};
      if (!part.add) {
        kernels->copy(from, target.data, bytes);
        continue;
      }
      const auto release = [&](void* data) { kernels->release(data, bytes); };
      const std::unique_ptr<void, decltype(release)> copy(kernels->allocate(bytes), release);
      kernels->copy(from, copy.get(), bytes);
      kernels->add({copy.get(), 1, part.count, output.is_wide}, target);
    }
  }
}

void add_up(Kernels& kernels, std::span<const void* const> parts, std::size_t bytes, bool is_wide, void* sum) {
  const auto release = [&](void* data) { kernels.release(data, bytes); };
  using Copy = std::unique_ptr<void, decltype(release)>;
  const Copy total(kernels.allocate(bytes), release), next(kernels.allocate(bytes), release);
  const std::size_t width = is_wide ? wide_width(kernels.width()) : kernels.width();
  const auto count = static_cast<std::int64_t>(bytes / width);
  kernels.copy(parts.front(), total.get(), bytes);
  for (const void* part : parts.subspan(1)) {
    kernels.copy(part, next.get(), bytes);
    kernels.add({next.get(), 1, count, is_wide}, {total.get(), 1, count, is_wide});
  }
  kernels.copy(total.get(), sum, bytes);
}

void finish_sum(const CollectiveCall& c, CollectiveArrays& operands, const void* sum) {
  for (int rank = 0; rank < c.members; ++rank) {
    Kernels* const kernels = operands.kernels_of(c.member(rank));
    if (kernels == nullptr) continue;
    const Tensor output = operands.arrays(c.member(rank)).output;
    kernels->copy(sum, output.data, bytes_of(*kernels, output));
  }
}

}  // namespace stagecraft::real
