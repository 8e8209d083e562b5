#include "sim/core/escape.hpp"

#include <doctest/doctest.h>

#include "sim/core/text.hpp"

using namespace stagecraft;

TEST_CASE("text for XML has no character that ends an element or an attribute") {
  CHECK(xml_escape("a<b> & \"c\" 'd'") == "a&lt;b&gt; &amp; &quot;c&quot; 'd'");
}

TEST_CASE("a CSV cell is in quotes only where it needs them") {
  CHECK(csv_cell("plain text") == "plain text");
  CHECK(csv_cell("a,b") == "\"a,b\"");
  CHECK(csv_cell("say \"x\"") == "\"say \"\"x\"\"\"");
  CHECK(csv_cell("two\nlines") == "\"two\nlines\"");
  CHECK(csv_quoted("") == "\"\"");
}
