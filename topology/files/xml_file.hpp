// An XML text loaded by pugixml, and where in it an element stands.
#pragma once

#include <pugixml.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.hpp"

namespace rehearse {

/// For the .cpp files of XML readers only. `text` and `file` must outlive it.
class XmlFile {
 public:
  /// Throws InputError where the text stops being XML.
  XmlFile(std::string_view text, const std::string& file);

  pugi::xml_node root() const { return document_.document_element(); }
  Place place_of(pugi::xml_node at) const;
  [[noreturn]] void fail(pugi::xml_node at, const std::string& message) const;
  /// The child elements, all of which must have one of these names.
  std::vector<pugi::xml_node> elements(pugi::xml_node parent,
                                       const std::vector<std::string>& allowed) const;

 private:
  Place place_at(std::size_t offset) const;

  std::string_view text_;
  const std::string& file_;
  std::vector<std::size_t> line_begins_{0};
  pugi::xml_document document_;
};

}  // namespace rehearse
