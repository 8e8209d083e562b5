#include <doctest/doctest.h>

#include "sim/model/builder.hpp"
#include "tests/support/checked.hpp"

namespace stagecraft::measured_test {

TEST_CASE("measured: a chain has times by type of device") {
  const ModelBuilder& def = get_from(model_builders::catalog(), "builder", "measured");
  const ModelGraph model =
      def.build(test::checked("layers:\n"
                              "  - {name: a, forward: {board: 2 s, phone: 500 ms}, parameters: 5, output: 1 KiB}\n"
                              "  - {name: b, forward: {board: 3 s}}\n",
                              *def.fields));
  REQUIRE(model.layers.size() == 2);
  const Layer &a = model.layers[LayerId{0}], &b = model.layers[LayerId{1}];
  CHECK(a.inputs.empty());
  CHECK(a.times_on.at("board").forward.value == 2);
  CHECK(a.times_on.at("phone").forward.value == 0.5);
  CHECK(a.times_on.at("phone").input_gradient.value == 0);
  CHECK(a.parameters == 5);
  CHECK(a.output.value == 1024);
  CHECK(b.inputs == std::vector<LayerId>{LayerId{0}});
  CHECK(b.times_on.size() == 1);
  CHECK(test::input_error_of([&] { def.build(test::checked("layers: []", *def.fields)); }).find("there is no layer") !=
        std::string::npos);
}

}  // namespace stagecraft::measured_test
