// What the tests of OpenVINO's C API take from its C++ libraries, in a few lines, so that they build without them.
#pragma once
#include <array>
#include <codecvt>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <limits>
#include <locale>
#include <map>
#include <mutex>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#define OV_BUILD_POSTFIX ""

namespace ov {
struct Version {
    const char* buildNumber;
    const char* description;
};
// The C++ library's own answer is out of reach; that of the C library stands for it.
Version get_openvino_version();
}  // namespace ov
namespace ov::util {
inline std::filesystem::path library_extension() { return ".so"; }
inline std::string wstring_to_string(const std::wstring& w) {
    return std::wstring_convert<std::codecvt_utf8<wchar_t>>().to_bytes(w);
}
inline std::wstring string_to_wstring(const std::string& s) {
    return std::wstring_convert<std::codecvt_utf8<wchar_t>>().from_bytes(s);
}
// The extension to load, which must be one of the library that is tested.
template <class C>
std::string make_plugin_library_name(const std::string&, const std::string&) {
    const char* file = std::getenv("C_API_SUITE_EXTENSION");
    return file ? file : "no-extension";
}
// The log of the C++ library: out of reach for a library of C.
enum class LOG_TYPE { _LOG_TYPE_INFO };
class LogHelper {
public:
    LogHelper(LOG_TYPE, const char*, int) {}
    std::ostream& stream() { return text; }

private:
    std::ostringstream text;
};
}  // namespace ov::util
namespace ov::test::utils {
inline std::string getExecutableDirectory() { return std::filesystem::read_symlink("/proc/self/exe").parent_path(); }
template <class C>
struct FileTraits {
    static constexpr char file_separator = '/';
    static std::string library_prefix() { return "lib"; }
};
}  // namespace ov::test::utils
