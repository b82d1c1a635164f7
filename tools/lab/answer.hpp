// What the lab's page asks of the simulator, and what it is told: JSON in, JSON out, no state
// between two questions. The page calls it in WebAssembly, the tests natively.
#pragma once

#include <string>
#include <string_view>

namespace rehearse {

/// {"ask": …}, one of
///   lessons                       every lesson's name, number, title and topic
///   lesson  name                  its idea, question and controls
///   picture name, set             its scenario, changed: the figures of a step and its picture
///   guess   name, guess           whether the guess can be read
///   reveal  name, set, guess      the answer, how good the guess is, and the text
///   point   name, set, at         the answer at a value of the curve's axis
///   curve   name, set, points     the curve, of points as `point` told them; null: not yet
///   run     toml                  any scenario: as `picture`
/// `set` is a list of "key=value". What the user did wrong comes back as {"errors": [{"text",
/// "line", "column"}]}, where the texts are the command line's own.
std::string lab_answer(std::string_view request);

}  // namespace rehearse
