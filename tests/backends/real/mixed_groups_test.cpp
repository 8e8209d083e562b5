// Mixed precision in groups of devices: what they exchange has 16 bits, is added in 32 and rounded once, and no
// schedule, process or division of states changes a bit.
#include <cmath>
#include <thread>

#include <doctest/doctest.h>

#include "backends/real/formulas/bfloat16.hpp"
#include "backends/real/thread_communicator.hpp"
#include "sim/core/random.hpp"
#include "tests/backends/real/group_case.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::mixed_groups_test {
namespace {

using test::GroupCase;
using test::in_precision;

constexpr double kRounding = 0x1p-8;  ///< The relative error of one rounding to 16 bits.

Learnt learn(const ModelGraph& model, const GroupCase& c, const Training& training, int iterations = 3) {
  return test::run_group(model, c, training, iterations).learnt();
}

double rounded(double x) { return static_cast<float>(real::Bfloat16(static_cast<float>(x))); }

/// An array of numbers that 16 bits hold.
real::Array narrow_array(real::DeviceMemory& memory, std::int64_t rows, const std::vector<double>& numbers) {
  real::Array wide(memory, rows, std::ssize(numbers) / rows, real::Use::Activations, real::NumberWidth::Wide);
  memory.kernels().upload(numbers, wide.data());
  return real::rounded(memory, wide, real::Use::Activations);
}

std::vector<double> numbers_of(real::DeviceMemory& memory, const real::Array& narrow) {
  const real::Tensor& t = narrow.tensor();
  const real::Array wide(memory, t.rows, t.columns, real::Use::Activations, real::NumberWidth::Wide);
  real::Kernels& kernels = memory.kernels();
  kernels.zero(wide.data(), real::bytes_of(kernels, wide.tensor()));
  kernels.add(t, wide.tensor());
  std::vector<double> numbers(static_cast<std::size_t>(t.size()));
  kernels.download(wide.data(), numbers);
  return numbers;
}

}  // namespace

TEST_CASE("numbers of 16 bits are added in 32 in the order of the ranks, and the sum is rounded once") {
  Rng rng(3, "sums of 16 bits");
  for (const int members : {2, 3, 8}) {
    constexpr int kSamples = 2;
    const int rows = kSamples * members, count = rows * 5;
    std::vector<std::vector<double>> summands(members);
    for (std::vector<double>& numbers : summands)
      for (int i = 0; i < count; ++i) numbers.push_back(rounded(rng.uniform(-1, 1)));
    std::vector<double> expected;
    int differ = 0;  // From a sum that is rounded after each addition.
    for (int i = 0; i < count; ++i) {
      float sum = 0, each = 0;
      for (const std::vector<double>& numbers : summands) {
        sum += static_cast<float>(numbers[i]);
        each = static_cast<float>(rounded(each + static_cast<float>(numbers[i])));
      }
      expected.push_back(rounded(sum));
      differ += expected.back() != each;
    }
    CHECK((differ > 0) == (members > 2));
    real::GroupWaits waits;
    real::ThreadCommunicator group(members, waits);
    std::vector<std::vector<double>> sums(members), scattered(members);
    std::vector<std::thread> threads;
    for (int r = 0; r < members; ++r)
      threads.emplace_back([&, r] {
        const auto kernels = cpu::make_kernels(real::kMixedWidth);
        real::DeviceMemory memory(*kernels);
        const real::GroupMember member{&group, r};
        const real::Array in = narrow_array(memory, rows, summands[r]);
        const real::Array sum = narrow_array(memory, rows, summands[r]);
        const real::Array part = narrow_array(memory, kSamples, std::vector<double>(count / members));
        real::sum_over(member, memory, in.tensor(), sum.tensor());
        real::scatter_rows(member, memory, kSamples, in.tensor(), part.tensor());
        sums[r] = numbers_of(memory, sum);
        scattered[r] = numbers_of(memory, part);
      });
    for (std::thread& thread : threads) thread.join();
    const int each = count / members / kSamples;
    for (int r = 0; r < members; ++r) {
      CHECK(sums[r] == expected);
      std::vector<double> rows_here;
      for (int s = 0; s < kSamples; ++s)
        for (int i = 0; i < each; ++i) rows_here.push_back(expected[(s * members + r) * each + i]);
      CHECK(scattered[r] == rows_here);
    }
  }
}

// Whole numbers below 2^8 are not rounded, so that a run that equals one in 32 bits has no rounding to differ by.
TEST_CASE("where nothing is rounded, groups and divided states have the bits of one device") {
  const ModelGraph mixed = in_precision(test::divided_net(1, 4, 2, 4), 2);
  const Training training = test::training_of(OptimizerKind::Integer, 1, "integers");
  // Gradients of many samples, because this optimizer moves a weight by large sums alone.
  const GroupCase alone{.micro_batches = 2, .micro_batch_size = 32};
  const Learnt expected = learn(mixed, alone, training, 1);
  const Learnt floats = learn(in_precision(mixed, 4), alone, training, 1);
  REQUIRE(expected.losses == floats.losses);
  REQUIRE(expected.weights == floats.weights);
  REQUIRE(expected.weights != learn(mixed, alone, training, 2).weights);
  const auto compare = [&](GroupCase c) {
    const std::string text = to_text(c);
    CAPTURE(text);
    c.micro_batches = alone.micro_batches / c.degrees.replicas;
    c.micro_batch_size = alone.micro_batch_size * c.degrees.replicas;
    const Learnt learnt = learn(mixed, c, training, 1);
    CHECK(learnt.losses == expected.losses);
    CHECK(test::all_weights(learnt.weights) == test::all_weights(expected.weights));
  };
  for (const int tensor : {2, 4})
    for (const bool sequence : {false, true}) {
      compare({.degrees = {.tensor = tensor, .sequence = sequence}});
      for (const int sharding : {0, 1, 2, 3})
        compare({.degrees = {.replicas = 2, .tensor = tensor, .sequence = sequence},
                 .sharding = static_cast<StateSharding>(sharding)});
    }
  for (const int sharding : {0, 1, 2, 3})
    compare({.degrees = {.context = 2}, .sharding = static_cast<StateSharding>(sharding)});
}

TEST_CASE("schedules, stages and divided states of the optimizer change no bit of a group in mixed precision") {
  const Training training = test::training_of(OptimizerKind::AdamW, 1e-2);
  for (const bool sequence : {false, true}) {
    const ModelGraph model = in_precision(test::decoder_net(2, sequence), 2);
    const GroupCase one{.degrees = {.replicas = 2, .tensor = 2, .sequence = sequence}};
    const Learnt expected = learn(model, one, training);
    for (const char* schedule : {"gpipe", "1f1b", "zb-h1"}) {
      GroupCase c = one;
      c.schedule = schedule;
      if (std::string_view(schedule) != "gpipe") c.stages = 2;
      if (std::string_view(schedule) != "1f1b") c.sharding = StateSharding::Optimizer;
      const std::string text = to_text(c);
      CAPTURE(text);
      const Learnt learnt = learn(model, c, training);
      CHECK(learnt.losses == expected.losses);
      CHECK(test::all_weights(learnt.weights) == test::all_weights(expected.weights));
    }
  }
}

// Norms and losses sum other rows on each device, in 32 bits.
TEST_CASE("sequence parallelism rounds the same numbers: first losses are apart by sums in 32 bits alone") {
  for (const bool llama : {false, true})
    for (const int tensor : {2, 4}) {
      const ModelGraph model = in_precision(test::decoder_net(2, llama), 2);
      const Training training = test::training_of(OptimizerKind::Momentum, 1e-2);
      const auto first_loss = [&](bool sequence) {
        return learn(model, {.degrees = {.tensor = tensor, .sequence = sequence}}, training, 1).losses.front();
      };
      CHECK(first_loss(true) == doctest::Approx(first_loss(false)).epsilon(4 * 0x1p-24));
    }
}

namespace {

/// Numbers of a layer, and how far the numbers of a run in mixed precision may be from them.
struct Bounded {
  std::vector<double> numbers, errors;
};

/// The forward of an undivided net in floats, with running bounds of the errors that roundings to 16 bits make: a
/// rounding is off by at most u |x| with u = 2^-8, a product passes errors on by |W|, and tanh by at most 1. Where
/// `members` devices add up parts of a product, all parts are rounded, and then the sum. Sums of K numbers in 32 bits
/// are off by at most (K + 2) 2^-24 of the sum of their sizes.
class BoundedForward {
 public:
  BoundedForward(const Program& program, const std::vector<double>& weights, int members)
      : workload_(*program.workload),
        net_(real::compile_stage(workload_, StageId{0}, sizeof(float))),
        data_(
            get_from(tasks::catalog(), "task", workload_.training.task).make(workload_.task, workload_.training.seed)),
        members_(members) {
    for (const double w : weights) weights_.push_back(rounded(w)), sizes_.push_back(std::abs(rounded(w)));
  }

  /// The loss of a sample and how far it may be off.
  std::pair<double, double> loss(std::int64_t sample) {
    std::vector<Bounded> values(net_.values.size());
    for (const real::Node& node : net_.nodes) {
      if (node.output < 0) return loss_of(*node.operation, values[node.inputs.front()], sample);
      values[node.output] = output_of(node, values, sample);
    }
    return {};
  }

 private:
  Bounded output_of(const real::Node& node, const std::vector<Bounded>& values, std::int64_t sample) {
    const Operation& op = *node.operation;
    Bounded out;
    const auto put = [&](double x, double error) {
      out.numbers.push_back(x);
      out.errors.push_back(error + kRounding * (std::abs(x) + error));
    };
    if (op.kind == OperationKind::Input) {
      out.numbers.resize(static_cast<std::size_t>(op.rows) * op.columns);
      data_->input(node.input_number, 0, sample, out.numbers);
      for (const double x : out.numbers) out.errors.push_back(kRounding * std::abs(x));
      return out;
    }
    const Bounded& in = values[node.inputs.front()];
    if (op.kind == OperationKind::Tanh)
      for (std::size_t i = 0; i < in.numbers.size(); ++i) put(std::tanh(in.numbers[i]), in.errors[i] + 0x1p-22);
    if (op.kind == OperationKind::Add)
      for (std::size_t i = 0; i < in.numbers.size(); ++i) {
        const Bounded& second = values[node.inputs.back()];
        put(in.numbers[i] + second.numbers[i], in.errors[i] + second.errors[i]);
      }
    if (op.kind != OperationKind::Linear) return out;
    std::vector<double> sizes;
    for (std::size_t i = 0; i < in.numbers.size(); ++i) sizes.push_back(std::abs(in.numbers[i]) + in.errors[i]);
    const std::vector<double> y = product(node, in.numbers, weights_), terms = product(node, sizes, sizes_);
    std::vector<double> errors = product(node, in.errors, sizes_);
    const bool is_summed = members_ > 1 && op.division == Division::Row;
    for (std::size_t i = 0; i < y.size(); ++i)
      put(y[i], errors[i] + ((op.inner + 2) * 0x1p-24 + (is_summed ? kRounding : 0)) * terms[i]);
    return out;
  }

  /// x W with the bias, whose part in a bound is 0 or its size, which only makes the bound larger.
  std::vector<double> product(const real::Node& node, const std::vector<double>& x,
                              const std::vector<double>& weights) {
    const Operation& op = *node.operation;
    const auto kernels = cpu::make_kernels(sizeof(double));
    real::DeviceMemory memory(*kernels);
    const real::Blocks here = real::blocks(op, sizeof(float)), there = real::blocks(op, sizeof(double));
    std::vector<double> laid_out(static_cast<std::size_t>(there.total), 0);
    const auto from = weights.begin() + node.weights;
    std::copy_n(from, here.first, laid_out.begin());
    std::copy_n(from + real::second_block(op, sizeof(float)), here.second,
                laid_out.begin() + real::second_block(op, sizeof(double)));
    const real::Array in(memory, op.rows, op.inner, real::Use::Activations);
    const real::Array w(memory, 1, there.total, real::Use::Weights);
    const real::Array out(memory, op.rows, op.columns, real::Use::Activations);
    kernels->upload(x, in.data());
    kernels->upload(laid_out, w.data());
    const real::Tensor inputs[] = {in.tensor()};
    real::Call call;
    call.operation = &op, call.inputs = inputs, call.weights = w.data(), call.output = out.tensor();
    kernels->forward(call);
    std::vector<double> y(static_cast<std::size_t>(op.rows) * op.columns);
    kernels->download(out.data(), y);
    return y;
  }

  /// The mean of (y - t)^2.
  std::pair<double, double> loss_of(const Operation& op, const Bounded& y, std::int64_t sample) {
    std::vector<double> targets(static_cast<std::size_t>(op.rows) * op.columns);
    data_->target(0, sample, targets);
    double loss = 0, error = 0;
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const double difference = y.numbers[i] - targets[i];
      loss += difference * difference / static_cast<double>(targets.size());
      error += y.errors[i] * (2 * std::abs(difference) + y.errors[i]) / static_cast<double>(targets.size());
    }
    return {loss, error};
  }

  const Workload& workload_;
  real::StageNet net_;
  std::unique_ptr<Dataset> data_;
  int members_;
  std::vector<double> weights_, sizes_;
};

/// The mean over the samples of an iteration.
std::pair<double, double> bounded_loss(const test::GroupRun& alone, int members, int samples) {
  BoundedForward forward(alone.program, alone.learnt().weights[StageId{0}], members);
  std::pair<double, double> mean;
  for (int sample = 0; sample < samples; ++sample) {
    const auto [loss, error] = forward.loss(sample);
    mean.first += loss / samples, mean.second += error / samples;
  }
  return mean;
}

}  // namespace

TEST_CASE("a divided net is off from exact numbers by no more than its roundings, as an undivided one") {
  const ModelGraph model =
      in_precision(test::divided_net(1, 4, 4, 8, OperationKind::Tanh, OperationKind::MeanSquare), 2);
  bool differs = false;
  for (int seed = 1; seed <= 8; ++seed) {
    CAPTURE(seed);
    Training training = test::training_of(OptimizerKind::Sgd, 0, "teacher");  // The first weights stay.
    training.seed = static_cast<std::uint64_t>(seed);
    const GroupCase one{.micro_batches = 1};
    const test::GroupRun alone = test::run_group(model, one, training, 1);
    const auto [exact, error] = bounded_loss(alone, 1, one.micro_batch_size);
    CHECK(std::abs(alone.learnt().losses.front() - exact) <= error);
    for (const int tensor : {2, 4})
      for (const bool sequence : {false, true}) {
        CAPTURE(tensor);
        GroupCase c = one;
        c.degrees.tensor = tensor, c.degrees.sequence = sequence;
        const double loss = learn(model, c, training, 1).losses.front();
        const double bound = bounded_loss(alone, tensor, one.micro_batch_size).second;
        CHECK(std::abs(loss - exact) <= bound);
        CHECK(bound < 0.5 * exact);  // Else it says little.
        differs = differs || loss != alone.learnt().losses.front();
      }
  }
  CHECK(differs);  // Else parts were not rounded.
}

// The parts of a sum of n devices have sizes near 1 / sqrt(n) of the sum's, and roundings of random signs. So together
// they are as large as the rounding of the sum: the variance doubles where devices sum, and stays elsewhere. A group is
// then at most sqrt(2) times as far from 32 bits as one device is, and 2 leaves room for the mean of a few runs.
TEST_CASE("losses of groups in mixed precision are about as near to 32 bits as losses of one device") {
  Rng rng(11, "mixed groups");
  double of_groups = 0, of_one = 0;
  for (int trial = 0; trial < test::trials(60, 16); ++trial) {
    const bool llama = trial % 2 == 1;
    const ModelGraph mixed = in_precision(test::decoder_net(1, llama), 2), floats = in_precision(mixed, 4);
    Training training = test::training_of(OptimizerKind::AdamW, 1e-2);
    training.seed = static_cast<std::uint64_t>(trial) + 1;
    GroupCase c;
    c.degrees = {.replicas = rng.integer(1, 2), .context = rng.integer(1, 2)};
    c.degrees.tensor = c.degrees.devices() == 1 ? 4 : 2 / c.degrees.context;
    c.degrees.sequence = c.degrees.tensor > 1 && rng.integer(0, 1) == 1;
    c.exchange = static_cast<ContextExchange>(rng.integer(0, 2));
    c.sharding = static_cast<StateSharding>(rng.integer(0, 3));
    c.recomputation = static_cast<Recomputation>(rng.integer(0, 2));
    const std::string text = to_text(c);
    CAPTURE(text);
    const std::vector<double> expected = learn(floats, {}, training, 2).losses;
    const std::vector<double> one = learn(mixed, {}, training, 2).losses, group = learn(mixed, c, training, 2).losses;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      of_groups += std::abs(group[i] - expected[i]) / expected[i];
      of_one += std::abs(one[i] - expected[i]) / expected[i];
    }
  }
  CAPTURE(of_groups);
  CAPTURE(of_one);
  CHECK(of_one > 0);
  CHECK(of_groups <= 2 * of_one);
}

TEST_CASE("in groups, too, activations have 2 bytes a number; divided states leave 4 bytes of a part alone") {
  constexpr int kReplicas = 4;
  const ModelGraph mixed =
      in_precision(test::divided_net(2, 8, 64, 64, OperationKind::Tanh, OperationKind::MeanSquare), 2);
  const ModelGraph floats = in_precision(mixed, 4);
  const Training training = test::training_of(OptimizerKind::Adam, 0.01, "teacher");
  const auto memory = [&](const ModelGraph& model, const GroupCase& c) {
    return learn(model, c, training, 2).memory[DeviceId{0}];
  };
  const GroupCase tensor{.degrees = {.tensor = 2, .sequence = true}};
  const MeasuredMemory in_mixed = memory(mixed, tensor), in_floats = memory(floats, tensor);
  CHECK(in_mixed.weights.value == 1.5 * in_floats.weights.value);
  CHECK(in_mixed.gradients.value == in_floats.gradients.value);
  CHECK(in_mixed.optimizer.value == in_floats.optimizer.value);
  CHECK(in_mixed.activations.value < 0.75 * in_floats.activations.value);
  for (const StateSharding sharding : {StateSharding::Optimizer, StateSharding::Gradients}) {
    const GroupCase divided{.degrees = {.replicas = kReplicas}, .sharding = sharding};
    const MeasuredMemory part = memory(mixed, divided), part_in_floats = memory(floats, divided);
    CHECK(part.weights.value == (0.5 + 1.0 / kReplicas) * part_in_floats.weights.value);
    CHECK(part.optimizer.value == part_in_floats.optimizer.value);
  }
}

TEST_CASE("evaluations of divided states in mixed precision read the same weights as passes do") {
  const ModelGraph model =
      in_precision(test::divided_net(2, 8, 4, 8, OperationKind::Tanh, OperationKind::MeanSquare), 2);
  Training training = test::training_of(OptimizerKind::Momentum, 0.05, "teacher");
  training.evaluate_every = 2;
  const auto evaluations = [&](StateSharding sharding) {
    return learn(model, {.stages = 2, .degrees = {.replicas = 2, .tensor = 2}, .sharding = sharding}, training, 4)
        .evaluations;
  };
  const auto whole = evaluations(StateSharding::None), divided = evaluations(StateSharding::Optimizer);
  REQUIRE(whole.size() == 3);
  REQUIRE(divided.size() == 3);
  CHECK(whole.front().loss != whole.back().loss);
  for (int i = 0; i < 3; ++i) CHECK(divided[i].loss == whole[i].loss);
}

}  // namespace stagecraft::mixed_groups_test
