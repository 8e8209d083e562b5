// Shell scripts as the commands that they run.

#include <doctest/doctest.h>

#include <fmt/core.h>

#include "sim/interchange/imports/shell_arithmetic.hpp"
#include "sim/interchange/imports/shell_words.hpp"
#include "tests/support/readers.hpp"

namespace stagecraft::shell_words_test {
namespace {

/// "[a@1][b@1]; [c@2]": words with their lines, and a semicolon between commands.
std::string commands(const std::string& script) {
  std::string text;
  for (const ShellCommand& command : read_shell(script).commands) {
    text += text.empty() ? "" : "; ";
    for (const ShellWord& word : command) text += fmt::format("[{}@{}]", word.text, word.line);
  }
  return text;
}

}  // namespace

TEST_CASE("words of a script") {
  CHECK(commands("a 'b c' \"d\\\"e\" # f\n g") == "[a@1][b c@1][d\"e@1]; [g@2]");
  CHECK(commands("X=1\nn $X ${X} ${Y:-2} $Z") == "[n@2][1@2][1@2][2@2][$Z@2]");
  CHECK(commands("X='a b'\n$X \"$X\"") == "[a@2][b@2][a b@2]");
  CHECK(commands("X=a\nX+=b\n$X") == "[ab@3]");
  CHECK(commands("a \\\n b \\\r\n c") == "[a@1][b@2][c@3]");
}

TEST_CASE("a default is read as the shell reads it") {
  CHECK(commands("run ${X:-\"2\"} ${Y:-${Z:-'3'}} ${W:-a b} ${V:=$(nproc)}") ==
        "[run@1][2@1][3@1][a@1][b@1][$(nproc)@1]");
  CHECK(commands("X=\nY=5\nrun ${X:-4} ${Z:-$Y}${Y:-6}") == "[run@3][4@3][55@3]");
  std::string nested = "1";
  for (int i = 0; i < 1000; ++i) nested = "${X" + std::to_string(i) + ":-" + nested + "}";
  CHECK(commands("run " + nested).starts_with("[run@1][${X"));  // Too deep to be followed.
}

TEST_CASE("a command ends with its line, but for a list of arguments") {
  CHECK(commands("mkdir a; b && c | d") == "[mkdir@1][a@1]; [b@1]; [c@1]; [d@1]");
  CHECK(commands("a > log 2>&1\nb < in") == "[a@1]; [b@2]");
  CHECK(commands("a &>> log_$(date \"+%Y %m\").txt\nb") == "[a@1]; [b@2]");
  CHECK(commands("A=<path to data>/b\nrun $A <c.txt >d") == "[run@2][<pathtodata>/b@2]");
  CHECK(commands("run <in.txt 2>err.txt") == "[run@1]");
  CHECK(commands("A=3\n--a 1\n--b\n$A ([0]*2) E|L | tee") == "[--a@2][1@2][--b@3][3@4][([0]*2)@4][E|L@4]; [tee@4]");
}

TEST_CASE("arrays stand where they are used") {
  CHECK(commands("A=(--a 1 # c\n --b)\nrun ${A[@]} --c") == "[run@3][--a@1][1@1][--b@2][--c@3]");
  CHECK(commands("A=(1)\nA+=(2)\nB=(\"${A[@]}\" 3)\nrun \"${B[@]}\"") == "[run@4][1@1][2@2][3@3]");
  CHECK(commands("A=(--a)\nA=(\"${A[@]}\" --b)\nrun ${A[@]}") == "[run@3][--a@1][--b@2]");
  CHECK(commands("A=(--a)\nA=(--b)\nrun ${A[@]}") == "[run@3][--b@2]");
  CHECK(commands("A=(--a 1)\nB=\"run ${A[@]} --b\"\nc\n$B") == "[c@3]; [run@4][--a@4][1@4][--b@4]");
  // An array that no command uses is one.
  CHECK(commands("A=(--a)\nA=(${A[@]} --b)") == "[--a@1][--b@2]");
  CHECK(commands("A=(--a)\nrun") == "[run@2]; [--a@1]");
  CHECK(commands("run ${A[@]}") == "[run@1][${A[@]}@1]");
}

TEST_CASE("a branch that the script does not decide counts as taken") {
  CHECK(commands("if [ $A ]; then B=1; else run; fi\nrun $B") == "[[@1][$A@1][]@1]; [run@1]; [run@2][1@2]");
  CHECK(commands("case $1 in # the first\n --a|-b)\n A=1 ;;\n (*) b; c\nesac\nrun $A") == "[b@4]; [c@4]; [run@6][1@6]");
  CHECK(commands("case $1 in b) case $2 in d) e ;; esac ;;\n f) g ;; esac; h case a in b") ==
        "[e@1]; [g@2]; [h@2][case@2][a@2][in@2][b@2]");
  CHECK(commands("case a in b").empty());
  const auto values = [](const std::string& script) {
    std::string text;
    for (const auto& [name, list] : read_shell(script).of_branches)
      for (const std::string& value : list) text += fmt::format("{}={} ", name, value);
    return text;
  };
  CHECK(values("if a; then N=1; elif b; then N=2; else N=2; fi\nrun $N") == "N=1 N=2 ");
  CHECK(values("case $1 in\n b) N=1;;\n c) N=2;;\nesac\nrun $((N * 2))") == "N=1 N=2 ");
  CHECK(values("N=4\nif a; then N=8; fi\nrun $N") == "N=4 N=8 ");
  CHECK(values("N=\nif a; then N=8; fi\nrun $N") == "N= N=8 ");
  CHECK(values("N=1\nif a; then N=2; N=4; fi\nrun $N") == "N=1 N=4 ");
  CHECK(values("N=2\nif a; then N=2; N=8; fi\nrun $N") == "N=2 N=8 ");
  CHECK(values("N=1\nif a; then if b; then N=2; else N=3; fi; fi\nrun $N") == "N=1 N=2 N=3 ");
  CHECK(values("if a; then N=1; else N=2; fi\nrun ${M:-$N}") == "N=1 N=2 ");
  CHECK(values("if a; then N='b c'; else N=d; fi\nrun $N") == "N=b c N=d ");
  CHECK(values("N=(b)\nif a; then N+=(c); fi\nrun ${N[@]}") == "N=b N=b c ");
  // The value from before is replaced in each of the branches.
  CHECK(values("N=1\nif a; then N=2; else N=3; N=4; fi\nrun $N") == "N=2 N=4 ");
  CHECK(values("N=1\nif a; then N=2; else if b; then N=3; else N=4; fi; fi\nrun $N") == "N=2 N=3 N=4 ");
  CHECK(values("N=1\ncase $1 in b) N=2;; *) N=3;; esac\nrun $N") == "N=2 N=3 ");
  // It is sure: nothing was set before, the value is the same, another one follows, or no command uses it.
  CHECK(values("if a; then N=8; fi\nrun $N") == "");
  CHECK(values("if a; then N=8; else N=8; fi\nrun $N") == "");
  CHECK(values("if a; then N=8; else N=9; fi\nN=7\nrun $N") == "");
  CHECK(values("if a; then N=8; run $N; else N=9; run $N; fi").find("N=8 N=9") == 0);
  CHECK(values("if a; then N=8; else N=9; fi") == "");
}

TEST_CASE("a script that decides its branches takes them") {
  const auto run = [](const std::string& script) {
    const ShellScript read = read_shell(script + "\nrun $N");
    CHECK(read.of_branches.empty());
    return read.commands.back().back().text;
  };
  const std::string sizes = "M=8B\nif [[ $M == 7B ]]; then N=1; elif [ \"$M\" = '8B' ]; then N=2; else N=3; fi";
  CHECK(run(sizes) == "2");
  CHECK(run("if test 2 -gt 3; then N=1; else N=2; fi") == "2");
  CHECK(run("A=\nif [ -z \"$A\" ]; then N=1; fi\nif [ -n \"$A\" ]; then N=2; fi\nif [ \"$A\" = x ]; then N=3; fi") ==
        "1");
  CHECK(run("case 8B in 7B) N=1;; 9B|'8B') N=2;; *) N=3;; esac") == "2");
  CHECK(run("case 8B in 7B) N=1;; *) N=3;; esac") == "3");
  CHECK(run("N=8\nif [ \"$1\" ]; then N=$1; fi") == "8");  // A default stands for an argument.
  CHECK(run("if [ 1 -eq 1 ] && [ a = b ]; then N=1; elif [ a = b ] || test c = c; then N=2; fi") == "2");
  CHECK(run("if [[ a == a && b != c ]]\nthen N=1; else N=2; fi") == "1");
  CHECK(run("if [ -z ${A} ]; then N=1; fi; if [ -n \"$A\" ] && [ \"$A\" = b ]; then N=2; fi") == "1");
  CHECK(run("for i in 1 2; do if [ a != a ]; then N=1; else N=2; fi; done") == "2");
  CHECK(commands("if [ a = b ]; then\n if x; then A=1; fi\n B=(2)\n c\nfi\nrun $A ${B[@]}") ==
        "[[@1][a@1][=@1][b@1][]@1]; [run@6][$A@6][${B[@]}@6]");
  const auto values = [](const std::string& script) { return read_shell(script + "\nrun $N").of_branches["N"]; };
  CHECK(values("if [ $1 ]; then N=1; elif [ a = a ]; then N=2; else N=3; fi") == std::vector<std::string>{"1", "2"});
  CHECK(values("if [ a = a ] && b; then N=1; else N=2; fi") == std::vector<std::string>{"1", "2"});
  CHECK(values("case 8B in 7*) N=1;; *) N=2;; esac") == std::vector<std::string>{"1", "2"});
  CHECK(values("case a in a) N=1;& b) N=2;; esac") == std::vector<std::string>{"1", "2"});
  CHECK(values("case a in a) N=1;;& *) N=2;; esac") == std::vector<std::string>{"1", "2"});
  CHECK(values("A=8\nif [[ $A > 1 ]]; then N=1; else N=2; fi") == std::vector<std::string>{"1", "2"});
  CHECK(values("A=8\nif [[ a == a && $A < 1 ]]; then N=1; else N=2; fi") == std::vector<std::string>{"1", "2"});
  CHECK(values("if [ -d /data ]; then N=1; else N=2; fi") == std::vector<std::string>{"1", "2"});
  CHECK(values("if [ -z \"$?\" ]; then N=1; else N=2; fi") == std::vector<std::string>{"1", "2"});
  for (const char* changed : {"${A#8}", "${A%B}", "${A/8/7}", "${A,,}", "${A:0:2}", "${A:+7B}", "${#A}"})
    CHECK(values(fmt::format("A=8B\nif [ {} = 8B ]; then N=1; else N=2; fi", changed)) ==
          std::vector<std::string>{"1", "2"});
}

TEST_CASE("a word that is empty counts in a condition") {
  const auto value = [](const std::string& script) {
    return read_shell("A=\n" + script + "\nrun $N").commands.back().back().text;
  };
  CHECK(value("if [ \"$A\" != \"\" ]; then N=1; else N=2; fi") == "2");
  CHECK(value("if [[ $A == \"\" ]]; then N=1; else N=2; fi") == "1");
  CHECK(value("if [ -d \"$A\" ]; then N=1; else N=2; fi") == "2");
  CHECK(value("if [ \"$A\" ]; then N=1; else N=2; fi") == "2");
  CHECK(commands("run \"\" a") == "[run@1][a@1]");
}

TEST_CASE("notes say what a script leaves open") {
  const auto notes = [](const std::string& script) { return shell_notes(read_shell(script)); };
  CHECK(notes("if a; then N=1; else N=2; fi\nrun $N") ==
        std::vector<std::string>{"the file does not say which branch is taken, so N is '2', the last of '1', '2'"});
  CHECK(notes("if [ $1 = a ]; then A=\"--b 1\"; else A=\"--b 2\"; fi\nrun $A") ==
        std::vector<std::string>{"the file does not say which branch is taken, so A is the last of 2"});
  CHECK(notes("if [ -z \"$A\" ]; then N=1; fi\nrun $N") ==
        std::vector<std::string>{"the file does not set $A, and asks whether it is empty: it is taken as empty"});
  CHECK(notes("if [ -z \"$A\" ] && b; then N=1; fi\nrun $N").empty());
}

TEST_CASE("a branch that is not taken sets nothing") {
  CHECK(commands("if [ a = b ]; then N+=1; fi\nrun $N").ends_with("[run@2][$N@2]"));
  CHECK(commands("A=(--c)\nif [ a = b ]; then N=\"${A[@]}\"; fi").ends_with("; [--c@1]"));
}

TEST_CASE("only a name or a default gives a value") {
  CHECK(commands("A=8B\nrun ${A%B} ${A/8 B/7} ${A:-9} ${A-9} ${A:?no} ${B-9} ${A:+9}") ==
        "[run@2][${A%B}@2][${A/8 B/7}@2][8B@2][8B@2][8B@2][9@2][${A:+9}@2]");
  CHECK(commands("A=82\nrun $((${A%2} * 2)) $((${A} * 2)) $((${B:-3} * 2))") ==
        "[run@2][$((${A%2} * 2))@2][164@2][6@2]");
}

TEST_CASE("a quoted command may begin with variables") {
  CHECK(commands("srun bash -c \"A=1 run --b 2\"") == "[srun@1][bash@1][-c@1][A=1 run --b 2@1]");
  CHECK(commands("then A=\"--b 1 --c 2\"\nrun $A").ends_with("[run@2][--b@2][1@2][--c@2][2@2]"));
  CHECK(commands("export A=\"--b 2\"\nrun $A") == "[export@1]; [run@2][--b@2][2@2]");
  CHECK(commands("A=\"1 --b 2\"\nrun $A") == "[run@2][1@2][--b@2][2@2]");
}

TEST_CASE("variables and arithmetic") {
  CHECK(commands("T=2\nrun $((8 / (T * 2) + $T))") == "[run@2][4@2]");
  CHECK(commands("run $((7 / 2 * 2)) $((1 / 0)) $((X + 1))") == "[run@1][6@1][$((1 / 0))@1][$((X + 1))@1]");
  CHECK(commands("run $(wc -l < hosts) `date`") == "[run@1][$(wc -l < hosts)@1][`date`@1]");
  CHECK(shell_arithmetic("2 + 3 * -4 % 5") == 0);
  CHECK(shell_arithmetic("(1") == std::nullopt);
  CHECK(shell_arithmetic("") == std::nullopt);
  CHECK(shell_arithmetic("300 * 1000 * 1000 * 1000 * 3 / 2048") == 439453125);
  CHECK(shell_arithmetic("-999999999 * 999999999") == std::nullopt);
  CHECK(shell_arithmetic("999999999 * 999999999") == std::nullopt);
  const ShellScript script = read_shell("export A=1\nunset B\n");
  CHECK(script.values.at("A") == "1");
  CHECK(script.values.at("B").empty());
}

TEST_CASE("values that contain each other end") {
  std::string branches;
  for (int i = 0; i < 1000; ++i) branches += "if ";
  CHECK(test::refusal([&] { read_shell(branches); }).find("too deep") != std::string::npos);
  std::string words = "A=" + std::string(60'000, 'x') + "\nrun ";
  for (int i = 0; i < 1000; ++i) words += "$A";
  CHECK(test::refusal([&] { read_shell(words); }).find("too long") != std::string::npos);
  std::string arrays = "A=(" + std::string(1000, 'x') + " y)\n";
  for (int i = 0; i < 30; ++i) arrays += "A+=(${A[@]} ${A[@]})\n";
  CHECK(test::refusal([&] { read_shell(arrays); }).find("too long") != std::string::npos);
}

}  // namespace stagecraft::shell_words_test
