// Reads /proc: what is not there, or ends meanwhile, is no error.
#include "kernels/host/processes.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace rehearse {

namespace {

// Behind the name, which may hold anything: "S 42 …", the state and the parent.
std::string state_and_parent(std::int64_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(") ");
  return name_end == std::string::npos ? "" : text.substr(name_end + 2);
}

}  // namespace

char state_of(std::int64_t process) {
  const std::string text = state_and_parent(process);
  return text.empty() ? '\0' : text[0];
}

std::vector<std::int64_t> children_of(std::int64_t process) {
  std::vector<std::int64_t> children;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", none)) {
    const std::int64_t each = std::atoll(entry.path().filename().c_str());
    const std::string text = each > 0 ? state_and_parent(each) : "";
    if (text.size() > 2 && std::atoll(text.c_str() + 2) == process) children.push_back(each);
  }
  return children;
}

std::string started_with(std::int64_t process, std::string_view variable) {
  std::ifstream file(fmt::format("/proc/{}/environ", process), std::ios::binary);
  for (std::string word; std::getline(file, word, '\0');)
    if (word.starts_with(variable) && word.substr(variable.size()).starts_with('='))
      return word.substr(variable.size() + 1);
  return {};
}

}  // namespace rehearse
