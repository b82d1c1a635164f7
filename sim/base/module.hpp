// Parts of the program that need a large library: each is a shared module beside the program,
// librehearse_NAME.so, loaded by the commands that use it. Linked in, SimGrid with ns-3, OpenSSL,
// OpenBLAS, MPI and hwloc cost each start 30 ms.
#pragma once

#include <string>

namespace rehearse {

struct Module {
  std::string name;
  std::string package;  // where Debian has the library that it needs
  /// Its libraries have plugins that look for symbols among those of the whole program.
  bool has_plugins = false;
};

/// What the module exports as `rehearse_NAME`; nullptr where the build left it out. A module stays
/// until the program ends. Throws InputError when it is there and cannot be loaded.
void* module_symbol(const Module& module);

/// The same as the function that it is.
template <class Function>
Function* module_function(const Module& module) {
  return reinterpret_cast<Function*>(module_symbol(module));
}

}  // namespace rehearse
