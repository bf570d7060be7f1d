// convert.cpp - `quarry convert`: one file to one file, or a batch into a directory. Reads and writes by the format registry.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>

#include "app/load.hpp"
#include "app/output_file.hpp"
#include "app/terminal.hpp"
#include "voxel/suggest.hpp"

namespace quarry::app {
namespace {
namespace fs = std::filesystem;

struct Job {
  fs::path input, output;
};

void list_formats() {
  for (const io::Format& format : io::formats())
    fmt::print("{:<10} {:<5} {:<5}  {:<32} .{}\n", format.name, format.read ? "read" : "", format.write ? "write" : "", format.title,
               fmt::join(format.extensions, " ."));
}

// The row that --to names, by format name or extension.
const io::Format* writable_format(const std::string& name) {
  for (const io::Format& format : io::formats())
    if (format.write && (name == format.name || std::ranges::find(format.extensions, name) != format.extensions.end())) return &format;
  return nullptr;
}

struct Written {
  uint64_t voxels = 0, bytes = 0;
  double seconds = 0;
};

Result<Written> convert_one(const Job& job, const LoadOptions& options, bool overwrite) {
  const auto start = std::chrono::steady_clock::now();
  // Checked before the work and, by the writer's rename, still whole or not at all after it.
  if (auto free = check_output(job.output, overwrite); !free) return tl::unexpected<Error>(free.error());
  std::error_code error;
  if (fs::equivalent(job.input, job.output, error))
    return fail(ErrorCode::conflict, shown(job.input) + ": input and output are the same file");
  const auto scene = load_scene(job.input, options);
  if (!scene) return tl::unexpected<Error>(scene.error());
  ProgressLine line(shown(job.output));
  if (auto done = io::write_scene(*scene, job.output, line.progress()); !done) return tl::unexpected<Error>(done.error());
  Written written;
  for (const Instance& instance : scene->instances)
    if (instance.volume < scene->volumes.size()) written.voxels += scene->volumes[instance.volume].bricks.voxel_count();
  written.bytes = fs::file_size(job.output, error);
  written.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return written;
}

}  // namespace

int run_convert(const CommandArguments& words) {
  std::vector<std::string> inputs;
  std::string output, to;
  bool keep_going = false, overwrite = false, list = false, json = false;
  LoadOptions load;
  Arguments arguments("convert", "Turn meshes, .vox and other files into worlds, and back.",
                      "  quarry convert bunny.obj -o bunny.quarry --resolution 512\n  quarry convert castle.vox -o castle.quarry\n"
                      "  quarry convert models/*.vox -o worlds --to quarry --keep-going\n  quarry convert world.quarry -o world.ply\n");
  arguments.texts("input", inputs, "IN...", "Files to read");
  arguments.text("-o,--output", output, "OUT", "File to write, or with --to the directory to write into");
  arguments.text("--to", to, "FORMAT", "Format of the files written into the directory OUT");
  load.add_to(arguments);
  arguments.flag("--keep-going", keep_going, "Go on with the next input when one fails (exit code 3)");
  arguments.flag("--overwrite", overwrite, "Replace outputs that are there");
  arguments.flag("--json", json, "Print one JSON document about what was done");
  arguments.flag("--list-formats", list, "Show the formats there are");
  if (const auto code = arguments.parse(words)) return *code;
  if (list) {
    list_formats();
    return kExitDone;
  }
  if (const auto code = load.check(arguments)) return *code;
  if (inputs.empty()) return arguments.wrong("no input file.");
  if (output.empty()) return arguments.wrong("-o is missing.");

  std::vector<Job> jobs;
  std::error_code error;
  if (to.empty()) {
    if (inputs.size() > 1) return arguments.wrong("several inputs need -o DIRECTORY and --to FORMAT.");
    if (fs::is_directory(output, error)) return arguments.wrong(fmt::format("'{}' is a directory: say --to FORMAT.", output));
    if (const auto format = io::format_for_writing(output); !format) return arguments.wrong(format.error().message + ".");
    jobs.push_back({inputs[0], output});
  } else {
    const io::Format* format = writable_format(to);
    if (!format) {
      std::vector<std::string> known;
      for (const io::Format& row : io::formats())
        if (row.write) known.emplace_back(row.name);
      return arguments.wrong(fmt::format("--to '{}' is none of: {}.{}", to, fmt::join(known, ", "), did_you_mean(to, known)));
    }
    // Two inputs that would become one file are refused before anything is written: the second would silently replace the first.
    std::map<fs::path, std::string> taken;
    for (const std::string& input : inputs) {
      fs::path target = fs::path(output) / fs::path(input).filename();
      target.replace_extension(std::string(".") + format->extensions[0]);
      const auto [at, fresh] = taken.try_emplace(target, input);
      if (!fresh) return arguments.wrong(fmt::format("'{}' and '{}' would both become '{}'.", at->second, input, shown(target)));
      jobs.push_back({input, target});
    }
    fs::create_directories(output, error);
    if (error) {
      say_error(output, "the directory cannot be made: " + error.message());
      return kExitFailed;
    }
  }

  size_t written = 0, failures = 0;
  nlohmann::json report = nlohmann::json::array();
  int last_code = kExitDone;
  for (const Job& job : jobs) {
    const auto done = convert_one(job, load, overwrite);
    if (done) {
      ++written;
      if (!json)
        fmt::print("{} -> {}: {} voxels, {}, {:.2f} s\n", shown(job.input), shown(job.output), with_commas(done->voxels),
                   bytes_text(done->bytes), done->seconds);
      report.push_back({{"input", shown(job.input)}, {"output", shown(job.output)}, {"ok", true}, {"voxels", done->voxels},
                        {"bytes", done->bytes}, {"seconds", done->seconds}});
      continue;
    }
    ++failures;
    last_code = failed(job.input, done.error());
    report.push_back({{"input", shown(job.input)}, {"output", shown(job.output)}, {"ok", false}, {"error", done.error().message}});
    if (last_code == kExitCancelled || !keep_going) break;
  }
  if (json) fmt::print("{}\n", report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  if (last_code == kExitCancelled || failures == 0) return last_code;
  if (jobs.size() > 1) say_error("", fmt::format("{} of {} inputs failed", failures, jobs.size()) +
                                         (written + failures < jobs.size() ? "; stopped there (--keep-going goes on)" : ""));
  return keep_going && written > 0 ? kExitSomeFailed : kExitFailed;
}

}  // namespace quarry::app
