#include "collect/module_map.hpp"

#include <algorithm>

namespace forksight::collect {

namespace {

bool overlaps(const symbols::Module& one, const symbols::Module& other) {
  return one.start < other.end && other.start < one.end;
}

bool is_same(const symbols::Module& one, const symbols::Module& other) {
  return one.start == other.start && one.end == other.end && one.bias == other.bias && one.path == other.path;
}

}  // namespace

std::string Image::find_path(std::uint64_t address) const {
  const auto at = std::ranges::find_if(modules, [&](const auto& m) { return m.start <= address && address < m.end; });
  return at == modules.end() ? std::string() : at->path;
}

std::string Image::find_path_by_bias(std::uint64_t bias) const {
  const auto at = std::ranges::find_if(modules, [&](const auto& m) { return m.bias == bias; });
  return at == modules.end() ? std::string() : at->path;
}

const ImagePtr& ModuleMap::image_of(model::ProcessId process) {
  ImagePtr& image = images_[process];
  if (image == nullptr) image = std::make_shared<Image>();
  return image;
}

void ModuleMap::inherit(model::ProcessId child, model::ProcessId parent) { images_[child] = image_of(parent); }

bool ModuleMap::add(model::ProcessId process, symbols::Module module) {
  ImagePtr image = image_of(process);
  if (std::ranges::any_of(image->modules, [&](const auto& m) { return is_same(m, module); })) return true;
  if (std::ranges::any_of(image->modules, [&](const auto& m) { return overlaps(m, module); })) {
    if (++copies_ > kMaxImages) return false;
    image = std::make_shared<Image>(*image);
    std::erase_if(image->modules, [&](const auto& m) { return overlaps(m, module); });
    images_[process] = image;
  }
  if (image->modules.size() >= kMaxModules) return false;
  image->modules.push_back(std::move(module));
  return true;
}

}  // namespace forksight::collect
