// What the module with cpp-httplib exports.
#pragma once

#include <string>

/// Serves the page on this machine only, until the process ends; port 0 stands for any that is
/// free. Tells which it is once it can be asked; false when it cannot be had.
extern "C" bool rehearse_httplib(const std::string& page, int port, void (*announce)(int));
