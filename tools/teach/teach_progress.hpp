// Which lessons a learner has done, kept in the user's state folder.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace rehearse {

struct LessonDone {
  std::string guess, answer;  // as they were shown
  bool is_right = false;
  friend bool operator==(const LessonDone&, const LessonDone&) = default;
};

class LessonProgress {
 public:
  /// Reads `file`; none is an empty progress. Throws InputError when it is not ours.
  explicit LessonProgress(std::string file);

  const LessonDone* find(std::string_view lesson) const;
  /// Remembers it and writes the file, whole or not at all. Throws DeviceError.
  void remember(const std::string& lesson, LessonDone done);
  std::size_t size() const { return done_.size(); }

 private:
  std::string file_;
  std::map<std::string, LessonDone, std::less<>> done_;
};

/// $XDG_STATE_HOME/rehearse/lessons.json, or in ~/.local/state; empty when there is no home.
std::string progress_file();

}  // namespace rehearse
