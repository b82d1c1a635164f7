// A command and its options: the part of CLI11 that we use, behind a header that is quick to
// compile. CLI11's own templates took some 8 s in each of 14 files.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace CLI {
class App;
}

namespace rehearse {

/// How an option is given.
struct OptionRules {
  bool required = false;
  bool word_by_word = false;  // a list takes one word each time it is named, not all that follow
  bool hidden = false;        // not in --help
  bool shows_default = false;
  char delimiter = '\0';  // of a list in one word
  std::vector<std::string> choices = {};
};

class Command {
 public:
  /// What the word behind an option sets, or who takes it.
  using Target = std::variant<std::string*, std::vector<std::string>*, std::int64_t*,
                              std::uint32_t*, double*, std::optional<std::int64_t>*,
                              std::optional<double>*, std::function<void(const std::string&)>>;

  explicit Command(CLI::App& app) : app_(&app) {}

  Command add(const std::string& name, const std::string& help);
  void needs_another();  // of those added to it
  /// Targets live as long as the command: in something that its work shares.
  void option(const std::string& names, Target target, const std::string& help,
              const OptionRules& rules = {});
  void flag(const std::string& names, bool& target, const std::string& help);
  void does(std::function<void()> work);

 private:
  CLI::App* app_;
};

}  // namespace rehearse
