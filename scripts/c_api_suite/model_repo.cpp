// Stands for the helper of the tests that makes their model: copies one that scripts/c-api-suite made before.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "test_model_repo.hpp"

#include "openvino/c/openvino.h"

ov::Version ov::get_openvino_version() {
    ov_version_t version{};
    ov_get_openvino_version(&version);
    return {version.buildNumber, version.description};
}

namespace TestDataHelpers {
const std::string model_bin_name = "test_model.bin";
const std::string model_xml_name = "test_model.xml";
const std::string model_exported_name = "test_exported_model.blob";

void generate_test_model() {
    const std::filesystem::path folder = std::getenv("C_API_SUITE_MODEL");
    const auto over = std::filesystem::copy_options::overwrite_existing;
    std::filesystem::copy_file(folder / "model.xml", model_xml_name, over);
    std::filesystem::copy_file(folder / "model.bin", model_bin_name, over);
}

std::string generate_test_xml_file() {
    std::ofstream("plugin_test.xml")
        << "<ie><plugins><plugin name=\"CUSTOM\" location=\"libmock_engine.so\"/></plugins></ie>\n";
    return "plugin_test.xml";
}
}  // namespace TestDataHelpers
