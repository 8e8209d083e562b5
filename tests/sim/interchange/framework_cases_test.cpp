// Configurations that frameworks accept or refuse (framework_cases.txt) are judged as the frameworks judge them.

#include <doctest/doctest.h>

#include <map>

#include <fmt/core.h>

#include "sim/core/file.hpp"
#include "sim/core/text.hpp"
#include "sim/interchange/bridge.hpp"
#include "sim/interchange/imports/training_setup.hpp"
#include "sim/interchange/rules/bridge.hpp"

namespace stagecraft::framework_cases_test {
namespace {

struct Case {
  std::string name, framework, release, expected, configuration;
  int devices = 0;
};

/// "a | b | c" without the spaces around bars; the last part has the rest of the line.
std::vector<std::string> parts_of(const std::string& line, std::size_t limit) {
  std::vector<std::string> parts;
  std::size_t at = 0;
  while (parts.size() + 1 < limit) {
    const std::size_t bar = line.find(" | ", at);
    if (bar == std::string::npos) break;
    parts.push_back(line.substr(at, bar - at));
    at = bar + 3;
  }
  parts.push_back(line.substr(at));
  return parts;
}

std::string script(const std::string& connections, const std::string& arguments) {
  const char* const name = "CUDA_DEVICE_MAX_CONNECTIONS";
  return (connections == "-" ? fmt::format("unset {}\n", name) : fmt::format("export {}={}\n", name, connections)) +
         "python pretrain_gpt.py " + arguments + "\n";
}

std::vector<Case> cases() {
  std::vector<Case> list;
  std::map<std::string, std::string> models;
  for (const std::string& line : split(read_file("tests/sim/interchange/framework_cases.txt"), '\n')) {
    if (line.empty() || line.starts_with('#')) continue;
    if (line.starts_with("model | ")) {
      const auto model = parts_of(line, 3);
      models[model[1]] = model[2];
      continue;
    }
    auto parts = parts_of(line, 5);
    REQUIRE(parts.size() == 5);
    const std::vector<std::string> framework = split(parts[1], ' ');
    Case c{parts[0], framework.front(), framework.size() > 1 ? framework[1] : "",
           parts[3], parts[4],          std::stoi(parts[2])};
    if (c.framework == "megatron") {
      const auto arguments = parts_of(parts[4], 3);
      REQUIRE(models.contains(arguments[1]));
      c.configuration = script(arguments[0], models[arguments[1]] + " " + arguments[2]);
    } else if (c.framework == "torchtitan" && c.configuration.starts_with("model.")) {
      for (char& letter : c.configuration)
        if (letter == ' ') letter = '\n';
    }
    list.push_back(std::move(c));
  }
  return list;
}

/// The names of the rules of which a framework warns; InputError with what it refuses.
std::string warnings_of(const Case& c, const SetupOptions& options) {
  std::string names;
  if (c.framework == "bridge") {
    std::vector<Diagnostic> problems;
    for (const Diagnostic& broken : broken_bridge_rules(c.configuration))
      if (find_rule(bridge_rules(), broken.code).only_warns())
        names += " " + broken.code;
      else
        problems.push_back(broken);
    try {
      read_bridge(c.configuration, c.name, options);
    } catch (const InputError& error) {
      for (const Diagnostic& d : error.problems())
        if (d.code != kUnknownRecipe) problems.push_back(d);
    }
    if (!problems.empty()) throw InputError(problems);
    return names;
  }
  const bool is_megatron = c.framework == "megatron", is_deepspeed = c.framework == "deepspeed";
  const auto read = is_megatron ? read_megatron : is_deepspeed ? read_deepspeed : read_torchtitan;
  const FrameworkRules& rules = is_megatron ? megatron_rules() : is_deepspeed ? deepspeed_rules() : torchtitan_rules();
  const TrainingSetup setup = read(c.configuration, c.name, options);
  for (const FrameworkRule& rule : rules.rules)
    for (const std::string& note : setup.assumed)
      if (rule.only_warns() && note.starts_with(refused_by(rules, rule))) names += fmt::format(" {}", rule.name);
  return names;
}

/// "accepted" with the rules of which the framework warns, or the codes of what is wrong.
std::string verdict(const Case& c) {
  const SetupOptions options{
      .model = "llama-3-8b", .cluster = "superpod-h100-256", .devices = c.devices, .release = c.release};
  std::string codes;
  try {
    return "accepted" + warnings_of(c, options);
  } catch (const InputError& error) {
    for (const Diagnostic& d : error.problems()) codes += (codes.empty() ? "" : " ") + d.code;
  } catch (const std::exception& error) {
    codes = error.what();
  }
  return codes;
}

}  // namespace

TEST_CASE("what frameworks accept is accepted, and what they refuse is refused by the same rule") {
  const std::vector<Case> list = cases();
  std::map<std::string, std::string> expected;
  for (const Case& c : list) expected[c.framework] += " " + c.expected + " ";
  for (const FrameworkRules* framework : all_framework_rules())
    for (const FrameworkRule& rule : framework->rules) {
      CAPTURE(framework->name);
      CAPTURE(rule.name);
      const std::string& codes = expected[std::string(framework->name)];
      // A command line does not choose the code of attention; torchtitan_python_test.cpp has this rule.
      CHECK((codes.find(fmt::format(" {} ", rule.name)) != std::string::npos || rule.name == "context-attention"));
    }
  CHECK(list.size() == 273);
  for (const Case& c : list) {
    CAPTURE(c.name);
    CHECK(verdict(c) == c.expected);
  }
}

TEST_CASE("rules have names of their own, and a formula") {
  for (const FrameworkRules* framework : all_framework_rules()) {
    std::map<std::string_view, int> names;
    for (const FrameworkRule& rule : framework->rules) {
      CAPTURE(rule.name);
      CHECK(++names[rule.name] == 1);
      CHECK_FALSE(rule.formula.empty());
      CHECK_FALSE(rule.when.empty());
    }
  }
}

}  // namespace stagecraft::framework_cases_test
