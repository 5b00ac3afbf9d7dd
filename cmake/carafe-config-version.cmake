# The version of the engine that the headers belong to; a test holds it against Cargo.toml. Libraries built for one ABI
# (carafe.h, CARAFE_ABI_MAJOR) load into every engine of it, so any version that is not newer will do.
set(PACKAGE_VERSION 0.1.0)
if(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
endif()
