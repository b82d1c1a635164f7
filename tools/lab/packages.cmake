# What find_package gives natively, for the lab's compiler: headers alone, linked into a folder of
# their own. With -I/usr/include it would read the host's C library.
set(lab_include ${PROJECT_BINARY_DIR}/include)
file(MAKE_DIRECTORY ${lab_include})
foreach(header fmt/format.h nlohmann/json.hpp toml++/toml.h boost/config.hpp)
  find_path(found ${header} PATHS /usr/include /usr/local/include NO_CACHE NO_DEFAULT_PATH
            NO_CMAKE_FIND_ROOT_PATH REQUIRED)
  cmake_path(GET header PARENT_PATH name)
  file(CREATE_LINK ${found}/${name} ${lab_include}/${name} SYMBOLIC)
  unset(found)
endforeach()

add_library(lab_packages INTERFACE)
target_include_directories(lab_packages SYSTEM INTERFACE ${lab_include})
# Exceptions of WebAssembly itself: those made of JavaScript calls cost more than the simulation.
set(lab_exceptions -fwasm-exceptions)
target_compile_options(lab_packages INTERFACE ${lab_exceptions} -w)
target_link_options(lab_packages INTERFACE ${lab_exceptions})
foreach(name fmt::fmt Boost::headers tomlplusplus::tomlplusplus nlohmann_json::nlohmann_json
        pugixml::pugixml ZLIB::ZLIB)
  add_library(${name} ALIAS lab_packages)
endforeach()
