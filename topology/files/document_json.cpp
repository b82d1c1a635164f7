// JSON to the common tree, through nlohmann's SAX interface. The library does not tell where a
// value stands, so the parser reads through an iterator that counts what it has taken.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "topology/files/document.hpp"
#include "topology/files/text_file.hpp"

namespace rehearse {

namespace {

// Forwards to a char pointer and publishes how far the parser has read.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, const char** furthest) : at_{at}, furthest_{furthest} {}
  const char& operator*() const { return *at_; }
  CountingIterator& operator++() {
    *furthest_ = ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator old = *this;
    ++*this;
    return old;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) {
    return a.at_ == b.at_;
  }

 private:
  const char* at_;
  const char** furthest_;
};

// Builds the tree; every callback comes when the parser stands just behind the token.
class TreeBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  TreeBuilder(std::string_view text, const std::string& file, const char* const& furthest,
              Nulls nulls)
      : text_{text}, file_{file}, furthest_{furthest}, nulls_{nulls} {
    for (std::size_t i = 0; i < text.size(); ++i)
      if (text[i] == '\n') line_begins_.push_back(i + 1);
  }

  Value take() { return std::move(root_); }

  bool null() override {
    if (nulls_ == Nulls::refused || open_.empty())
      throw InputError(here(), "null means nothing here");
    if (auto* table = std::get_if<Table>(&open_.back().data)) table->pop_back();
    return true;
  }
  bool boolean(bool flag) override { return put(Value{here(), flag}); }
  bool number_integer(std::int64_t whole) override { return put(Value{here(), whole}); }
  bool number_unsigned(std::uint64_t whole) override {
    if (whole > INT64_MAX) throw InputError(here(), "number out of range");
    return put(Value{here(), static_cast<std::int64_t>(whole)});
  }
  bool number_float(double real, const std::string&) override { return put(Value{here(), real}); }
  bool string(std::string& text) override { return put(Value{here(), std::move(text)}); }
  bool binary(nlohmann::json::binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Value{here(), Table{}}); }
  bool start_array(std::size_t) override { return open(Value{here(), Array{}}); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(std::string& name) override {
    Table& table = std::get<Table>(open_.back().data);
    const Place place = here();
    if (open_.back().find(name))
      throw InputError(place, fmt::format("key '{}' is given twice", name));
    table.push_back({std::move(name), place, {}});
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error …"
    std::string_view what = error.what();
    if (const auto colon = what.find(": "); colon != std::string_view::npos)
      what.remove_prefix(colon + 2);
    throw InputError(place_at(std::min(position > 0 ? position - 1 : 0, text_.size())),
                     one_line(what));
  }

 private:
  Place place_at(std::size_t offset) const {
    const auto next = std::upper_bound(line_begins_.begin(), line_begins_.end(), offset);
    return {file_, static_cast<std::uint32_t>(next - line_begins_.begin()),
            static_cast<std::uint32_t>(offset - *(next - 1) + 1)};
  }

  // The begin of the token just read: back over what follows a number, then over the token.
  Place here() const {
    auto end = static_cast<std::size_t>(furthest_ - text_.data());
    const auto is_any = [&](std::string_view set) {
      return end > 0 && set.find(text_[end - 1]) != std::string_view::npos;
    };
    if (is_any("\"")) {
      std::size_t begin = end - 1;
      while (begin > 0 && (text_[begin - 1] != '"' || is_escaped(begin - 1))) --begin;
      return place_at(begin > 0 ? begin - 1 : 0);
    }
    if (is_any("{[")) return place_at(end - 1);
    while (is_any(" \t\r\n,:]}")) --end;
    std::size_t begin = end;
    while (begin > 0 &&
           std::string_view{" \t\r\n,:[{"}.find(text_[begin - 1]) == std::string_view::npos)
      --begin;
    return place_at(begin);
  }

  bool is_escaped(std::size_t quote) const {
    std::size_t slashes = 0;
    while (slashes < quote && text_[quote - 1 - slashes] == '\\') ++slashes;
    return slashes % 2 == 1;
  }

  bool put(Value value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (auto* table = std::get_if<Table>(&open_.back().data)) {
      table->back().value.push_back(std::move(value));
    } else {
      std::get<Array>(open_.back().data).push_back(std::move(value));
    }
    return true;
  }
  bool open(Value value) {
    if (open_.size() > deepest_nesting) throw InputError(value.place, "nested too deeply");
    open_.push_back(std::move(value));
    return true;
  }
  bool close() {
    Value done = std::move(open_.back());
    open_.pop_back();
    return put(std::move(done));
  }

  std::string_view text_;
  const std::string& file_;
  const char* const& furthest_;
  Nulls nulls_;
  std::vector<std::size_t> line_begins_{0};
  std::vector<Value> open_;
  Value root_;
};

}  // namespace

Value parse_json_document(std::string_view text, const std::string& file, Nulls nulls) {
  check_utf8(text, file);
  const char* furthest = text.data();
  TreeBuilder builder{text, file, furthest, nulls};
  nlohmann::json::sax_parse(CountingIterator{text.data(), &furthest},
                            CountingIterator{text.data() + text.size(), &furthest}, &builder);
  Value root = builder.take();
  if (!root.table()) throw InputError(Place{file, 1, 1}, "the file must hold one object");
  return root;
}

}  // namespace rehearse
