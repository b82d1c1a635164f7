// Starts this command once more under mpirun, a process for each rank, and watches over it:
// whatever goes wrong ends within seconds, in one line, with the exit codes of the command line.
#pragma once

#include <cstddef>
#include <string>

namespace rehearse {

/// False where this process is one of mpirun's already. Else returns when all have ended well;
/// throws ToldElsewhere where they have said why not, DeviceError where they could not.
bool start_under_mpirun(std::size_t processes, const std::string& more_words);

/// What a process of start_under_mpirun says of itself before it leaves.
void tell_launcher(int exit_code);

}  // namespace rehearse
