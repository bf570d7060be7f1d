// SPDX-License-Identifier: Apache-2.0
// nano.cpp - converts grids between NanoVDB files and OpenVDB's trees. The types are named one by one, because
// NanoVDB's calls for any type take minutes and gigabytes to compile.
#include <nanovdb/util/IO.h>
#include <nanovdb/util/NanoToOpenVDB.h>
#include <nanovdb/util/OpenToNanoVDB.h>

#include "voxel/foreign/vdb/grids.hpp"

namespace quarry::vdb {
namespace {

using Handle = nanovdb::GridHandle<nanovdb::HostBuffer>;

// The grid converted to OpenVDB, if it is of type T.
template <class T>
bool take(const Handle& handle, openvdb::GridBase::Ptr* out) {
  const auto* grid = handle.grid<T>();
  if (grid) *out = nanovdb::nanoToOpenVDB(*grid);
  return grid != nullptr;
}

}  // namespace

std::vector<openvdb::GridBase::Ptr> read_nano(const std::filesystem::path& file, std::vector<std::string>& warnings) {
  std::vector<openvdb::GridBase::Ptr> grids;
  for (const Handle& handle : nanovdb::io::readGrids<nanovdb::HostBuffer, std::vector>(file.string())) {
    const auto* head = handle.gridMetaData();
    if (!head || !head->isValid()) throw std::runtime_error("a grid without a sound head");
    openvdb::GridBase::Ptr grid;
    if (take<float>(handle, &grid) || take<nanovdb::Fp8>(handle, &grid) || take<nanovdb::Fp16>(handle, &grid) ||
        take<nanovdb::FpN>(handle, &grid) || take<int32_t>(handle, &grid) || take<nanovdb::Vec3f>(handle, &grid)) {
      grids.push_back(grid);
    } else {
      warnings.push_back(std::string("grid '") + head->shortGridName() + "' of type " +
                         nanovdb::toStr(head->gridType()) +
                         " was not read; NanoVDB grids are read as float, Fp8, Fp16, FpN, Int32 and Vec3f");
    }
  }
  return grids;
}

void write_nano(const openvdb::FloatGrid& density, const openvdb::Vec3SGrid& color, std::ostream& out) {
  std::vector<Handle> handles;
  handles.push_back(nanovdb::openToNanoVDB(density));
  handles.push_back(nanovdb::openToNanoVDB(color));
  nanovdb::io::writeGrids<nanovdb::HostBuffer, std::vector>(out, handles, nanovdb::io::Codec::ZIP);
}

}  // namespace quarry::vdb
