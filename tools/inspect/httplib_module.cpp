// The server of `rehearse lab`, in a module of its own: cpp-httplib brings OpenSSL along.
#include <httplib.h>

#include "tools/inspect/lab_server.hpp"

bool rehearse_httplib(const std::string& page, int port, void (*announce)(int)) {
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
  if (port == 0)
    port = server.bind_to_any_port("127.0.0.1");
  else if (!server.bind_to_port("127.0.0.1", port))
    port = -1;
  if (port < 0) return false;
  announce(port);
  server.listen_after_bind();
  return true;
}
