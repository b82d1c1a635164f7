// Where the project and its programs are: REHEARSE_SOURCE_DIR, REHEARSE_BINARY and, with emulated
// devices, REHEARSE_EMULATED_BINARY. Only what includes this depends on the folder it is built in;
// ccache keeps the rest of the tests for every checkout.
#pragma once

#include <rehearse_places.hpp>
