#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/output/picture.hpp"
#include "tools/stagecraft/command.hpp"

namespace stagecraft {

/// --svg, --pdf and --size of commands that draw. `what`: "the timeline"; `before`: words before each help, such as
/// "predictions: ".
std::vector<Argument> picture_arguments(const std::string& what, const std::string& before = "");
/// --draw of commands with several pictures; the first is drawn without it.
Argument draw_argument(const std::vector<std::string>& pictures);

/// Whether a picture is asked for.
bool asks_for_picture(const Arguments&);
/// Checks the options before anything runs.
void check_picture_options(const Arguments&, const std::vector<std::string>& pictures = {});
/// The picture of --draw.
std::string picture_name(const Arguments&, const std::vector<std::string>& pictures);

/// Writes the files that --svg and --pdf name.
void write_pictures(const Arguments&, const std::function<Picture(const PictureSize&)>& draw);

}  // namespace stagecraft
