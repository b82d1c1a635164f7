// Offsets of pugixml to lines and columns.
#include "topology/files/xml_file.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "topology/files/text_file.hpp"

namespace rehearse {

XmlFile::XmlFile(std::string_view text, const std::string& file) : text_{text}, file_{file} {
  check_utf8(text, file);
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\n') line_begins_.push_back(i + 1);
  const pugi::xml_parse_result result =
      document_.load_buffer(text.data(), text.size(), pugi::parse_default, pugi::encoding_utf8);
  if (!result)
    throw InputError(place_at(static_cast<std::size_t>(result.offset)),
                     one_line(fmt::format("not XML: {}", result.description())));
}

Place XmlFile::place_at(std::size_t offset) const {
  const auto next = std::upper_bound(line_begins_.begin(), line_begins_.end(), offset);
  return {file_, static_cast<std::uint32_t>(next - line_begins_.begin()),
          static_cast<std::uint32_t>(offset - *(next - 1) + 1)};
}

Place XmlFile::place_of(pugi::xml_node at) const {
  // pugixml points behind the opening '<'.
  const std::ptrdiff_t offset = at.offset_debug();
  return place_at(offset < 1 ? 0 : static_cast<std::size_t>(offset) - 1);
}

void XmlFile::fail(pugi::xml_node at, const std::string& message) const {
  throw InputError(place_of(at), one_line(message));
}

std::vector<pugi::xml_node> XmlFile::elements(pugi::xml_node parent,
                                              const std::vector<std::string>& allowed) const {
  std::vector<pugi::xml_node> found;
  for (const pugi::xml_node child : parent.children()) {
    if (child.type() != pugi::node_element) continue;
    if (std::find(allowed.begin(), allowed.end(), child.name()) == allowed.end())
      fail(child, fmt::format("unknown element <{}> in <{}>{}", child.name(), parent.name(),
                              did_you_mean(child.name(), allowed)));
    found.push_back(child);
  }
  return found;
}

}  // namespace rehearse
