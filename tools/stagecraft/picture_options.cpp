// The options --svg, --pdf, --size, --title and --draw, which all commands with pictures share: their declaration,
// their checks, and the files that they name.

#include "tools/stagecraft/picture_options.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

PictureSize named_size(const std::string& name) {
  if (name == "column") return kColumnPicture;
  if (name == "page") return kPagePicture;
  if (name == "screen") return kScreenPicture;
  throw InputError(fmt::format("--size: '{}' is not a size", name), "column, page or screen");
}

PictureSize size_of(const Arguments& a) {
  PictureSize size = named_size(a.has("size") ? a.text("size") : "page");
  if (a.has("title")) size.title = a.text("title");
  return size;
}

/// A name that promises another kind of picture than the file would be.
void check_ending(const Arguments& a, const std::string& option) {
  const std::string file = a.text(option);
  for (const std::string_view other : {"svg", "pdf", "png", "jpg", "jpeg", "eps"})
    if (other != option && file.ends_with(fmt::format(".{}", other)))
      throw InputError(fmt::format("--{}: '{}' would be {} file", option, file, option == "svg" ? "an SVG" : "a PDF"),
                       fmt::format("end its name in .{}{}", option,
                                   other == "svg" || other == "pdf" ? fmt::format(", or use --{}", other) : ""));
}

}  // namespace

std::vector<Argument> picture_arguments(const std::string& what, const std::string& before) {
  using Kind = Argument::Kind;
  return {
      {"--svg", Kind::Text, fmt::format("{}{} {} to this SVG file", before, before.empty() ? "Draw" : "draw", what)},
      {"--pdf", Kind::Text, fmt::format("{}{} {} to this PDF file", before, before.empty() ? "Draw" : "draw", what)},
      {"--size", Kind::Text, "With --svg or --pdf: column (3.33 in), page (7 in) or screen (1180 pt) (default: page)"},
      {"--title", Kind::Text, "With --svg or --pdf: the title, '' for none (default: that of what is drawn)"}};
}

Argument draw_argument(const std::vector<std::string>& pictures) {
  return {"--draw", Argument::Kind::Text,
          fmt::format("With --svg or --pdf: {} (default: {})", join(pictures), pictures.front())};
}

bool asks_for_picture(const Arguments& a) { return a.has("svg") || a.has("pdf"); }

void check_picture_options(const Arguments& a, const std::vector<std::string>& pictures) {
  for (const char* option : {"svg", "pdf"})
    if (a.has(option)) {
      check_ending(a, option);
      check_output_of(a, option);
    }
  for (const char* option : {"size", "title", "draw"})
    if ((option != std::string("draw") || !pictures.empty()) && a.has(option) && !asks_for_picture(a))
      throw InputError(fmt::format("--{} is for pictures", option), "add --svg FILE or --pdf FILE");
  size_of(a);
  if (!pictures.empty()) picture_name(a, pictures);
}

std::string picture_name(const Arguments& a, const std::vector<std::string>& pictures) {
  if (!a.has("draw")) return pictures.front();
  const std::string name = a.text("draw");
  if (std::find(pictures.begin(), pictures.end(), name) == pictures.end())
    throw InputError(fmt::format("--draw: '{}' is not a picture of this command", name), join(pictures));
  return name;
}

void write_pictures(const Arguments& a, const std::function<Picture(const PictureSize&)>& draw) {
  if (!asks_for_picture(a)) return;
  const Picture picture = draw(size_of(a));
  if (a.has("svg")) {
    write_output_of(a, "svg", to_svg(picture), CommentStyle::Markup);
    print_error("wrote {}\n", a.text("svg"));
  }
  if (!a.has("pdf")) return;
  const PdfFile pdf = to_pdf(picture);
  write_output_of(a, "pdf", pdf.bytes, CommentStyle::None);  // Its second line says who wrote it.
  print_error("wrote {}\n", a.text("pdf"));
  if (!pdf.embeds_fonts)
    print_error(
        "note: {} does not embed its font, Helvetica, because this build found none to embed; IEEE and ACM refuse it "
        "(help: apt install fonts-dejavu-core, and build again)\n",
        a.text("pdf"));
  if (pdf.replaced > 0)
    print_error("note: {} printed as ? in {}, because the fonts of PDF lack them; the SVG file has them\n",
                pluralize(pdf.replaced, "character") + (pdf.replaced == 1 ? " is" : " are"), a.text("pdf"));
}

}  // namespace stagecraft
