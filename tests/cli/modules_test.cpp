// Modules (sim/base/module.hpp): the program begins without large libraries, loads one when a
// command needs it, and says in a line what is missing.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <sstream>
#include <string>

#include "tests/support/own_folder.hpp"
#include "tests/support/shell.hpp"

namespace rehearse::modules_test {
namespace {

using Names = std::set<std::string>;
constexpr const char* by_simgrid = " bench all_reduce --cluster p40-8 -b 8 -e 8 --engine simgrid";
constexpr const char* by_host = " bench all_reduce --backend host -g 2 -b 8 -e 8";

Names words_of(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>{words}, {}};
}

// By the dynamic linker's own record.
Names loaded_by(const std::string& arguments) {
  return words_of(shell("LD_DEBUG=files $R" + arguments +
                        " 2>&1 >/dev/null | grep -o 'librehearse_[a-z]*' | sort -u")
                      .text);
}

TEST(Modules, TheProgramBeginsWithFewLibraries) {
  const Outcome outcome =
      shell("LD_TRACE_LOADED_OBJECTS=1 $R --version | sed 's|.*/||; s/[.0-9]* .*//; s/^[ \t]*//'");
  // Every start pays for each of these; the last line is of sanitizers.
  const Names known{"linux-vdso.so", "ld-linux-x86-64.so", "ld-linux-aarch64.so", "libc.so",
                    "libm.so",       "libgcc_s.so",        "libstdc++.so",        "libfmt.so",
                    "libz.so",       "libpugixml.so",      "libtomlplusplus.so",  "libasan.so",
                    "libubsan.so",   "libtsan.so"};
  const Names found = words_of(outcome.text);
  EXPECT_TRUE(found.contains("libc.so")) << outcome.text;
  for (const std::string& library : found) EXPECT_TRUE(known.contains(library)) << library;
}

TEST(Modules, ACommandLoadsThoseThatItNeeds) {
  EXPECT_EQ(loaded_by(" --version"), Names{});
  EXPECT_EQ(loaded_by(" bench all_reduce --cluster p40-8 -b 8 -e 8"), Names{});
  for (const std::string& module : loaded_by(by_simgrid)) EXPECT_EQ(module, "librehearse_simgrid");
  for (const std::string& module : loaded_by(by_host))
    EXPECT_TRUE(module == "librehearse_openblas" || module == "librehearse_hwloc") << module;
}

class ModulesElsewhere : public OwnFolder {
 protected:
  ModulesElsewhere() {
    std::filesystem::create_directories(folder() / "bin");
    std::filesystem::create_directories(folder() / "lib" / "rehearse");
    std::filesystem::copy_file(REHEARSE_BINARY, program());
  }
  std::string program() const { return path("bin/rehearse"); }
};

TEST_F(ModulesElsewhere, WithoutThemACommandSaysWhatToInstall) {
  const Outcome simgrid = shell(program() + by_simgrid);
  EXPECT_EQ(simgrid.exit_code, 77);
  EXPECT_EQ(simgrid.text,
            "error: this build has no SimGrid; install libsimgrid-dev and build again, or choose "
            "--engine fast\n");
  const Outcome mpi = shell("OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 " + program() +
                            " bench all_reduce --backend host -b 8 -e 8");
  EXPECT_EQ(mpi.exit_code, 77);
  EXPECT_EQ(mpi.text,
            "error: this build has no MPI; install libopenmpi-dev and build again, or start one "
            "process without mpirun\n");
  write("index.html", "a page");
  const Outcome lab =
      shell("timeout 30 " + program() + " lab --port 0 --folder " + folder().string());
  EXPECT_EQ(lab.exit_code, 77);
  EXPECT_EQ(lab.text, "error: this build has no server (libcpp-httplib-dev); open " +
                          path("index.html") + " in a browser\n");
  const Outcome host = shell(program() + by_host);  // plain loops stand in for OpenBLAS
  EXPECT_EQ(host.exit_code, 0) << host.text;
}

TEST_F(ModulesElsewhere, OneThatCannotBeLoadedIsBadInput) {
  for (const std::string file :
       {"lib/rehearse/librehearse_simgrid.so", "bin/librehearse_simgrid.so"}) {
    write(file, "cut off");
    const Outcome outcome = shell(program() + by_simgrid);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.text, "error: cannot load " + path(file) + ": " + path(file) +
                                ": file too short; install libsimgrid-dev\n");
  }
  write("bin/librehearse_openblas.so", "cut off");
  const Outcome outcome = shell(program() + by_host);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.text.find("install libopenblas-dev\n"), std::string::npos) << outcome.text;
}

}  // namespace
}  // namespace rehearse::modules_test
