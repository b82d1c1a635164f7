// `rehearse lab`: shows the built page of tools/lab/ on this machine, and to nobody else. The page
// needs no server; one is for browsers that treat files from disk as strangers to each other.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "sim/base/error.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/commands.hpp"
#include "topology/files/text_file.hpp"
#ifdef REHEARSE_HAS_HTTPLIB
#include <httplib.h>
#endif

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

#ifdef REHEARSE_HAS_HTTPLIB
void serve(const Options& options, const std::string& page) {
  httplib::Server server;
  // Its own default would let a second lab share the port, and either answer.
  server.set_socket_options([](int) {});
  const auto show = [&page](const httplib::Request&, httplib::Response& answer) {
    answer.set_header("Cache-Control", "no-store");
    answer.set_header("X-Content-Type-Options", "nosniff");
    answer.set_content(page, "text/html; charset=utf-8");
  };
  server.Get("/", show);
  server.Get("/index.html", show);
  int port = static_cast<int>(options.port);
  if (port == 0)
    port = server.bind_to_any_port("127.0.0.1");
  else if (!server.bind_to_port("127.0.0.1", port))
    port = -1;
  if (port < 0)
    throw DeviceError(
        fmt::format("port {} cannot be had; choose another with --port", options.port));
  fmt::print("the lab is at http://127.0.0.1:{}/ (Ctrl-C ends it)\n", port);
  std::fflush(stdout);
  server.listen_after_bind();
}
#else
void serve(const Options& options, const std::string&) {
  throw NothingToRunOn(
      fmt::format("this build has no server (libcpp-httplib-dev); open {}/{} in a browser",
                  folder_of(options), page_name));
}
#endif

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
