# find_package(carafe) gives one target, carafe::carafe: the headers that extensions and plugins are built with. A library of
# them links to nothing of the engine; the engine hands it what it needs.
#
#   find_package(carafe 0.1 REQUIRED)
#   add_library(mine MODULE mine.cpp)
#   target_link_libraries(mine PRIVATE carafe::carafe)
#
#   cmake -S . -B build -DCMAKE_PREFIX_PATH=<the repository, or where it was installed>

if(NOT TARGET carafe::carafe)
  # Beside include/ in the repository, three folders below it when installed.
  find_path(carafe_INCLUDE_DIR carafe.h
    PATHS "${CMAKE_CURRENT_LIST_DIR}/../include" "${CMAKE_CURRENT_LIST_DIR}/../../../include"
    NO_DEFAULT_PATH NO_CACHE)
  if(NOT carafe_INCLUDE_DIR)
    set(carafe_FOUND FALSE)
    set(carafe_NOT_FOUND_MESSAGE "carafe.h is not in the include folder beside ${CMAKE_CURRENT_LIST_DIR}")
    return()
  endif()
  add_library(carafe::carafe INTERFACE IMPORTED)
  set_target_properties(carafe::carafe PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${carafe_INCLUDE_DIR}")
  get_property(carafe_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if("C" IN_LIST carafe_languages)
    set_property(TARGET carafe::carafe APPEND PROPERTY INTERFACE_COMPILE_FEATURES c_std_11)
  endif()
  if("CXX" IN_LIST carafe_languages)
    set_property(TARGET carafe::carafe APPEND PROPERTY INTERFACE_COMPILE_FEATURES cxx_std_17)
  endif()
endif()
