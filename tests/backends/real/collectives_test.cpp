// All kinds of collectives on numbers: against sums and permutations element by element, in one walk and in several
// that pass messages as if they were processes; and training with its sums done in steps, to the last bit.

#include "backends/real/collectives.hpp"

#include <doctest/doctest.h>

#include <thread>

#include "sim/core/random.hpp"
#include "tests/backends/real/memory_world.hpp"
#include "tests/backends/real/run_case.hpp"
#include "tests/support/collective_steps.hpp"
#include "tests/support/nets.hpp"
#include "tests/support/program_builder.hpp"

using namespace stagecraft;

namespace {

using Numbers = std::vector<double>;

/// What each member of a collective has before, and is to have after it.
struct Expected {
  std::vector<Numbers> inputs, outputs;
};

Expected expected(CollectiveKind kind, int members, int numbers, Rng& rng, bool whole_numbers) {
  Expected e;
  for (int m = 0; m < members; ++m) {
    Numbers& own = e.inputs.emplace_back(real::input_numbers(kind, members, m, numbers));
    for (double& x : own) x = whole_numbers ? double(rng.integer(-1000, 1000)) : rng.uniform() - 0.5;
  }
  const auto begin = [&](int part) { return numbers * part / members; };
  for (int m = 0; m < members; ++m) {
    Numbers& own = e.outputs.emplace_back();
    switch (kind) {
      case CollectiveKind::AllReduce:
      case CollectiveKind::ReduceScatter: {
        const bool all = kind == CollectiveKind::AllReduce;
        for (int n = all ? 0 : begin(m); n < (all ? numbers : begin(m + 1)); ++n) {
          double sum = e.inputs[0][n];
          for (int other = 1; other < members; ++other) sum += e.inputs[other][n];
          own.push_back(sum);
        }
        break;
      }
      case CollectiveKind::AllGather:
        for (const Numbers& input : e.inputs) own.insert(own.end(), input.begin(), input.end());
        break;
      case CollectiveKind::AllToAll:
        for (const Numbers& input : e.inputs)
          own.insert(own.end(), input.begin() + m * (numbers / members), input.begin() + (m + 1) * (numbers / members));
        break;
      case CollectiveKind::Broadcast:
        own = e.inputs[0];
        break;
    }
  }
  return e;
}

/// Arrays of double numbers for every member of every collective of a program.
class Arrays : public real::Actions, public real::Parcels, public real::CollectiveArrays {
 public:
  Arrays(const Program& p, const std::vector<Expected>& all, const std::function<bool(DeviceId)>& here)
      : p_(p), here_(here), kernels_(cpu::make_kernels(sizeof(double))) {
    for (const Expected& e : all) {
      inputs_.push_back(e.inputs);
      auto& outputs = outputs_.emplace_back();
      for (const Numbers& output : e.outputs) outputs.emplace_back(output.size(), -1);
    }
  }

  const Numbers& output(int collective, int member) const { return outputs_[collective][member]; }

  std::int64_t numbers(const Collective& c) override {
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

 private:
  std::pair<int, int> place(InstructionId member) const {
    const Instruction& i = p_.at(member);
    return {i.payload, member - p_.collective(i).first};
  }
  static real::Tensor tensor(Numbers& numbers) { return {numbers.data(), 1, std::ssize(numbers)}; }

  const Program& p_;
  std::function<bool(DeviceId)> here_;
  std::unique_ptr<real::Kernels> kernels_;
  std::vector<std::vector<Numbers>> inputs_, outputs_;
};

/// Several collectives of all kinds among all devices and among some of them, which may run at once.
struct Case {
  Program program;
  std::vector<Expected> expected;
};

Case random_case(int devices, Rng& rng) {
  Case c;
  test::ProgramBuilder builder(devices);
  for (int d = 0; d < devices; ++d) builder.compute(d, 0);
  for (const CollectiveKind kind : kCollectiveKinds)
    for (const bool all : {true, false}) {
      std::vector<int> group;
      for (int d = 0; d < devices; ++d)
        if (all || rng.integer(0, 2) > 0) group.insert(group.begin() + rng.integer(0, std::ssize(group)), d);
      if (group.empty()) group.push_back(0);
      const int members = static_cast<int>(group.size());
      int numbers = rng.integer(0, 40);
      if (kind == CollectiveKind::AllToAll) numbers *= members;
      builder.collective(kind, CollectiveAlgorithm::Ring, group, 8 * numbers);
      c.expected.push_back(expected(kind, members, numbers, rng, rng.integer(0, 1) == 1));
    }
  c.program = builder.build();
  return c;
}

void check(const Case& c, const Arrays& arrays, const std::function<bool(DeviceId)>& here) {
  for (int n = 0; n < std::ssize(c.program.collectives); ++n)
    for (int m = 0; m < c.program.collectives[n].members; ++m)
      if (here(c.program.at(c.program.collectives[n].member(m)).device))
        CHECK(arrays.output(n, m) == c.expected[n].outputs[m]);
}

}  // namespace

TEST_CASE("on threads each kind of collective gives the sums and permutations of its definition") {
  Rng rng(71, "collectives");
  for (int trial = 0; trial < 40; ++trial) {
    const Case c = random_case(1 + trial % 5, rng);
    const auto here = [](DeviceId) { return true; };
    for (const bool one_thread : {false, true}) {
      Arrays arrays(c.program, c.expected, here);
      real::WalkOptions options;
      options.one_thread = one_thread;
      real::walk(c.program, arrays, nullptr, options);
      check(c, arrays, here);
    }
  }
}

TEST_CASE("between processes each kind of collective gives the same bits as on threads") {
  Rng rng(72, "processes");
  for (int trial = 0; trial < 24; ++trial) {
    const int devices = 2 + trial % 4, processes = std::min(devices, 2 + trial % 2);
    const Case c = random_case(devices, rng);
    test::MemoryWorld world;
    world.size = processes;
    std::vector<std::thread> threads;
    for (int r = 0; r < processes; ++r)
      threads.emplace_back([&, r] {
        const real::Dealing dealing(c.program, World{r, processes});
        const auto here = [&](DeviceId d) { return dealing.here(d); };
        Arrays arrays(c.program, c.expected, here);
        test::MemoryTransport transport(world, c.program, dealing, arrays);
        real::walk(c.program, arrays, &transport, {});
        check(c, arrays, here);
      });
    for (std::thread& t : threads) t.join();
  }
}

TEST_CASE("gradients that are scattered, gathered, exchanged or broadcast are those of an all-reduce, bit by bit") {
  const ModelGraph model = test::deep_net(3, 6, 9, 3);
  for (const int replicas : {2, 3}) {
    Plan plan = test::stage_each(model, 4, replicas);
    for (int r = 1; r < replicas; ++r) plan.stages[1].devices.emplace_back(2 + r);
    const Training training = test::training_of(OptimizerKind::Adam, 0.01, "teacher");
    const Program program = test::real_program("1f1b", plan, test::policy("flush"), 3);
    const test::RealRun plain = test::really_run(program, model, plan, test::policy("flush"), training);
    for (const auto& kinds : test::sums_in_steps())
      for (const bool one_thread : {false, true}) {
        Program steps = test::in_steps(program, kinds);
        CHECK_NOTHROW(check_program(steps));
        const test::RealRun run =
            test::really_run(std::move(steps), model, plan, test::policy("flush"), training, one_thread);
        CHECK(run.learnt().losses == plain.learnt().losses);
        CHECK(run.learnt().weights == plain.learnt().weights);
      }
  }
}
