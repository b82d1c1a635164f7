// `rehearse lab`: shows the built page of tools/lab/ on this machine, and to nobody else. The page
// needs no server; one is for browsers that treat files from disk as strangers to each other.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "sim/base/error.hpp"
#include "sim/base/module.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/commands.hpp"
#include "tools/inspect/lab_server.hpp"
#include "topology/files/text_file.hpp"

namespace rehearse {

namespace {

struct Options {
  std::string folder;
  std::int64_t port = 8765;
};

constexpr const char* page_name = "index.html";

std::string folder_of(const Options& options) {
  if (!options.folder.empty()) return options.folder;
  std::error_code failure;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failure);
  const std::filesystem::path beside = program.parent_path() / "lab";
  const std::filesystem::path installed =
      program.parent_path().parent_path() / "share" / "rehearse" / "lab";
  return (std::filesystem::exists(installed) ? installed : beside).string();
}

std::string page_of(const std::string& folder) {
  const std::string file = folder + "/" + page_name;
  if (!std::filesystem::exists(file))
    throw NothingToRunOn(fmt::format(
        "there is no page {}; 'tools/lab/build' makes it (emscripten and esbuild)", file));
  return read_text_file(file);
}

void announce(int port) {
  fmt::print("the lab is at http://127.0.0.1:{}/ (Ctrl-C ends it)\n", port);
  std::fflush(stdout);
}

void serve(const Options& options, const std::string& page) {
  const auto server =
      module_function<decltype(rehearse_httplib)>({"httplib", "libcpp-httplib-dev"});
  if (server == nullptr)
    throw NothingToRunOn(
        fmt::format("this build has no server (libcpp-httplib-dev); open {}/{} in a browser",
                    folder_of(options), page_name));
  if (!server(page, static_cast<int>(options.port), announce))
    throw DeviceError(
        fmt::format("port {} cannot be had; choose another with --port", options.port));
}

void lab(const Options& options) {
  if (options.port < 0 || options.port > 65535)
    throw InputError(fmt::format("--port {} is not between 0 and 65535", options.port));
  serve(options, page_of(folder_of(options)));
}

}  // namespace

void add_lab_command(Command& program) {
  const auto options = std::make_shared<Options>();
  Command command =
      program.add("lab", "The lessons and a bench in your browser, on this machine only");
  command.option("--port", &options->port, "Of 127.0.0.1 (8765); 0: any that is free");
  command.option("--folder", &options->folder, "Where the page is, if not beside the program");
  command.does([options] { lab(*options); });
}

}  // namespace rehearse
