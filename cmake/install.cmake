# The install rules of the headers for the record format and for the annotations of locks, of the files for fork tests, and
# of the documents. The folders of the command, the shim and the queue have install rules of their own. All exported targets
# together are a CMake package: find_package(forksight) makes forksight::trace, forksight::annotate, forksight::fork_test,
# forksight::program, which is the command, and those of the queue.
include(CMakePackageConfigHelpers)
set(forksight_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/forksight)

set_target_properties(forksight_trace PROPERTIES EXPORT_NAME trace)
target_compile_features(forksight_trace INTERFACE cxx_std_20)
install(DIRECTORY trace/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp" PATTERN "*.def")
install(FILES ${PROJECT_BINARY_DIR}/trace/include/forksight/version.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/forksight)
set_target_properties(forksight_annotate PROPERTIES EXPORT_NAME annotate)
install(DIRECTORY preload/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
# For fork tests of other libraries: a header, and a function for their CMakeLists.txt.
find_package(Threads REQUIRED)
add_library(forksight_fork_test INTERFACE)
set_target_properties(forksight_fork_test PROPERTIES EXPORT_NAME fork_test)
target_include_directories(forksight_fork_test INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(forksight_fork_test INTERFACE Threads::Threads)
install(DIRECTORY repro/harness/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES repro/harness/ForksightForkTest.cmake DESTINATION ${forksight_package_dir})
install(TARGETS forksight_trace forksight_annotate forksight_fork_test EXPORT forksight-targets)
install(EXPORT forksight-targets NAMESPACE forksight:: DESTINATION ${forksight_package_dir})

configure_package_config_file(cmake/forksight-config.cmake.in forksight-config.cmake
  INSTALL_DESTINATION ${forksight_package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(forksight-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/forksight-config.cmake ${PROJECT_BINARY_DIR}/forksight-config-version.cmake
  DESTINATION ${forksight_package_dir})

install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md" PATTERN "*.json")
