// The page's markup. Its style and script are page_style.css and page_script.js, which travel
// inside the binary. The content security policy forbids every request, whatever a text may try.
#include "tools/report/html_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "sim/base/assert.hpp"
#include "tools/report/assets.hpp"
#include "tools/report/escape.hpp"

namespace rehearse {

namespace {

std::string_view asset(std::string_view name) {
  for (const Asset& one : report_assets())
    if (one.name == name) return one.text;
  ASSERT(!"there is no such file");
  return {};
}

/// "1.98 ms", "+0.0 %", "4,096": right-aligned, digits stand below digits.
bool is_number(std::string_view cell) {
  if (!cell.empty() && (cell.front() == '+' || cell.front() == '-')) cell.remove_prefix(1);
  if (cell.empty() || cell.front() < '0' || cell.front() > '9') return false;
  return std::count(cell.begin(), cell.end(), ' ') <= 1;
}

/// Columns of numbers, by their first rows.
std::vector<bool> number_columns(const FigureTable& table) {
  std::vector<bool> columns(table.head.size(), !table.rows.empty());
  for (std::size_t r = 0; r < std::min<std::size_t>(table.rows.size(), 20); ++r)
    for (std::size_t c = 0; c < std::min(columns.size(), table.rows[r].size()); ++c)
      columns[c] = columns[c] && (is_number(table.rows[r][c]) || table.rows[r][c] == "-");
  return columns;
}

class PageText {
 public:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }

  void head(const Page& page) {
    put("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
        "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n"
        "<title>{}</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n{}</style>\n</head>\n"
        "<body>\n<a class=\"skip\" href=\"#content\">To the figures</a>\n",
        escaped(page.title), asset("page_style"));
  }

  void header(const Page& page) {
    put("<header>\n<p class=\"kicker\">{}</p>\n<h1>{}</h1>\n", escaped(page.kicker),
        escaped(page.title));
    if (!page.facts.empty()) put("<dl class=\"facts\">\n");
    for (const auto& [name, value] : page.facts)
      put("<dt>{}</dt><dd>{}</dd>\n", escaped(name), escaped(value));
    if (!page.facts.empty()) put("</dl>\n");
    if (!page.cards.empty()) put("<ul class=\"cards\">\n");
    for (const PageCard& card : page.cards)
      put("<li><span class=\"what\">{}</span><span class=\"value\">{}</span><span "
          "class=\"more\">{}</span></li>\n",
          escaped(card.what), escaped(card.value), escaped(card.more));
    if (!page.cards.empty()) put("</ul>\n");
    if (!page.verdict.empty()) put("<div class=\"verdict\">\n");
    for (const std::string& paragraph : page.verdict) put("<p>{}</p>\n", escaped(paragraph));
    if (!page.verdict.empty()) put("</div>\n");
    put("</header>\n");
  }

  void navigation(const Page& page) {
    put("<nav aria-label=\"Figures\"><ul>\n");
    for (const Figure& figure : page.figures)
      if (!figure.svg.empty())
        put("<li><a href=\"#figure-{}\">{}</a></li>\n", figure.name, escaped(figure.title));
    put("</ul></nav>\n");
  }

  void table(const FigureTable& table, std::string_view caption) {
    put("<div class=\"table\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\"><table>\n<thead>"
        "<tr>",
        escaped(caption));
    const std::vector<bool> numbers = number_columns(table);
    for (std::size_t c = 0; c < table.head.size(); ++c)
      put("<th scope=\"col\"{}>{}</th>", numbers[c] ? " class=\"n\"" : "", escaped(table.head[c]));
    put("</tr></thead>\n<tbody>\n");
    for (const std::vector<std::string>& row : table.rows) {
      put("<tr>");
      for (std::size_t c = 0; c < row.size(); ++c)
        put("<td{}>{}</td>", c < numbers.size() && numbers[c] ? " class=\"n\"" : "",
            escaped(row[c]));
      put("</tr>\n");
    }
    put("</tbody></table></div>\n");
  }

  void figure(const Figure& figure) {
    // Names are ours; whoever takes one from a file would write markup.
    ASSERT(figure.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") ==
           std::string::npos);
    const bool is_square = figure.svg.find("viewBox=\"0 0 1120 ") == std::string::npos;
    put("<section id=\"figure-{0}\" data-figure=\"{0}\" aria-labelledby=\"title-{0}\">\n"
        "<h2 id=\"title-{0}\">{1}</h2>\n<p>{2}</p>\n"
        "<div class=\"frame{3}\" tabindex=\"0\" role=\"group\" aria-label=\"{1}: plus and minus "
        "zoom, arrows move, n and p go from one to the next, 0 shows the whole\">\n{4}</div>\n",
        figure.name, escaped(figure.title), escaped(figure.description), is_square ? " square" : "",
        figure.svg);
    if (!figure.table.rows.empty()) {
      put("<details><summary>The same as a table</summary>\n");
      table(figure.table, figure.title);
      put("</details>\n");
    }
    if (!figure.data.empty())
      put("<script type=\"application/json\" id=\"data-{}\">{}</script>\n", figure.name,
          figure.data);
    put("</section>\n");
  }

  void foot(const Page& page) {
    if (!page.transcript.empty())
      put("<details><summary>As the terminal shows it</summary>\n<div class=\"table\" "
          "tabindex=\"0\" role=\"region\" aria-label=\"As the terminal shows it\"><pre>{}"
          "</pre></div></details>\n",
          escaped(page.transcript));
    put("<footer>\n");
    for (const std::string& note : page.notes) put("<p>{}</p>\n", escaped(note));
    put("<p class=\"keys\">In a figure: + and − zoom, arrow keys move, n and p go from one thing "
        "to the next and "
        "say what it is, 0 shows the whole; or Ctrl and the wheel.</p>\n</footer>\n"
        "<script>\n{}</script>\n</body>\n</html>\n",
        asset("page_script"));
  }

  std::string done() && { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace

std::string html_page(const Page& page) {
  PageText text;
  text.head(page);
  text.header(page);
  text.navigation(page);
  text.put("<main id=\"content\">\n");
  for (const PageTable& table : page.tables) {
    text.put("<section>\n<h2>{}</h2>\n", escaped(table.title));
    text.table(table.table, table.title);
    text.put("</section>\n");
  }
  for (const Figure& figure : page.figures)
    if (!figure.svg.empty()) text.figure(figure);
  text.put("</main>\n");
  text.foot(page);
  return std::move(text).done();
}

}  // namespace rehearse
