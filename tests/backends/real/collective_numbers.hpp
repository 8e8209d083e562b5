#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "backends/cpu/kernels.hpp"
#include "backends/real/collectives.hpp"
#include "backends/real/program_executor.hpp"
#include "sim/core/random.hpp"
#include "tests/support/program_builder.hpp"

namespace stagecraft::test {

using Numbers = std::vector<double>;

/// What each member of a collective has before, and is to have after it.
struct CollectiveOracle {
  std::vector<Numbers> inputs, outputs;
};

inline CollectiveOracle expected(CollectiveKind kind, int members, int numbers, Rng& rng, bool whole_numbers) {
  CollectiveOracle e;
  for (int m = 0; m < members; ++m) {
    Numbers& row = e.inputs.emplace_back(real::input_numbers(kind, members, m, numbers));
    for (double& x : row) x = whole_numbers ? double(rng.integer(-1000, 1000)) : rng.uniform() - 0.5;
  }
  const auto begin = [&](int part) { return numbers * part / members; };
  for (int m = 0; m < members; ++m) {
    Numbers& row = e.outputs.emplace_back();
    switch (kind) {
      case CollectiveKind::AllReduce:
      case CollectiveKind::ReduceScatter: {
        const bool is_all_reduce = kind == CollectiveKind::AllReduce;
        for (int n = is_all_reduce ? 0 : begin(m); n < (is_all_reduce ? numbers : begin(m + 1)); ++n) {
          double sum = e.inputs[0][n];
          for (int other = 1; other < members; ++other) sum += e.inputs[other][n];
          row.push_back(sum);
        }
        break;
      }
      case CollectiveKind::AllGather:
        for (const Numbers& input : e.inputs) row.insert(row.end(), input.begin(), input.end());
        break;
      case CollectiveKind::AllToAll:
        for (const Numbers& input : e.inputs)
          row.insert(row.end(), input.begin() + m * (numbers / members), input.begin() + (m + 1) * (numbers / members));
        break;
      case CollectiveKind::Broadcast:
        row = e.inputs[0];
        break;
    }
  }
  return e;
}

/// Arrays of double numbers for every member of every collective of a program.
class CollectiveNumbers : public real::Actions, public real::RemoteBuffers, public real::CollectiveArrays {
 public:
  CollectiveNumbers(const Program& p, const std::vector<CollectiveOracle>& oracles,
                    const std::function<bool(DeviceId)>& here)
      : p_(p), here_(here), kernels_(cpu::make_kernels(sizeof(double))) {
    for (const CollectiveOracle& e : oracles) {
      inputs_.push_back(e.inputs);
      auto& outputs = outputs_.emplace_back();
      for (const Numbers& output : e.outputs) outputs.emplace_back(output.size(), -1);
    }
  }

  const Numbers& output(int collective, int member) const { return outputs_[collective][member]; }

  std::int64_t numbers(const CollectiveCall& c) override {
    const bool gathers = p_.shape(c).kind == CollectiveKind::AllGather;
    return std::ssize(gathers ? outputs_[p_.at(c.first).payload][0] : inputs_[p_.at(c.first).payload][0]);
  }
  real::MemberArrays arrays(InstructionId member) override {
    const auto [c, m] = place(member);
    return {tensor(inputs_[c][m]), tensor(outputs_[c][m])};
  }
  real::Kernels* kernels_of(InstructionId member) override {
    return here_(p_.at(member).device) ? kernels_.get() : nullptr;
  }

  void compute(InstructionId) override {}
  void carry(int) override {}
  void collective(int index) override { run_collective(p_, p_.collectives[index], *this); }
  std::size_t bytes(int) const override { return 0; }
  void pack(int, void*) override {}
  void unpack(int, const void*) override {}
  std::size_t share_bytes(InstructionId member) override {
    const auto [c, m] = place(member);
    return inputs_[c][m].size() * sizeof(double);
  }
  void pack_share(InstructionId member, void* into) override {
    const auto [c, m] = place(member);
    std::copy(inputs_[c][m].begin(), inputs_[c][m].end(), static_cast<double*>(into));
  }
  void finish(int index, std::span<const void* const> shares) override {
    finish_collective(p_, p_.collectives[index], *this, shares);
  }
  std::size_t number_bytes(int) const override { return sizeof(double); }
  void add_up(int, std::span<const void* const> parts, std::size_t bytes, void* sum) override {
    real::add_up(*kernels_, parts, bytes, true, sum);
  }
  void finish_sum(int index, const void* sum) override { real::finish_sum(p_.collectives[index], *this, sum); }

 private:
  std::pair<int, int> place(InstructionId member) const {
    const Instruction& i = p_.at(member);
    return {i.payload, member.value - p_.collective(i).first.value};
  }
  static real::Tensor tensor(Numbers& numbers) { return {numbers.data(), 1, std::ssize(numbers)}; }

  const Program& p_;
  std::function<bool(DeviceId)> here_;
  std::unique_ptr<real::Kernels> kernels_;
  std::vector<std::vector<Numbers>> inputs_, outputs_;
};

/// Several collectives of all kinds among all devices and among some of them, which may run at once.
struct CollectiveCase {
  Program program;
  std::vector<CollectiveOracle> expected;
};

inline CollectiveCase random_collectives(int devices, Rng& rng) {
  CollectiveCase c;
  ProgramBuilder builder(devices);
  for (int d = 0; d < devices; ++d) builder.compute(d, 0);
  for (const CollectiveKind kind : kCollectiveKinds)
    for (const bool everyone : {true, false}) {
      std::vector<int> group;
      for (int d = 0; d < devices; ++d)
        if (everyone || rng.integer(0, 2) > 0)
          group.insert(group.begin() + rng.integer(0, static_cast<int>(group.size())), d);
      if (group.empty()) group.push_back(0);
      const int members = static_cast<int>(group.size());
      int numbers = rng.integer(0, 40);
      if (kind == CollectiveKind::AllToAll) numbers *= members;
      builder.collective(kind, collective_algorithms::ring, group, 8 * numbers);
      c.expected.push_back(expected(kind, members, numbers, rng, rng.integer(0, 1) == 1));
    }
  c.program = builder.build();
  return c;
}

/// Results of members that are here and are not as expected.
inline int wrong_results(const CollectiveCase& c, const CollectiveNumbers& numbers,
                         const std::function<bool(DeviceId)>& here) {
  int wrong = 0;
  for (int n = 0; n < std::ssize(c.program.collectives); ++n)
    for (int m = 0; m < c.program.collectives[n].members; ++m)
      if (here(c.program.at(c.program.collectives[n].member(m)).device))
        wrong += numbers.output(n, m) != c.expected[n].outputs[m];
  return wrong;
}

}  // namespace stagecraft::test
