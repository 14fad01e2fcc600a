#include <cstdio>

#include "forksight/trace/format.hpp"
#include "forksight/version.hpp"

int main() { std::printf("forksight %s, trace version %u\n", FORKSIGHT_VERSION, forksight::trace::kVersion); }
