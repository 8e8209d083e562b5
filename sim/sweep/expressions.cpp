// Computes values of a sweep such as `= 32 / plan.stages`, and the conditions of `where:`, for each point.

#include "sim/sweep/sweep.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "sim/config/override.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

using config::ExpressionValue;
using config::Member;
using config::Problems;
using config::Value;

/// The expression without its equals sign, at its place.
std::optional<config::Expression> parse_value(const Member& m, Problems& problems) {
  return config::parse_expression(std::string_view(m.value.text).substr(1), config::place_in(m.value, 1), m.key,
                                  problems);
}

/// A number, a truth value or a text. A map stands for its name, as `run.schedule` does.
std::optional<ExpressionValue> as_expression_value(const Value& value) {
  if (value.is_map()) {
    const Value* name = value.find("name");
    return name && name->is_scalar() ? std::optional<ExpressionValue>(name->text) : std::nullopt;
  }
  if (!value.is_scalar()) return {};
  std::string ignored;
  if (!value.quoted) {
    if (const auto number = config::parse_number(value.text, ignored)) return *number;
    if (value.text == "true" || value.text == "false") return value.text == "true";
  }
  return value.text;
}

/// Names of expressions in one point.
class PointSettings {
 public:
  PointSettings(const SweepStep& step, const Sweep& sweep, Problems& problems)
      : step_(step), sweep_(sweep), problems_(problems) {}

  std::optional<ExpressionValue> evaluate(const Member& m) {
    const auto expression = parse_value(m, problems_);
    if (!expression) return {};
    in_progress_.insert(m.key);
    const auto value = evaluate(*expression, m.key);
    in_progress_.erase(m.key);
    return value;
  }

  std::optional<ExpressionValue> evaluate(const config::Expression& expression, const std::string& path) {
    return config::evaluate(
        expression, [&](const std::string& name, const Where& where) { return look_up(name, where, path); }, path,
        problems_);
  }

 private:
  std::optional<ExpressionValue> look_up(const std::string& name, const Where& where, const std::string& path) {
    const auto refuse = [&](const std::string& message, const std::string& help) {
      problems_.add(where, path, message, help, "expression");
      return std::optional<ExpressionValue>();
    };
    if (in_progress_.contains(name)) return refuse(fmt::format("'{}' depends on itself", name), {});
    for (const SweepStep* settings : {&sweep_.sets, &step_})
      for (const Member& m : *settings)
        if (m.key == name && is_expression(m.value)) return evaluate(m);
    const Value* value = find(name);
    if (!value)
      return refuse(fmt::format("neither the sweep nor its scenario sets '{}'", name),
                    suggestion(name, "write its value into the scenario, or give it with --set"));
    const auto found_value = as_expression_value(*value);
    if (!found_value) return refuse(fmt::format("'{}' is a list or a map, which has no value here", name), {});
    return found_value;
  }

  /// What the point sets, else what the scenario has.
  const Value* find(const std::string& name) const {
    for (const SweepStep* settings : {&sweep_.sets, &step_})
      for (const Member& m : *settings) {
        if (m.key == name) return &m.value;
        if (name.starts_with(m.key + ".")) return config::get_path(m.value, name.substr(m.key.size() + 1));
      }
    return config::get_path(sweep_.base, name);
  }

  std::string suggestion(const std::string& name, const std::string& otherwise) const {
    const std::vector<std::string> paths = paths_of(sweep_);
    return closest(name, paths) ? suggest(name, paths) : otherwise;
  }

  const SweepStep& step_;
  const Sweep& sweep_;
  Problems& problems_;
  std::set<std::string> in_progress_;
};

}  // namespace

bool is_expression(const Value& value) { return value.is_scalar() && !value.quoted && value.text.starts_with('='); }

void check_expressions(const Sweep& sweep, Problems& problems) {
  const auto check = [&](const SweepStep& step) {
    for (const Member& m : step)
      if (is_expression(m.value)) parse_value(m, problems);
  };
  for (const SweepAxis& axis : sweep.axes)
    for (const SweepStep& step : axis) check(step);
  for (const SweepStep& step : sweep.also) check(step);
}

std::vector<SweepCondition> read_conditions(const Value& written, Problems& problems) {
  std::vector<SweepCondition> conditions;
  const std::vector<Value> one{written};
  for (const Value& value : written.is_list() ? written.items : one) {
    if (!value.is_scalar()) {
      problems.add(value.where, "where", "a condition is a text",
                   "where: plan.stages * plan.replicas <= 16, or a list of such lines", "wrong-type");
      continue;
    }
    if (auto expression = config::parse_expression(value.text, config::place_in(value, 0), "where", problems))
      conditions.push_back({std::move(*expression), value.where});
  }
  return conditions;
}

std::optional<SweepStep> evaluate_step(const SweepStep& step, const Sweep& sweep, Problems& problems) {
  if (std::none_of(step.begin(), step.end(), [](const Member& m) { return is_expression(m.value); })) return step;
  PointSettings settings(step, sweep, problems);
  SweepStep evaluated = step;
  for (Member& m : evaluated) {
    if (!is_expression(m.value)) continue;
    const auto value = settings.evaluate(m);
    if (!value) return {};
    m.value = Value::scalar(config::to_text(*value), m.value.where, "computed");
  }
  return evaluated;
}

std::optional<bool> meets_conditions(const SweepStep& step, const Sweep& sweep, Problems& problems) {
  for (const SweepCondition& condition : sweep.where) {
    const auto value = PointSettings(step, sweep, problems).evaluate(condition.expression, "where");
    if (!value) return {};
    const bool* truth = std::get_if<bool>(&*value);
    if (!truth) {
      problems.add(condition.place, "where",
                   fmt::format("the condition is '{}', neither true nor false", config::to_text(*value)),
                   "compare it with something", "expression");
      return {};
    }
    if (!*truth) return false;
  }
  return true;
}

}  // namespace stagecraft
