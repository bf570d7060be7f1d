// SPDX-License-Identifier: Apache-2.0
// wide_scene.hpp - pictures of scenes that are larger than the world that one grid holds, from a .quarry file.
//
//   .quarry ─► one pass: bounds ─► they fit a world when moved: drawn so
//                             └──► else two worlds, one in the other:
//        far    all of it, halved until it fits, from a file that is made for it and goes with it
//        near   as it is, what is around the eye and as large as a world; the far one leaves that out
//   picture = near over far: a ray that leaves the near world goes on in the far one
//
// Both are drawn in parts (engine/home/world_pages.hpp), so memory does not grow with the scene. What is not there:
// light does not go from one world to the other, so shadows and reflections end where the near one does.
#pragma once

#include <filesystem>
#include <glm/vec3.hpp>
#include <memory>
#include <optional>
#include <utility>

#include "base/progress.hpp"
#include "engine/home/drawn_world.hpp"
#include "engine/render/ray_marcher.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry::app {

// Where a world that is drawn lies in its scene: a voxel of it is 2^halved of the scene's.
struct DrawnPlace {
  Int3 origin{};  // in voxels of the world
  uint32_t halved = 0;
  glm::dvec3 of_scene(const glm::dvec3& point) const;
  double length_of_scene(double voxels) const { return voxels / double(uint64_t(1) << halved); }
};

class WideScene {
 public:
  // None: it is no .quarry file, or what is visible of it fits the world as it is. Reads what must be known of the
  // file: nothing but its directory if that tells. Errors: those of StoreReader; cancelled.
  static Result<std::optional<WideScene>> of(const std::filesystem::path& file, const Progress& progress);

  const Scene& scene() const { return scene_; }  // without bricks
  const Box3& bounds() const { return bounds_; }
  uint64_t voxels() const { return voxels_; }  // of all visible instances
  uint64_t bricks() const { return bricks_; }
  uint32_t halved() const { return halved_; }  // how often, for the far world; 0: one world shows all of it

  // Makes the far world's file in a folder beside `beside`, which goes with this object. Blocks: it reads and writes
  // the scene region by region in `memory_bytes`. Call it once, if halved() is not 0. Errors: those of `quarry
  // convert`.
  Result<void> make_far(const std::filesystem::path& beside, uint64_t memory_bytes, const Progress& progress);
  const std::filesystem::path& far_file() const { return far_file_; }

  // What the near world shows where the eye is; none: nothing of the scene is near.
  std::optional<Box3> near(const glm::dvec3& eye) const;
  engine::SceneWindow near_window(const Box3& near) const;
  // The world that shows all of the scene, or the far one, without what the near one shows.
  engine::SceneWindow far_window(const std::optional<Box3>& near) const;
  DrawnPlace place_of(const engine::SceneWindow& window, bool far) const;

 private:
  // A temporary one, locked as long as it is there. Ends with what is in it.
  struct Folder {
    Folder(std::filesystem::path path_in, int lock_in) : path(std::move(path_in)), lock(lock_in) {}
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    ~Folder();
    std::filesystem::path path;
    int lock;
  };
  explicit WideScene(std::filesystem::path file) : file_(std::move(file)) {}

  std::filesystem::path file_, far_file_;
  std::unique_ptr<Folder> folder_;  // of the far file
  Scene scene_;
  Box3 bounds_;
  uint64_t voxels_ = 0, bricks_ = 0;
  uint32_t halved_ = 0;
};

// `near`, which was drawn without a background, over `far`, of the same size.
engine::Picture over(const engine::Picture& near, const engine::Picture& far);

}  // namespace quarry::app
