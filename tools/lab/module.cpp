// The door of the WebAssembly module: a question in, an answer out, both JSON.
#include <emscripten/emscripten.h>

#include <string>

#include "tools/lab/answer.hpp"

extern "C" {

/// The answer stays valid until the next question.
EMSCRIPTEN_KEEPALIVE const char* lab_ask(const char* question) {
  static std::string answer;
  answer = rehearse::lab_answer(question);
  return answer.c_str();
}
}
