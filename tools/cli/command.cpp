// The one place that instantiates CLI11's options.
#include "tools/cli/command.hpp"

#include <CLI/CLI.hpp>
#include <type_traits>
#include <utility>

namespace rehearse {

Command Command::add(const std::string& name, const std::string& help) {
  return Command(*app_->add_subcommand(name, help));
}

void Command::needs_another() { app_->require_subcommand(1); }

void Command::option(const std::string& names, Target target, const std::string& help,
                     const OptionRules& rules) {
  CLI::Option* const option = std::visit(
      [&](auto& to) {
        if constexpr (std::is_pointer_v<std::remove_reference_t<decltype(to)>>)
          return app_->add_option(names, *to, help);
        else
          return app_->add_option_function<std::string>(names, std::move(to), help);
      },
      target);
  option->required(rules.required);
  if (rules.word_by_word) option->allow_extra_args(false);
  if (rules.hidden) option->group("");
  if (rules.shows_default) option->capture_default_str();
  if (rules.delimiter != '\0') option->delimiter(rules.delimiter);
  if (!rules.choices.empty()) option->check(CLI::IsMember(rules.choices));
}

void Command::flag(const std::string& names, bool& target, const std::string& help) {
  app_->add_flag(names, target, help);
}

void Command::does(std::function<void()> work) { app_->callback(std::move(work)); }

}  // namespace rehearse
