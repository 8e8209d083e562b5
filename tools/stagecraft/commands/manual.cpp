// `stagecraft manual`: prints the manual page in troff, from the catalog of commands.

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/experiment/version.hpp"
#include "tools/stagecraft/command.hpp"

namespace stagecraft::commands {
namespace {

/// Escapes dashes, backslashes and control characters at the start of a line.
std::string troff(std::string_view text) {
  std::string out;
  for (const char ch : text) {
    if ((ch == '.' || ch == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
    if (ch == '-')
      out += "\\-";
    else if (ch == '\\')
      out += "\\e";
    else
      out += ch;
  }
  return out;
}

std::string usage(const Command& command) {
  std::string text = fmt::format("\\fBstagecraft {}\\fR [\\fIOPTIONS\\fR]", command.name);
  for (const Argument& a : command.arguments)
    if (a.flags.front() != '-')
      text += fmt::format(" {}\\fI{}\\fR{}{}", a.required ? "" : "[", a.flags, a.required ? "" : "]",
                          a.kind == Argument::Kind::List ? "..." : "");
  return text;
}

std::string argument(const Argument& a) {
  std::string flags = "\\fB" + troff(join(split(a.flags, ','), ", ")) + "\\fR";
  const bool takes = a.flags.front() == '-' && a.kind != Argument::Kind::Flag;
  const std::string only = a.only.empty() ? "" : fmt::format("Only for {}: ", troff(a.only));
  return fmt::format(".TP\n{}{}\n{}{}{}\n", flags, takes ? " \\fIVALUE\\fR" : "", only, troff(a.doc),
                     a.fallback.empty() ? "" : fmt::format(" (default: {})", troff(a.fallback)));
}

int execute_manual(const Arguments&) {
  std::string text = fmt::format(
      ".TH STAGECRAFT 1 \"\" \"stagecraft {}\"\n.SH NAME\nstagecraft \\- simulate, measure and compare "
      "pipeline\\-parallel training\n.SH SYNOPSIS\n\\fBstagecraft\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR] "
      "[\\fIARGUMENTS\\fR]\n.SH COMMANDS\n",
      troff(version()));
  for (const Command* c : commands::catalog()) {
    text += fmt::format(".SS {}\n{}\n.PP\n{}.\n", c->name, usage(*c), troff(c->summary));
    for (const Argument& a : c->arguments) text += argument(a);
    if (!c->example.empty()) text += fmt::format(".PP\nExample:\n.PP\n.nf\n  {}\n.fi\n", troff(c->example));
  }
  text +=
      ".SH EXIT STATUS\n0: done. 2: the input is wrong. 3: it cannot be done. 4: the machine or the backend. 70: a bug "
      "of ours. 130: interrupted; what is finished is kept.\n"
      ".SH ENVIRONMENT\n.TP\n\\fBSTAGECRAFT_PATH\\fR\nFolders with models/, topologies/ and scenarios/ that are "
      "searched first, with colons between.\n.TP\n\\fBSTAGECRAFT_CUDA_LIBRARIES\\fR\nFolders in which cuBLASLt and "
      "NCCL "
      "are looked for.\n.TP\n\\fBXDG_CACHE_HOME\\fR\nThe folder in which reproduce predictions keeps what it "
      "simulated, in "
      "stagecraft/predictions.csv; without it, ~/.cache.\n";
  return print(text), 0;
}

}  // namespace

extern const Command manual{
    .name = "manual",
    .summary = "Print the manual page",
    .group = "Rest",
    .example = "stagecraft manual | man -l -",
    .arguments = {},
    .run = execute_manual,
};

}  // namespace stagecraft::commands
