// The reader is strict: an unknown key, heading or placeholder, and a figure that was typed, are
// mistakes with their place.
#include "tools/teach/teach_lesson.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "tools/teach/teach_amount.hpp"
#include "tools/teach/teach_numbers.hpp"
#include "topology/files/fields.hpp"

namespace rehearse {

namespace {

constexpr std::string_view fence = "+++";

struct Line {
  std::string_view text;
  std::uint32_t number = 0;
};

std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> lines;
  for (std::uint32_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back({text.substr(0, end), number});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

/// The front part as TOML whose lines have the numbers they have in the file.
std::string front_of(std::span<const Line> lines, const std::string& file, std::size_t& body) {
  if (lines.empty() || lines.front().text != fence)
    throw InputError({file, 1, 1}, "a lesson begins with a line of +++");
  std::string front = "\n";
  for (body = 1; body < lines.size() && lines[body].text != fence; ++body)
    front += std::string{lines[body].text} + "\n";
  if (body == lines.size()) throw InputError({file, 1, 1}, "the second line of +++ is missing");
  ++body;
  return front;
}

std::vector<std::string> texts_of(Fields& fields, std::string_view key, Problems& problems) {
  std::vector<std::string> texts;
  const Value* const given = fields.any(key);
  if (given == nullptr) return texts;
  if (given->array() == nullptr) {
    problems.push_back({given->place, fmt::format("'{}' is a list of texts", key)});
    return texts;
  }
  for (const Value& one : *given->array())
    if (one.text() != nullptr)
      texts.push_back(*one.text());
    else
      problems.push_back({one.place, fmt::format("'{}' is a list of texts", key)});
  return texts;
}

using Texts = std::vector<std::pair<std::string, std::string>>;

Texts read_texts(const Value* table, std::string_view what, Problems& problems) {
  Texts texts;
  if (table == nullptr || table->table() == nullptr) return texts;
  for (const Member& member : *table->table()) {
    const Value& value = member.value.front();
    if (value.text() == nullptr)
      problems.push_back({value.place, fmt::format("{}, in quotes", what)});
    else
      texts.emplace_back(member.key, *value.text());
  }
  return texts;
}

void read_curve(const Value* table, Lesson& lesson, Problems& problems) {
  if (table == nullptr) return;
  Fields fields(*table, "curve", problems);
  for (const char* key : {"axis", "of"}) fields.require(key);
  lesson.curve = {fields.text("axis").value_or(""), fields.text("of").value_or(""),
                  fields.text("unit").value_or("")};
  fields.finish();
}

void read_front(const Value& front, Lesson& lesson, Problems& problems) {
  Fields fields(front, "a lesson", problems);
  for (const char* key : {"topic", "answer", "unit", "values"}) fields.require(key);
  lesson.topic = fields.text("topic").value_or("");
  lesson.answer = fields.text("answer").value_or("");
  lesson.unit = fields.text("unit").value_or("");
  lesson.within = fields.number("within").value_or(lesson.within);
  lesson.closed = fields.text("closed").value_or("");
  lesson.agrees = fields.number("agrees").value_or(0);
  lesson.holds = texts_of(fields, "holds", problems);
  lesson.draws_pipeline = fields.flag("pipeline").value_or(false);
  lesson.controls = texts_of(fields, "controls", problems);
  read_curve(fields.table("curve"), lesson, problems);
  lesson.values = read_texts(fields.table("values"), "a value is a formula", problems);
  lesson.says =
      read_texts(fields.table("says"), "what a number is of the run, is a formula", problems);
  lesson.plain =
      read_texts(fields.table("plain"), "why no run tells a number, is a text", problems);
  fields.finish();
  try {
    unit(lesson.unit);
    unit(lesson.curve.unit);
  } catch (const InputError& error) {
    problems.push_back({fields.place_of("unit"), error.problems().front().message});
  }
}

bool has_value(const Lesson& lesson, std::string_view name) {
  return std::any_of(lesson.values.begin(), lesson.values.end(),
                     [&](const auto& value) { return value.first == name; });
}

/// Paragraphs and formulas of a part; lines of a paragraph are joined.
void add_line(std::vector<LessonBlock>& blocks, const Line& line, bool continues,
              const std::string& file) {
  const bool is_formula = line.text.starts_with("    ");
  const std::string text{is_formula ? line.text.substr(4) : line.text};
  if (continues && !blocks.empty() && blocks.back().is_formula == is_formula)
    blocks.back().text += (is_formula ? "\n" : " ") + text;
  else
    blocks.push_back({is_formula, text, {file, line.number, 1}});
}

void read_body(std::span<const Line> lines, const std::string& file, Lesson& lesson,
               Problems& problems) {
  std::vector<LessonBlock>* part = nullptr;
  bool continues = false;
  for (const Line& line : lines) {
    const Place place{file, line.number, 1};
    if (line.text.empty()) {
      continues = false;
    } else if (line.text.starts_with("# ") && part == nullptr) {
      lesson.title = line.text.substr(2);
      part = &lesson.idea;
    } else if (line.text == "## Question" && part == &lesson.idea) {
      part = &lesson.question;
    } else if (line.text == "## Reveal" && part == &lesson.question) {
      part = &lesson.reveal;
    } else if (line.text.starts_with("#") || part == nullptr) {
      problems.push_back({place, "a text has '# TITLE', '## Question' and '## Reveal', so"});
    } else {
      add_line(*part, line, continues, file);
      continues = true;
    }
  }
  if (part != &lesson.reveal || lesson.reveal.empty() || lesson.question.empty())
    problems.push_back({{file, 1, 1}, "a text needs '# TITLE', '## Question' and '## Reveal'"});
}

/// A word that is a number: 12, 3.5, 40%. Names such as 1F1B and A100 are none.
bool is_figure(std::string_view word) {
  while (!word.empty() && std::ispunct(static_cast<unsigned char>(word.back())))
    word.remove_suffix(1);
  while (!word.empty() && std::ispunct(static_cast<unsigned char>(word.front())))
    word.remove_prefix(1);
  return !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isdigit(c) || c == '.' || c == ',';
  });
}

void check_block(const LessonBlock& block, const Lesson& lesson, Problems& problems) {
  std::string words;
  bool is_code = block.is_formula;
  const std::string& text = block.text;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '`') is_code = !is_code;
    if (text[i] != '{') {
      words += is_code ? '_' : text[i];
      continue;
    }
    const std::size_t end = text.find('}', i);
    if (end == std::string::npos) {
      problems.push_back({block.place, "a placeholder has no end"});
      return;
    }
    const std::string name = text.substr(i + 1, std::min(end, text.find(' ', i)) - i - 1);
    if (!has_value(lesson, name))
      problems.push_back({block.place, fmt::format("there is no value '{}'", name)});
    words += '_';
    i = end;
  }
  for (std::size_t at = 0; at < words.size();) {
    const std::size_t end = std::min(words.find(' ', at), words.size());
    const std::string word = words.substr(at, end - at);
    if (is_figure(word))
      problems.push_back({block.place, fmt::format("the figure '{}' is typed: let it be a value "
                                                   "and a placeholder",
                                                   word)});
    at = end + 1;
  }
}

void check(const Lesson& lesson, Problems& problems) {
  for (const std::string* name : {&lesson.answer, &lesson.closed})
    if (!name->empty() && !has_value(lesson, *name))
      problems.push_back({lesson.place, fmt::format("there is no value '{}'", *name)});
  for (const std::string& claim : lesson.holds)
    if (std::count(claim.begin(), claim.end(), '<') != 1)
      problems.push_back({lesson.place, fmt::format("'{}' does not say 'A < B'", claim)});
  for (const auto* part : {&lesson.idea, &lesson.question, &lesson.reveal})
    for (const LessonBlock& block : *part) check_block(block, lesson, problems);
  check_numbers(lesson, problems);
}

}  // namespace

Lesson parse_lesson(std::string name, std::string_view text, std::string_view scenario) {
  const std::string file = name + ".md";
  const std::vector<Line> lines = lines_of(text);
  std::size_t body = 0;
  const Value front = parse_toml_document(front_of(lines, file, body), file);
  Lesson lesson{.name = std::move(name), .scenario = std::string{scenario}};
  lesson.scenario_file = lesson.name + ".toml";
  lesson.place = {file, 1, 1};
  Problems problems;
  read_front(front, lesson, problems);
  read_body(std::span{lines}.subspan(body), file, lesson, problems);
  check(lesson, problems);
  throw_if_any(std::move(problems));
  return lesson;
}

std::vector<Lesson> all_lessons() {
  std::vector<Lesson> lessons;
  for (const LessonFile& text : lesson_texts())
    for (const LessonFile& scenario : lesson_scenarios())
      if (scenario.name == text.name)
        lessons.push_back(parse_lesson(std::string{text.name}, text.text, scenario.text));
  std::sort(lessons.begin(), lessons.end(),
            [](const Lesson& a, const Lesson& b) { return a.name < b.name; });
  return lessons;
}

}  // namespace rehearse
