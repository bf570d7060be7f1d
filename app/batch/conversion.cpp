// SPDX-License-Identifier: Apache-2.0
// conversion.cpp - carries out a job: region by region if asked for, else by parts in memory. Then come levels of
// detail, and the losses of each format.
#include "app/batch/conversion.hpp"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <deque>
#include <future>
#include <new>
#include <optional>
#include <set>

#include "app/batch/tasks.hpp"
#include "app/console/output_file.hpp"
#include "app/console/terminal.hpp"
#include "voxel/io/files/names.hpp"
#include "voxel/io/files/temporary_name.hpp"
#include "voxel/io/meshes/write.hpp"
#include "voxel/io/pictures/write.hpp"
#include "voxel/io/quarry/codec.hpp"
#include "voxel/io/quarry/reader.hpp"
#include "voxel/io/quarry/visible_regions.hpp"
#include "voxel/io/quarry/writer.hpp"
#include "voxel/operations/regions/make_by_regions.hpp"
#include "voxel/operations/whole_scene.hpp"
#include "voxel/worlds/source_units.hpp"

namespace quarry::app {
namespace {
namespace fs = std::filesystem;

// Returns a part's name in a form that fits into a file name.
std::string file_part(std::string name) {
  for (char& c : name)
    if (static_cast<unsigned char>(c) < 32 || c == '/' || c == '\\' || c == ':' || c == 127) c = '_';
  if (name.starts_with('.')) name[0] = '_';
  if (name.size() > 120) name.resize(120);
  return name;
}

bool is_world(const io::Format& format) { return format.kind == io::FormatKind::world; }

// Adds the loss that a reader reports for colours it had to give up. A world reports it for the file that it was made
// from: that loss is an old one.
void palette_loss(const Scene& scene, std::vector<io::ExportLoss>& losses) {
  const auto distinct = scene.metadata.find("palette_distinct"), rms = scene.metadata.find("palette_rms_error");
  if (distinct == scene.metadata.end()) return;
  uint64_t count = 0;
  std::from_chars(distinct->second.data(), distinct->second.data() + distinct->second.size(), count);
  if (count > 255)
    losses.push_back({"palette", count - 255,
                      fmt::format("{} colours became 255 (off by {} of 255 on average)", count,
                                  rms == scene.metadata.end() ? "?" : rms->second)});
}

uint64_t size_of(const fs::path& file) {
  std::error_code error;
  if (!fs::is_directory(file, error)) {
    const uintmax_t size = fs::file_size(file, error);
    return error ? 0 : size;
  }
  uint64_t sum = 0;
  for (const auto& entry : fs::directory_iterator(file, error)) sum += entry.file_size(error);
  return sum;
}

// A picture other than that of the format's own row.
Result<void> write_picture(const io::VisibleRegions& voxels, const io::Destination& to, PictureKind picture,
                           const Progress& progress) {
  return picture == PictureKind::height ? io::write_height_map(voxels, to, progress)
                                        : io::write_slices(voxels, to, progress);
}

// The format of an output; slices have a folder's name.
Result<const io::Format*> format_of(const fs::path& file, const ConversionOptions& options) {
  return io::format_for_writing(options.picture == PictureKind::slices ? fs::path(file) += ".png" : file);
}

// That of a job's outputs. Before the work no part has a name, but all have the same format.
Result<const io::Format*> format_of(const ConversionJob& job, const ConversionOptions& options) {
  QRY_TRY_ASSIGN(const auto file, job.file(options.steps.splits() ? "part" : ""));
  return format_of(file, options);
}

Result<void> write(const Scene& scene, const io::Destination& to, PictureKind picture, const Progress& progress) {
  if (picture == PictureKind::top) return io::write_scene(scene, to, progress);
  const auto voxels = io::VisibleRegions::of(scene, progress);
  auto written = voxels ? write_picture(*voxels, to, picture, progress) : tl::unexpected<Error>(voxels.error());
  return written.map_error([&](const Error& e) { return Error{e.code, shown(to.file) + ": " + e.message}; });
}

// Adds one part's losses and their counts to those of the parts before it.
void add_losses(std::vector<io::ExportLoss>& all, std::vector<io::ExportLoss> more, bool several) {
  for (io::ExportLoss& loss : more) {
    const auto same =
        std::ranges::find_if(all, [&](const io::ExportLoss& l) { return std::string_view(l.kind) == loss.kind; });
    if (same == all.end()) {
      all.push_back(std::move(loss));
    } else if (several) {
      same->count += loss.count;
      same->text = fmt::format("{} {} in several parts", same->count, std::string(loss.kind));
      std::ranges::replace(same->text, '_', ' ');
    }
  }
}

// "castle.glb" -> "castle_lod2.glb"
fs::path lod_file(const fs::path& file, int64_t level) {
  fs::path out = file;
  out.replace_extension();
  out += fmt::format("_lod{}", level);
  return out += file.extension();
}

// The mesh of a coarser level has the same size as the finest one, in the same units.
void keep_mesh_size(Scene& coarse, const std::optional<SourceUnits>& units, int64_t level) {
  coarse.metadata[io::kMeshScaleKey] = fmt::format("{}", int64_t(1) << level);
  if (units) set_source_units(coarse, *units);
}

// The next coarser level.
Result<Scene> coarser(const Scene& scene, bool mesh, int64_t level) {
  auto half = shrink(scene, 2);
  if (half && mesh) keep_mesh_size(*half, source_units(scene), level);
  return half;
}

io::Destination destination(const fs::path& file, const ConversionOptions& options) {
  io::Destination to(file, options.overwrite, options.deferred_sync);
  to.same_is_fine = options.same_is_fine;
  return to;
}

Result<void> check_free(const fs::path& file, const ConversionJob& job, const ConversionOptions& options,
                        OutputNames& names, Conversion& done) {
  std::error_code error;
  const bool may_exist = options.overwrite || options.same_is_fine;
  QRY_TRY(check_output(file, may_exist && options.picture != PictureKind::slices));
  const fs::path sidecar = io::sidecar_of(file);
  for (const Input& input : job.inputs)
    if (fs::equivalent(input.file, file, error) || (!sidecar.empty() && fs::equivalent(input.file, sidecar, error)))
      return fail(ErrorCode::conflict, shown(input.file) + ": input and output are the same file");
  if (!names.take(file, job))
    return fail(ErrorCode::conflict, shown(file) + ": another input or part of this run has this name already");
  if (!options.overwrite && fs::exists(file, error)) return {};  // it stays, with all beside it
  if (std::string sidecars = replaced_sidecars(file); !sidecars.empty()) done.warnings.push_back(std::move(sidecars));
  return {};
}

// With --strict, returns an error if there is any warning or loss.
Result<void> check_strict(const ConversionOptions& options, const Conversion& done) {
  if (!options.strict || (done.warnings.empty() && done.losses.empty())) return {};
  std::vector<std::string> all = done.warnings;
  for (const io::ExportLoss& loss : done.losses) all.push_back(loss.text);
  return fail(ErrorCode::invalid_argument,
              fmt::format("--strict: not written, for it would lose: {}", fmt::join(all, "; ")));
}

// What salvage could not bring back of an input.
void add_salvage_losses(const io::Salvage& salvage, Conversion& done) {
  std::vector<io::ExportLoss> lost;
  for (const io::SalvageLoss& loss : salvage.losses())
    lost.push_back({loss.kind, loss.count, fmt::format("{} {} (the file is damaged)", loss.count, loss.text)});
  done.salvaged = done.salvaged || !lost.empty();
  add_losses(done.losses, std::move(lost), true);
}

// A temporary name in the folder of `file` for an intermediate world. The destructor removes the file.
class PassingWorld {
 public:
  PassingWorld(const fs::path& file, const char* what) : to_(io::temporary_name(file, what), false, &never_) {}
  PassingWorld(const PassingWorld&) = delete;
  PassingWorld& operator=(const PassingWorld&) = delete;
  ~PassingWorld() { forget(); }
  // Programs that have the file open can still read it.
  void forget() const {
    std::error_code error;
    fs::remove(to_.file, error);
  }
  const fs::path& path() const { return to_.file; }
  const io::Destination& to() const { return to_; }

 private:
  io::DeferredSync never_;  // nobody settles it: a temporary file need not be synced
  io::Destination to_;
};

// The bricks of a world file.
BrickSource source_of(io::StoreReader& store, const Progress& progress) {
  Progress quiet;
  quiet.cancel = progress.cancel;
  return {[&store](uint32_t volume, const Box3& bricks) { return store.count_bricks(volume, chunks_of(bricks)); },
          [&store, quiet](uint32_t volume, const Box3& bricks, BrickMap& into) {
            return store.read(volume, chunks_of(bricks), into, quiet);
          }};
}

std::vector<Box3> bounds_of(const std::vector<VolumeSummary>& volumes) {
  std::vector<Box3> bounds;
  bounds.reserve(volumes.size());
  for (const VolumeSummary& v : volumes) bounds.push_back(v.bounds);
  return bounds;
}

// The same of a file and its coarser levels.
Result<void> check_levels_free(const fs::path& file, const ConversionJob& job, const ConversionOptions& options,
                               OutputNames& names, Conversion& done) {
  QRY_TRY(check_free(file, job, options, names, done));
  for (int64_t level = 1; level <= options.lod_levels; ++level)
    QRY_TRY(check_free(lod_file(file, level), job, options, names, done));
  return {};
}

// The file of what is not split. Checked before the work, and again by the writer after it.
Result<fs::path> file_of_whole(const ConversionJob& job, const ConversionOptions& options, OutputNames& names,
                               Conversion& done) {
  QRY_TRY_ASSIGN(auto file, job.file());
  if (!options.steps.splits()) QRY_TRY(check_levels_free(file, job, options, names, done));
  return file;
}

// The files of all parts, those of a split free.
template <class Part>
Result<std::vector<fs::path>> files_of(const std::vector<Part>& parts, const ConversionJob& job,
                                       const ConversionOptions& options, OutputNames& names, Conversion& done) {
  std::vector<fs::path> files;
  std::set<std::string> part_names;
  for (const Part& part : parts) {
    if (!options.steps.splits()) {
      QRY_TRY_ASSIGN(files.emplace_back(), job.file());
      continue;
    }
    const std::string name = file_part(part.name);
    std::string distinct = name;
    for (size_t n = 2; !part_names.insert(distinct).second; ++n) distinct = fmt::format("{}-{}", name, n);
    QRY_TRY_ASSIGN(files.emplace_back(), job.file(distinct));
    QRY_TRY(check_levels_free(files.back(), job, options, names, done));
  }
  if (files.empty())
    return fail(ErrorCode::invalid_argument, "--split: there is no voxel in it, so there are no parts");
  return files;
}

// One conversion region by region. The inputs' bricks are in world files then: the inputs themselves, the output, or
// temporary ones. From there steps, and levels of detail, make the bricks of other worlds; formats that are not worlds
// are written from those layer by layer.
class RegionConversion {
 public:
  RegionConversion(const ConversionJob& job, const ConversionOptions& options, OutputNames& names, const fs::path& file,
                   const Progress& progress, Conversion& done)
      : job_(job), options_(options), names_(names), file_(file), progress_(progress), done_(done) {
    quiet_.cancel = progress.cancel;
  }

  Result<void> run() {
    QRY_TRY_ASSIGN(to_, format_of(job_, options_));
    const bool steps = !options_.steps.empty(), levels = options_.lod_levels > 0;
    const bool into_output = is_world(*to_) && !steps;
    for (const Input& input : job_.inputs) QRY_TRY(read(input.file, into_output));
    if (into_output) add_output(file_, true);
    if (into_output && !levels) return {};
    SceneSteps::Losses step_losses;
    QRY_TRY_ASSIGN(auto changed,
                   options_.steps.apply_by_regions(std::move(parts_), step_losses, pass(), progress_.cancel));
    for (const std::string& text : step_losses) done_.losses.push_back({"palette", 1, text});
    QRY_TRY_ASSIGN(const auto files, files_of(changed, job_, options_, names_, done_));
    QRY_TRY(check_losses(changed));
    for (size_t i = 0; i < files.size(); ++i) {
      if (!into_output) QRY_TRY(write_level(files[i], true, steps ? &changed[i].scene : nullptr));
      if (steps && i + 1 == files.size()) {  // the inputs' bricks need no room on disk any more
        changed.clear();
        inputs_.clear();
      }
      for (int64_t level = 1; level <= options_.lod_levels; ++level) {
        // Of what was written last.
        SceneByRegions scene(head_, bounds_of(volumes_), source_of(*store_, progress_));
        const auto units = source_units(scene.scene());
        QRY_TRY(scene.shrink(2));
        if (to_->kind == io::FormatKind::mesh) keep_mesh_size(scene.scene(), units, level);
        QRY_TRY(write_level(lod_file(files[i], level), false, &scene));
      }
    }
    return {};
  }

 private:
  uint64_t available_bytes() const {
    malloc_trim(0);
    return options_.budget->available_bytes();
  }
  SceneByRegions::Pass pass() const {
    return pass_by_regions([this] { return available_bytes(); }, quiet_);
  }
  Result<void> write_into(const Scene& scene, const io::Destination& world) {
    writer_.reset();
    QRY_TRY_ASSIGN(auto made, io::StoreWriter::create(scene, world, quiet_));
    writer_.emplace(std::move(made));
    return {};
  }
  Result<void> take(uint32_t volume, BrickMap&& bricks) {
    const BrickMap taken = std::move(bricks);
    // Counted beside it: parts of the writing are one thread's, who leaves the others nothing to do.
    auto counted = std::async(std::launch::async, [&] { volumes_[volume].add(taken); });
    auto written = writer_ ? writer_->append(volume, taken) : Result<void>();
    counted.get();
    // Memory that regions leave behind in the allocator must not add up.
    if (memory_in_use() > options_.budget->limit_bytes() / 4 * 3) malloc_trim(0);
    return written;
  }
  Result<void> commit() {
    if (writer_) QRY_TRY(writer_->commit());
    writer_.reset();
    return {};
  }
  void add_output(const fs::path& file, bool finest) {
    if (finest)
      for (const Instance& instance : head_.instances) done_.voxels += volumes_[instance.volume].voxels;
    done_.outputs.push_back(file);
    done_.bytes += size_of(file);
  }

  // A part for an input, whose bricks go into the output, or, unless they are in a sound world already, into a
  // temporary one.
  Result<void> read(const fs::path& input, bool into_output) {
    QRY_TRY_ASSIGN(const auto from, io::format_for_reading(input));
    std::vector<std::string> warnings;
    io::ReadOptions read = options_.load.read_options();
    read.budget = options_.budget;
    read.accessed_files = &done_.accessed_files;
    read.warnings = &warnings;
    read.progress = progress_;
    io::Salvage salvage;
    if (options_.salvage) read.salvage = &salvage;
    const bool sound_world = is_world(*from) && !options_.salvage;
    const PassingWorld passing(file_, "regions");
    std::optional<Error> refused;  // it is not the input that is wrong then
    RegionSink sink;
    sink.beside = file_;
    sink.available_bytes = [this] { return available_bytes(); };
    sink.begin = [&](const Scene& scene) -> Result<void> {
      add_salvage_losses(salvage, done_);
      if (!is_world(*from)) palette_loss(scene, done_.losses);
      head_ = scene;
      volumes_.assign(scene.volumes.size(), {});
      take_warnings(input, warnings);
      // What is lost of damaged files is told together with all else.
      if (auto kept = check_strict(options_, done_); !kept && (into_output || !options_.salvage)) {
        refused = kept.error();
        return kept;
      }
      if (sound_world && !into_output) return {};
      return write_into(scene, into_output ? destination(file_, options_) : passing.to());
    };
    sink.take = [this](uint32_t volume, BrickMap&& bricks) { return take(volume, std::move(bricks)); };
    const auto read_all = io::read_scene_regions(input, read, sink);
    take_warnings(input, warnings);
    if (refused) return tl::unexpected(*refused);
    if (!read_all)
      return tl::unexpected<Error>(options_.salvage ? read_all.error() : with_salvage_hint(input, read_all.error()));
    done_.regions = std::max(done_.regions, read_all->regions);
    QRY_TRY(commit());
    QRY_TRY_ASSIGN(auto store, io::StoreReader::open(into_output ? file_ : sound_world ? input : passing.path()));
    inputs_.push_back(std::move(store));
    store_ = &inputs_.back();
    parts_.push_back({"", SceneByRegions(head_, bounds_of(volumes_), source_of(*store_, progress_))});
    return {};
  }
  void take_warnings(const fs::path& input, std::vector<std::string>& warnings) {
    for (std::string& text : warnings)
      done_.warnings.push_back(job_.inputs.size() > 1 ? shown(input) + ": " + text : std::move(text));
    warnings.clear();
  }

  // With --strict nothing is written of several parts if one of them would lose something. What a single one loses is
  // known before it is written.
  Result<void> check_losses(std::vector<PartByRegions>& parts) {
    const bool known_later = options_.salvage && !is_world(*to_);
    if (!known_later) QRY_TRY(check_strict(options_, done_));
    if (!options_.strict || parts.size() == 1 || is_world(*to_)) return {};
    for (PartByRegions& part : parts) {
      QRY_TRY_ASSIGN(const auto volumes, part.scene.summaries(pass()));
      add_losses(done_.losses, io::export_losses(part.scene.scene(), volumes, *to_), true);
    }
    return check_strict(options_, done_);
  }

  // A file that is no world, of what was written last. Returns in how many regions.
  Result<uint64_t> write_foreign(const fs::path& file, const io::Destination& target) {
    const auto room = [this] { return available_bytes(); };
    const auto named = [](const fs::path& name, const Error& e) {
      return fail(e.code, shown(name) + ": " + e.message);
    };
    if (to_->write_volumes) {
      const auto done = to_->write_volumes(*store_, volumes_, room, target, progress_);
      if (!done) return named(file, done.error());
      return done->regions;
    }
    const auto visible = io::VisibleRegions::of(*store_, bounds_of(volumes_), room, progress_);
    if (!visible) return named(job_.inputs[0].file, visible.error());
    const auto done = options_.picture == PictureKind::top
                          ? to_->write_regions(*visible, target, progress_)
                          : write_picture(*visible, target, options_.picture, progress_);
    if (!done) return named(file, done.error());
    return visible->read_regions();
  }

  // Writes one file of what the scene makes of the input's bricks; null: of the input as it is.
  Result<void> write_level(const fs::path& file, bool finest, const SceneByRegions* scene) {
    const io::Destination target = destination(file, options_);
    if (scene) {
      const PassingWorld changed(file, "steps");
      head_ = scene->scene();
      volumes_.assign(head_.volumes.size(), {});
      QRY_TRY(write_into(head_, is_world(*to_) ? target : changed.to()));
      QRY_TRY_ASSIGN(const uint64_t made,
                     make_by_regions(
                         *scene, [this] { return available_bytes(); }, progress_,
                         [this](uint32_t v, BrickMap&& bricks) { return take(v, std::move(bricks)); }));
      done_.regions = std::max(done_.regions, made);
      QRY_TRY(commit());
      QRY_TRY_ASSIGN(written_, io::StoreReader::open(is_world(*to_) ? file : changed.path()));
      store_ = &*written_;
    }
    if (!is_world(*to_)) {
      if (finest) {
        add_losses(done_.losses, io::export_losses(head_, volumes_, *to_), options_.steps.splits());
        QRY_TRY(check_strict(options_, done_));
      }
      QRY_TRY_ASSIGN(const uint64_t regions, write_foreign(file, target));
      done_.regions = std::max(done_.regions, regions);
    }
    add_output(file, finest);
    return {};
  }

  const ConversionJob& job_;
  const ConversionOptions& options_;
  OutputNames& names_;
  const fs::path& file_;
  const Progress& progress_;
  Conversion& done_;
  const io::Format* to_ = nullptr;
  Progress quiet_;  // writing shows no stage of its own
  std::deque<io::StoreReader> inputs_;
  std::vector<PartByRegions> parts_;  // as the inputs have them
  std::optional<io::StoreReader> written_;
  std::optional<io::StoreWriter> writer_;
  // What was read or written last.
  io::StoreReader* store_ = nullptr;
  Scene head_;
  std::vector<VolumeSummary> volumes_;
};

Result<void> convert_regions(const ConversionJob& job, const ConversionOptions& options, OutputNames& names,
                             const Progress& progress, Conversion& done) {
  QRY_TRY_ASSIGN(const auto file, file_of_whole(job, options, names, done));
  QRY_TRY(RegionConversion(job, options, names, file, progress, done).run());
  if (done.regions == 1) done.regions = 0;  // one region is the whole
  return {};
}

Result<void> convert_parts(const ConversionJob& job, const ConversionOptions& options, OutputNames& names,
                           const Progress& progress, Conversion& done) {
  QRY_TRY(file_of_whole(job, options, names, done));

  std::vector<ScenePart> parts;
  for (const Input& input : job.inputs) {
    io::ReadOptions read = options.load.read_options();
    read.budget = options.budget;
    read.accessed_files = &done.accessed_files;
    std::vector<std::string> warnings;
    read.warnings = &warnings;
    read.progress = progress;
    io::Salvage salvage;
    if (options.salvage) read.salvage = &salvage;
    auto scene = io::read_scene(input.file, read);
    for (std::string& warning : warnings)
      done.warnings.push_back(job.inputs.size() > 1 ? shown(input.file) + ": " + warning : std::move(warning));
    if (!scene)
      return tl::unexpected<Error>(options.salvage ? scene.error() : with_salvage_hint(input.file, scene.error()));
    add_salvage_losses(salvage, done);
    if (const auto from = io::format_for_reading(input.file); from && !is_world(**from))
      palette_loss(*scene, done.losses);
    parts.push_back({"", std::move(*scene)});
  }
  SceneSteps::Losses step_losses;
  QRY_TRY_ASSIGN(auto changed, options.steps.apply(std::move(parts), step_losses, progress.cancel));
  for (const std::string& text : step_losses) done.losses.push_back({"palette", 1, text});
  QRY_TRY_ASSIGN(const auto files, files_of(changed, job, options, names, done));
  for (size_t i = 0; i < changed.size(); ++i) {
    QRY_TRY_ASSIGN(const auto format, format_of(files[i], options));
    add_losses(done.losses, io::export_losses(changed[i].scene, *format), changed.size() > 1);
  }
  QRY_TRY(check_strict(options, done));
  for (size_t i = 0; i < changed.size(); ++i) {
    Scene& scene = changed[i].scene;
    QRY_TRY(write(scene, destination(files[i], options), options.picture, progress));
    done.outputs.push_back(files[i]);
    for (const Instance& instance : scene.instances)
      if (instance.volume < scene.volumes.size()) done.voxels += scene.volumes[instance.volume].bricks.voxel_count();
    done.bytes += size_of(files[i]);
    const auto format = io::format_for_writing(files[i]);
    const bool mesh = format && (*format)->kind == io::FormatKind::mesh;
    for (int64_t level = 1; level <= options.lod_levels; ++level) {
      QRY_TRY_ASSIGN(auto half, coarser(scene, mesh, level));
      scene = std::move(half);
      const fs::path file = lod_file(files[i], level);
      QRY_TRY(write(scene, destination(file, options), options.picture, progress));
      done.outputs.push_back(file);
      done.bytes += size_of(file);
    }
    scene = {};
  }
  return {};
}

}  // namespace

Result<fs::path> ConversionJob::file(const std::string& part) const {
  if (!is_template(output) && part.empty()) return fs::path(output);
  TemplateValues with_part = values;
  with_part.part = part;
  auto file = is_template(output) ? fill_template(output, with_part) : Result<fs::path>(fs::path(output));
  if (file && !part.empty() && output.find("{part}") == std::string::npos) {
    const fs::path extension = file->extension();
    file->replace_extension();
    *file += "-" + part;
    *file += extension;
  }
  return file;
}

std::string why_whole(const ConversionJob& job, const ConversionOptions& options) {
  const auto to = format_of(job, options);
  if (!to) return to.error().message;
  const auto all = [](const auto& can) {
    std::vector<std::string> names;
    for (const io::Format& format : io::formats())
      if (can(format)) names.push_back(fmt::format(".{}", format.extensions.front()));
    return fmt::format("{}", fmt::join(names, ", "));
  };
  const auto writes = [](const io::Format& format) {
    return is_world(format) || format.write_regions || format.write_volumes;
  };
  const auto reads = [](const io::Format& format) { return format.read_regions != nullptr; };
  const auto salvages = [](const io::Format& format) { return format.salvages_regions; };
  if (!writes(**to))
    return fmt::format("{} files are written from the whole scene ({} are not)", (*to)->title, all(writes));
  for (const Input& input : job.inputs) {
    const auto from = io::format_for_reading(input.file);
    if (!from) return from.error().message;
    if (!reads(**from)) return fmt::format("{} files are read as a whole ({} are not)", (*from)->title, all(reads));
    if (options.salvage && (*from)->salvages && !(*from)->salvages_regions)
      return fmt::format("--salvage reads {} files as a whole ({} are not)", (*from)->title, all(salvages));
  }
  return {};
}

Result<void> convert(const ConversionJob& job, const ConversionOptions& options, OutputNames& names,
                     const Progress& progress, Conversion& done) {
  const auto start = std::chrono::steady_clock::now();
  Result<void> result;
  try {
    result = options.in_regions ? convert_regions(job, options, names, progress, done)
                                : convert_parts(job, options, names, progress, done);
  } catch (const std::bad_alloc&) {
    result =
        fail(ErrorCode::out_of_memory,
             shown(job.inputs[0].file) + ": out of memory; try a smaller --resolution, or a part of it with --crop");
  }
  done.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace quarry::app
