# find_package(OpenVINO): target openvino::runtime::c. There is no C++ library, so asking for its target is an error.
get_filename_component(_carafe_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET openvino::runtime::c)
    add_library(openvino::runtime::c SHARED IMPORTED)
    set_target_properties(openvino::runtime::c PROPERTIES
        IMPORTED_LOCATION "${_carafe_prefix}/lib/libopenvino_c.so"
        INTERFACE_INCLUDE_DIRECTORIES "${_carafe_prefix}/include")
endif()
set(OpenVINO_FOUND TRUE)
set(OpenVINO_Runtime_FOUND TRUE)
