#include "sim/core/text.hpp"
#include "tests/support/files.hpp"

#include <doctest/doctest.h>
#include <filesystem>
#include <limits>

#include "sim/core/diagnostic.hpp"
#include "sim/core/file.hpp"

namespace stagecraft::text_test {
namespace {
const std::vector<std::string> kWords{"stages", "schedule", "1f1b", "gpipe"};
}

TEST_CASE("a count of one takes the singular") {
  CHECK(pluralize(1, "device") == "1 device");
  CHECK(pluralize(0, "device") == "0 devices");
  CHECK(pluralize(3, "micro-batch", "es") == "3 micro-batches");
}

TEST_CASE("words that begin with the initials are suggested") {
  const std::vector<std::string> schedules{"1f1b", "zb-h1", "zb-v", "v-half"};
  CHECK(suggest("zero-bubble", schedules) == "did you mean one of 'zb-h1', 'zb-v'?");
}

TEST_CASE("the closest word is within a third of its length, and swaps count one") {
  CHECK(closest("stagse", kWords) == "stages");
  CHECK(closest("1f1d", kWords) == "1f1b");
  CHECK(closest("1d1f", kWords) == std::nullopt);
  CHECK(closest("shcedlue", kWords) == "schedule");
  CHECK(closest("1F1B", kWords) == "1f1b");
  CHECK(closest("GB/S", std::vector<std::string>{"Gb/s", "GB/s"}) == "GB/s");  // Case alone does not tell which.
  CHECK(closest("x", kWords) == std::nullopt);
  CHECK(closest("", kWords) == std::nullopt);
  CHECK(closest("ab", std::vector<std::string>{"aXb", "ba"}) == "aXb");
  // Among equally close words, the one with the same first or last letters wins.
  CHECK(closest("--p", std::vector<std::string>{"--f", "-p"}) == "-p");
  CHECK(closest("sped", std::vector<std::string>{"seed", "speed"}) == "speed");
  CHECK(closest("sped", std::vector<std::string>{"speed", "seed"}) == "speed");
  CHECK(closest(std::string(1'000'000, 'a'), kWords) == std::nullopt);
}

TEST_CASE("without a close word, a suggestion lists the words if they are few") {
  CHECK(suggest("gpip", kWords) == "did you mean 'gpipe'?");
  CHECK(suggest("h100", std::vector<std::string>{"h100-pcie", "h100-sxm", "h200"}) ==
        "did you mean one of 'h100-pcie', 'h100-sxm'?");
  CHECK(suggest("zzzz", kWords) == "write one of stages, schedule, 1f1b, gpipe");
  CHECK(suggest("zzzz", std::vector<std::string>(15, "word")).starts_with("write one of word, word"));
  CHECK(suggest("zzzz", std::vector<std::string>(16, "word")).empty());
  CHECK(suggest("zzzz", std::vector<std::string>{"one"}) == "write one");
  CHECK(suggest("zzzz", {}).empty());
}

TEST_CASE("numbers are shortened to two digits, never with an exponent") {
  for (const auto& [value, text] : {std::pair{0.314, "0.31"},
                                    {4.2, "4.2"},
                                    {37.4, "37"},
                                    {99.4, "99"},
                                    {99.6, "100"},
                                    {1234.5, "1234"},
                                    {-0.12, "-0.12"},
                                    {-250.0, "-250"},
                                    {0.0, "0"}})
    CHECK(two_digits(value) == text);
}

TEST_CASE("text is split, joined and trimmed") {
  CHECK(join(split("a,,b", ','), "|") == "a||b");
  CHECK(split("", ',') == std::vector<std::string>{""});
  CHECK(split("a.", '.') == std::vector<std::string>{"a", ""});
  CHECK(trim(" \t a b\r\n") == "a b");
  CHECK(trim("  ").empty());
}

TEST_CASE("the shortest text of a number reads back as the number") {
  for (const double value : {0.1, 1.0, 1e6, 1.0 / 3, 5e-324, 1.7976931348623157e308}) {
    CHECK(std::stold(shortest(value)) == doctest::Approx(value));
    CHECK(shortest(value).size() <= 24);
  }
  CHECK(shortest(65536) == "65536");
  CHECK(shortest(1e6) == "1000000");
}

TEST_CASE("a file that is too large is refused before it is read") {
  const auto file = test::own_file("sparse", "");
  std::filesystem::resize_file(file, std::uintmax_t{1} << 40);  // Sparse, and more than memory would hold.
  CHECK_THROWS_WITH_AS(read_file(file), doctest::Contains("larger than 512 MiB"), InputError);
}

TEST_CASE("devices are not read, because some never end") {
  for (const char* device : {"/dev/zero", "/dev/urandom", "/dev/full", "/dev/null"})
    CHECK_THROWS_WITH_AS(read_file(device), doctest::Contains("is a device, not a file"), InputError);
}

TEST_CASE("text for XML has no character that ends an element or an attribute") {
  CHECK(xml_escape("a<b> & \"c\" 'd'") == "a&lt;b&gt; &amp; &quot;c&quot; 'd'");
  CHECK(xml_escape("\x1b\b\uFFFF\xff\u202e<") == "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD&lt;");
}

TEST_CASE("a CSV cell is in quotes only where it needs them") {
  CHECK(csv_cell("plain text") == "plain text");
  CHECK(csv_cell("a,b") == "\"a,b\"");
  CHECK(csv_cell("say \"x\"") == "\"say \"\"x\"\"\"");
  CHECK(csv_cell("two\nlines") == "two\\nlines");
  CHECK(csv_cell("", true) == "\"\"");
}

TEST_CASE("a CSV cell is no formula, and a number stays a number") {
  for (const char* formula : {"=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-1+1", "-", "+"})
    CHECK(csv_cell(formula) == std::string("'") + formula);
  for (const char* number : {"-1", "-1.5e-3", "-inf", "1", ".5"}) CHECK(csv_cell(number) == number);
  CHECK(csv_cell("=a,b") == "\"'=a,b\"");
  CHECK(csv_cell("\t=1") == "\\t=1");
}

TEST_CASE("printable text has no control character, no mark of direction and no broken UTF-8") {
  CHECK(printable("plain, é, \u05d0, \U0001F600") == "plain, é, \u05d0, \U0001F600");
  CHECK(printable("\x1b[31mred\x1b[0m") == "\\u001b[31mred\\u001b[0m");
  CHECK(printable("a\nb\tc\rd\x7f") == "a\\nb\\tc\\u000dd\\u007f");
  CHECK(printable(std::string_view("a\0b", 3)) == "a\\u0000b");
  CHECK(printable("\u0085\u009b2J") == "\\u0085\\u009b2J");
  CHECK(printable("\u202eabc\u2066\ufeff\u2028") == "\\u202eabc\\u2066\\ufeff\\u2028");
  CHECK(printable("\U000E0041") == "\\U000e0041");
  // Not UTF-8: a lone byte, a cut character, an overlong form, a surrogate, and what is above U+10FFFF.
  CHECK(printable("\xff") == "\\xff");
  CHECK(printable("\xe2\x82") == "\\xe2\\x82");
  CHECK(printable("\xc0\xaf") == "\\xc0\\xaf");
  CHECK(printable("\xe0\x80\xaf") == "\\xe0\\x80\\xaf");
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");
  CHECK(printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
  CHECK(printable(printable("\x1b\xff\n")) == printable("\x1b\xff\n"));
  CHECK(printable_lines("a\n\tb\x1b\r\n") == "a\n\tb\\u001b\\u000d\n");
  CHECK(replace_unprintable("é\x1b\t\u202e\xff") == "é\uFFFD\t\uFFFD\uFFFD");
}

TEST_CASE("* stands for any letters") {
  CHECK(matches("gpu1", "gpu1"));
  CHECK_FALSE(matches("gpu1", "gpu10"));
  CHECK(matches("gpu1*", "gpu10"));
  CHECK(matches("gpu1*", "gpu1"));
  CHECK(matches("*", ""));
  CHECK(matches("*.nic", "a.b.nic"));
  CHECK_FALSE(matches("*.nic", "a.nics"));
  CHECK(matches("n*.gpu*", "node3.gpu7"));
  CHECK(matches("a*b*a", "abba"));
  CHECK_FALSE(matches("a*b*a", "aba-"));
  CHECK_FALSE(matches("", "a"));
}

}  // namespace stagecraft::text_test
