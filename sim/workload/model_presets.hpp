// Models by name: published configs (scenarios/models/*.json, carried inside the binary), the
// GPT family of Megatron's papers, convolutional networks, an MLP.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/workload/workload.hpp"

namespace rehearse {

struct ModelFile {
  std::string_view name;  // "llama-3-8b"
  std::string_view json;
};

/// All of scenarios/models/, by name. Defined in a source that CMake writes from the files.
std::span<const ModelFile> model_files();

/// Every preset's name, in the order of a list for people.
std::vector<std::string> preset_names();

/// Throws InputError with the nearest name.
Workload preset(std::string_view name);

// The networks of sim/workload/cnn_tables.cpp and sim/workload/inception.cpp.
Workload alexnet();
Workload vgg16();
Workload resnet50();
Workload inception_v3();

}  // namespace rehearse
