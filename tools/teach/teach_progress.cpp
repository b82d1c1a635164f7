// JSON, because people may want to read it; small, so it is written whole each time.
#include "tools/teach/teach_progress.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "sim/base/error.hpp"
#include "tools/output/output_file.hpp"
#include "topology/files/text_file.hpp"

namespace rehearse {

namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void not_ours(const std::string& file) {
  throw InputError({file}, "this is not what teach writes; delete it to begin anew");
}

LessonDone done_of(const Json& json, const std::string& file) {
  const auto text = [&](const char* key) -> std::string {
    if (!json.contains(key) || !json[key].is_string()) not_ours(file);
    return json[key];
  };
  if (!json.is_object() || !json.contains("right") || !json["right"].is_boolean()) not_ours(file);
  return {text("guess"), text("answer"), json["right"]};
}

}  // namespace

LessonProgress::LessonProgress(std::string file) : file_{std::move(file)} {
  std::error_code ignored;
  if (file_.empty() || !std::filesystem::exists(file_, ignored)) return;
  const Json json = Json::parse(read_text_file(file_), nullptr, false);
  if (!json.is_object()) not_ours(file_);
  for (const auto& [name, done] : json.items()) done_.emplace(name, done_of(done, file_));
}

const LessonDone* LessonProgress::find(std::string_view lesson) const {
  const auto found = done_.find(lesson);
  return found == done_.end() ? nullptr : &found->second;
}

void LessonProgress::remember(const std::string& lesson, LessonDone done) {
  done_[lesson] = std::move(done);
  if (file_.empty()) return;
  Json json = Json::object();
  for (const auto& [name, one] : done_)
    json[name] = {{"guess", one.guess}, {"answer", one.answer}, {"right", one.is_right}};
  std::error_code failure;
  std::filesystem::create_directories(std::filesystem::path{file_}.parent_path(), failure);
  if (failure)
    throw DeviceError(fmt::format("cannot make the folder of {}: {}", file_, failure.message()));
  write_output(file_, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::string progress_file() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string{value == nullptr ? "" : value};
  };
  // A relative folder is to be ignored, as the XDG base directory specification has it.
  std::string folder = variable("XDG_STATE_HOME");
  if (!folder.starts_with('/')) {
    const std::string home = variable("HOME");
    if (!home.starts_with('/')) return {};
    folder = home + "/.local/state";
  }
  return folder + "/rehearse/lessons.json";
}

}  // namespace rehearse
