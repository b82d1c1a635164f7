// Looks for modules where the build and where an installation puts them.
#include "sim/base/module.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

#include "sim/base/error.hpp"

namespace rehearse {

namespace {

std::string why_not() {
  const char* const text = ::dlerror();
  return text == nullptr ? "unknown error" : text;
}

}  // namespace

void* module_symbol(const Module& module) {
  std::error_code failure;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failure).parent_path();
  const std::string name = "librehearse_" + module.name + ".so";
  for (const auto& folder : {program, program.parent_path() / "lib" / "rehearse"}) {
    const std::string file = (folder / name).string();
    if (!std::filesystem::exists(file, failure)) continue;
    // Each module has copies of our functions; no symbol of it is meant for another.
    const int scope = module.has_plugins ? RTLD_GLOBAL : RTLD_LOCAL;
    void* const library = ::dlopen(file.c_str(), RTLD_NOW | scope);
    void* const symbol =
        library == nullptr ? nullptr : ::dlsym(library, ("rehearse_" + module.name).c_str());
    if (symbol == nullptr)
      throw InputError(
          fmt::format("cannot load {}: {}; install {}", file, why_not(), module.package));
    return symbol;
  }
  return nullptr;
}

}  // namespace rehearse
