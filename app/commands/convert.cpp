// SPDX-License-Identifier: Apache-2.0
// convert.cpp - `quarry convert`: turns the command line into jobs. Their outputs are known to be distinct before the
// first job begins. inputs.hpp finds the input files, conversion.hpp does a job, batch/tasks.hpp runs the jobs,
// batch/log.hpp
// reports on them, batch/manifest.hpp lists what they did.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "app/batch/conversion.hpp"
#include "app/batch/job_estimate.hpp"
#include "app/batch/log.hpp"
#include "app/batch/manifest.hpp"
#include "app/batch/resume.hpp"
#include "app/batch/shard.hpp"
#include "app/batch/tasks.hpp"
#include "app/console/output_file.hpp"
#include "app/console/terminal.hpp"
#include "base/parallel.hpp"
#include "base/suggest.hpp"
#include "voxel/io/files/names.hpp"

namespace quarry::app {
namespace {
namespace fs = std::filesystem;

struct ConvertArguments {
  std::vector<std::string> inputs;
  std::string output, to, memory, shard, report, manifest, merge_manifest, picture = "top";
  int64_t jobs = 0;
  bool keep_going = false, overwrite = false, dry_run = false, resume = false, json = false, list = false,
       strict = false, slices = false;
  ConversionOptions options;
  uint64_t memory_bytes = 0;
  Shard part;  // of the inputs, as --shard has it
};

void list_formats() {
  for (const io::Format& format : io::formats()) {
    const bool here = format.absent == nullptr;
    fmt::print("{:<10} {:<5} {:<5}  {:<32} .{}\n", format.name, here && format.read ? "read" : "",
               here && format.write ? "write" : "", format.title, fmt::join(format.extensions, " ."));
    if (!here) fmt::print("{:<24}{}\n", "", format.absent);
  }
}

// The extension for the files of --to. Its value is a format's name or one of its extensions; the result is "" if it is
// neither.
std::string extension_of_format(const std::string& name) {
  for (const io::Format& format : io::formats()) {
    if (!format.write) continue;
    if (std::ranges::find(format.extensions, name) != format.extensions.end()) return name;
    if (name == format.name) return format.extensions.front();
  }
  return {};
}

std::string without_placeholders(const std::string& text) {
  std::string out;
  for (const char c : text) out.append(c == '{' || c == '}' ? 2 : 1, c);
  return out;
}

void add_options(Arguments& arguments, ConvertArguments& parsed) {
  arguments.texts("input", parsed.inputs, "IN...",
                  "Files, directories, patterns ('models/**/*.vox'), @LIST with one of these a line");
  arguments.text(
      "-o,--output", parsed.output, "OUT",
      "File to write; with --to the directory; or a template: 'out/{dir}/{stem}.glb', also {ext} {index} {part}");
  arguments.text("--to", parsed.to, "FORMAT", "Format of the files written into the directory OUT");
  arguments.flag("--list-formats", parsed.list, "Show the formats there are");
  arguments.group("Reading");
  parsed.options.load.add_to(arguments, true);
  arguments.flag(
      "--salvage", parsed.options.salvage,
      "Damaged .vox and .quarry: read what is whole and say what is lost (with --strict: write nothing, exit code 3)");
  arguments.group("Steps between reading and writing, done in the order given");
  parsed.options.steps.add_to(arguments);
  arguments.group("Writing");
  arguments.integer("--lod-levels", parsed.options.lod_levels, "N",
                    "Also write OUT_lod1 ... OUT_lodN, each half as fine as the one before (meshes keep their size)", 1,
                    12);
  arguments.flag("--overwrite", parsed.overwrite, "Replace outputs that are there");
  arguments.flag(
      "--strict", parsed.strict,
      "Fail, and write nothing, where a file would lose something or a reader had to skip or mend something");
  arguments.choice("--picture", parsed.picture, "KIND", "PNG: top (colours from above) or height (a height map) (top)",
                   {"top", "height"});
  arguments.flag("--slices", parsed.slices, "Write a folder OUT of PNG pictures, one a layer, the lowest first");
  arguments.group("Batches");
  arguments.integer("-j,--jobs", parsed.jobs, "N",
                    "Threads in all: small files side by side, large ones on several (all cores)", 1, 1024);
  arguments.text(
      "--memory", parsed.memory, "SIZE",
      "Memory for all of it, reading processes too, as 2G or 512M: "
      "files wait for one another, one too large is converted region by region, or refused (three quarters of what "
      "is free)");
  arguments.flag("--keep-going", parsed.keep_going, "Go on with the next input when one fails (exit code 3)");
  arguments.flag("--resume", parsed.resume,
                 "Skip inputs that were converted before, with these options, and "
                 "unchanged with all files that they use; .quarry-resume beside the outputs remembers");
  arguments.text("--shard", parsed.shard, "I/N",
                 "Only the I-th of N parts of the inputs (I from 1): each machine of a cluster its own");
  arguments.text("--manifest", parsed.manifest, "FILE",
                 "Write names, sizes and checksums of all inputs and outputs at the end, as JSON; with --shard the "
                 "shard's part beside it, and all of it when the last part is there");
  arguments.text("--merge-manifest", parsed.merge_manifest, "FILE",
                 "Convert nothing: join the parts that shards wrote for --manifest FILE");
  arguments.flag("--dry-run", parsed.dry_run, "Say what would be written, and write nothing");
  arguments.flag("--json", parsed.json, "Print one JSON document a line: started, finished, failed, skipped, summary");
  arguments.text("--report", parsed.report, "FILE", "Write one JSON document about all files at the end");
}

class ConvertCommand {
 public:
  ConvertCommand(const Arguments& arguments, ConvertArguments& parsed) : arguments_(arguments), parsed_(parsed) {}

  int run() {
    if (!parsed_.merge_manifest.empty()) return merge_manifest();
    if (const auto code = check()) return *code;
    if (const auto code = plan()) return *code;
    return parsed_.dry_run ? say_plan() : do_jobs();
  }

 private:
  // Returns the exit code if the command line makes no sense.
  std::optional<int> check() {
    if (const auto code = parsed_.options.load.check(arguments_)) return code;
    if (const auto code = parsed_.options.steps.check(arguments_)) return code;
    if (parsed_.inputs.empty()) return arguments_.wrong("no input file.");
    if (parsed_.output.empty()) return arguments_.wrong("-o is missing.");
    if (const auto code = arguments_.check_bytes("--memory", parsed_.memory, parsed_.memory_bytes)) return code;
    if (parsed_.memory_bytes == 0) parsed_.memory_bytes = default_memory_limit();
    if (!parsed_.shard.empty()) {
      if (!parse_shard(parsed_.shard, parsed_.part))
        return arguments_.wrong(fmt::format("--shard '{}' is not I/N with I from 1 to N.", parsed_.shard));
      if (parsed_.options.steps.combines())
        return arguments_.wrong(
            "--shard gives each machine some of the inputs, but this command makes one scene of all.");
    }
    ConversionOptions& options = parsed_.options;
    options.overwrite = parsed_.overwrite;
    options.strict = parsed_.strict;
    if (parsed_.slices && options.lod_levels > 0)
      return arguments_.wrong("--lod-levels and --slices do not go together.");
    if (parsed_.slices && parsed_.picture != "top")
      return arguments_.wrong("--slices and --picture height are different pictures: choose one.");
    options.picture = parsed_.slices                ? PictureKind::slices
                      : parsed_.picture == "height" ? PictureKind::height
                                                    : PictureKind::top;
    budget_ = std::make_unique<MemoryBudget>(parsed_.memory_bytes, "--memory");
    options.budget = budget_.get();
    return {};
  }

  // The template of the outputs, from -o and --to.
  std::optional<int> find_output(size_t inputs, std::string& output) {
    const bool one = inputs == 1 || parsed_.options.steps.combines();
    std::error_code error;
    output = parsed_.output;
    if (parsed_.slices && parsed_.to.empty()) {
      if (!one && !is_template(output)) return arguments_.wrong("several inputs need a template: -o 'layers/{stem}'.");
      return {};
    }
    if (parsed_.to.empty()) {
      if (!one && !is_template(output))
        return arguments_.wrong(
            "several inputs need -o DIRECTORY and --to FORMAT, or a template: -o 'out/{stem}.glb'.");
      if (!is_template(output) && fs::is_directory(output, error))
        return arguments_.wrong(fmt::format("'{}' is a directory: say --to FORMAT.", output));
      if (const auto format = io::format_for_writing(output); !format)
        return arguments_.wrong(format.error().message + ".");
      if (parsed_.options.picture == PictureKind::height && fs::path(output).extension() != ".png")
        return arguments_.wrong("--picture height needs an output that ends in .png.");
      return {};
    }
    const std::string extension = parsed_.slices ? std::string() : extension_of_format(parsed_.to);
    if (extension.empty() && !parsed_.slices) {
      std::vector<std::string> known;
      for (const io::Format& row : io::formats())
        if (row.write) known.insert(known.end(), row.extensions.begin(), row.extensions.end());
      return arguments_.wrong(fmt::format("--to '{}' is none of: {}.{}", parsed_.to, fmt::join(known, ", "),
                                          did_you_mean(parsed_.to, known)));
    }
    if (is_template(output))
      return arguments_.wrong("-o is a template, so its ending says the format: leave --to away.");
    if (parsed_.options.picture == PictureKind::height && extension != "png")
      return arguments_.wrong("--picture height needs --to png.");
    output = (fs::path(without_placeholders(output)) / "{dir}" / "{stem}").string() +
             (extension.empty() ? "" : "." + extension);
    return {};
  }

  // Joins the parts of shards, on a machine that has them all.
  int merge_manifest() {
    if (!parsed_.inputs.empty() || !parsed_.output.empty() || !parsed_.shard.empty() || !parsed_.manifest.empty())
      return arguments_.wrong("--merge-manifest only joins parts that are there: give no inputs and no other option.");
    const auto joined = join_manifest(parsed_.merge_manifest);
    if (!joined) {
      say_error("", joined.error());
      return exit_code_of(joined.error());
    }
    if (!joined->missing.empty()) {
      say_error(parsed_.merge_manifest, missing_text(*joined) + "; run those shards");
      return kExitFailed;
    }
    fmt::print("{}: joined from {} parts\n", parsed_.merge_manifest, joined->shards);
    return kExitDone;
  }

  std::optional<int> plan() {
    auto inputs = expand_inputs(parsed_.inputs);
    if (!inputs) {
      say_error("", inputs.error());
      return kExitFailed;
    }
    std::string output;
    if (const auto code = find_output(inputs->size(), output)) return code;
    makes_folders_ = is_template(output);
    root_ = fs::path(output.substr(0, output.find('{'))).parent_path();
    if (!parsed_.to.empty()) root_ = parsed_.output;
    if (makes_folders_) leave_out_outputs(*inputs, root_, io::extension_of(output));
    if (inputs->empty()) return arguments_.wrong("all inputs are outputs of an earlier run.");
    const bool splits = parsed_.options.steps.splits();
    if (!splits && output.find("{part}") != std::string::npos) return arguments_.wrong("{part} in -o needs --split.");

    std::vector<ConversionJob> all;
    if (parsed_.options.steps.combines()) {
      all.push_back({*inputs, output, {inputs->front().relative, 1, 1, ""}});
    } else {
      for (size_t i = 0; i < inputs->size(); ++i)
        all.push_back({{(*inputs)[i]}, output, {(*inputs)[i].relative, i + 1, inputs->size(), ""}});
    }
    // Two inputs that would become one file are refused before anything is written, because the second would silently
    // replace the first. An output that another job still has to read is refused too.
    std::map<fs::path, const ConversionJob*> taken, read;
    for (const ConversionJob& job : all)
      for (const Input& input : job.inputs) read.try_emplace(fs::absolute(input.file).lexically_normal(), &job);
    for (const ConversionJob& job : all) {
      const auto file = job.file();
      if (!file) return arguments_.wrong(file.error().message);
      const fs::path place = fs::absolute(*file).lexically_normal();
      const auto [at, fresh] = taken.try_emplace(place, &job);
      if (!fresh)
        return arguments_.wrong(fmt::format(
            "'{}' and '{}' would both become '{}'. A template tells them apart: {{dir}}, {{ext}} or {{index}} in -o.",
            shown(at->second->inputs[0].file), shown(job.inputs[0].file), shown(*file)));
      if (const auto input = read.find(place); input != read.end() && input->second != &job)
        return arguments_.wrong(
            fmt::format("'{}' would become '{}', which is an input too.", shown(job.inputs[0].file), shown(*file)));
    }
    for (const ConversionJob& job : all)
      for (const Input& input : job.inputs) names_.add_text(input.relative.generic_string());
    all_jobs_ = all.size();
    output_template_ = place_below_root(output);
    for (ConversionJob& job : all)
      if (parsed_.part.count == 1 || shard_of(job.inputs[0], parsed_.part.count) == parsed_.part.number)
        jobs_.push_back(std::move(job));
    for (const ConversionJob& job : jobs_) estimates_.push_back(estimate(job, parsed_.options, parsed_.memory_bytes));
    return {};
  }

  // Everything except the inputs that the output's bytes depend on.
  std::string options_text() const {
    const ConversionOptions& o = parsed_.options;
    return fmt::format("quarry {} {} {} picture={} salvage={} lod_levels={} to={}", QRY_VERSION, o.load.text(),
                       o.steps.text(), int(o.picture), o.salvage, o.lod_levels, parsed_.output + " " + parsed_.to);
  }
  // The same for --manifest, whose bytes do not depend on where the outputs' folder is.
  std::string portable_options_text() const {
    const ConversionOptions& o = parsed_.options;
    return fmt::format("{} {} picture={} salvage={} lod_levels={} output={}", o.load.text(), o.steps.text(),
                       parsed_.slices ? "slices" : parsed_.picture, o.salvage, o.lod_levels, output_template_);
  }
  std::string resume_suffix() const {
    return parsed_.part.count > 1 ? fmt::format("-{}-of-{}", parsed_.part.number, parsed_.part.count) : std::string();
  }
  std::string place_below_root(const fs::path& file) const {
    return file.lexically_proximate(root_.empty() ? fs::path(".") : root_).generic_string();
  }
  // The name of a job for --resume: its output, or for a job with several the beginning of their names.
  std::string job_name(const ConversionJob& job) const { return place_below_root(*job.file()); }

  // The checksums of files that a job wrote, now or earlier, and of what belongs to them.
  Result<std::vector<FileChecksum>> checksums(const std::vector<fs::path>& outputs,
                                              const std::atomic<bool>* cancel) const {
    std::vector<FileChecksum> out;
    for (const fs::path& file : files_of_outputs(outputs)) {
      QRY_TRY_ASSIGN(auto sum, checksum_of(file, cancel));
      sum.file = place_below_root(file);
      out.push_back(std::move(sum));
    }
    return out;
  }

  // The message if --memory is probably too small for a job and regions cannot help; "" otherwise. It is an estimate,
  // so the job is tried all the same.
  std::string too_large(size_t job) const {
    const BatchItem& e = estimates_[job];
    if (e.can_save_memory || memory_in_use() + e.memory_bytes <= parsed_.memory_bytes) return {};
    return fmt::format(
        "by estimate it needs {} of memory, more than the {} of --memory, and it cannot be converted region by region: "
        "{}",
        bytes_text(e.memory_bytes), bytes_text(parsed_.memory_bytes), why_whole(jobs_[job], parsed_.options));
  }

  // The folder that a job's dependencies are relative to.
  static fs::path folder_of(const ConversionJob& job) { return fs::absolute(job.inputs[0].file).parent_path(); }
  bool is_unchanged(const ResumeManifest& manifest, const ConversionJob& job, const std::string& hash,
                    const std::atomic<bool>* cancel) const {
    return manifest.unchanged(job_name(job), hash) &&
           unchanged(manifest.dependencies(job_name(job)), folder_of(job), cancel);
  }

  int say_plan() {
    BatchLog log(parsed_.json, !parsed_.report.empty(), std::vector<uint64_t>(jobs_.size(), 1));
    const ResumeManifest manifest(root_, resume_suffix());
    BatchCounts counts;
    counts.inputs = jobs_.size();
    std::error_code error;
    for (const ConversionJob& job : jobs_) {
      const fs::path file = *job.file();
      std::string note;
      const bool there = fs::exists(file, error);
      const auto hash = parsed_.resume ? content_hash(job.inputs, options_text()) : Result<std::string>("");
      const auto missing = std::ranges::find_if(job.inputs, [&](const Input& i) { return !fs::exists(i.file, error); });
      if (missing != job.inputs.end()) note = shown(missing->file) + " is not there: would fail", ++counts.failed;
      else if (parsed_.resume && hash && is_unchanged(manifest, job, *hash, nullptr))
        note = "unchanged: would be skipped", ++counts.skipped;
      else if (there && !parsed_.overwrite && !(parsed_.resume && manifest.wrote(file)))
        note = parsed_.resume
                   ? "is there already: would stay if it has the bytes that it should have, and fail otherwise"
                   : "is there already: would fail without --overwrite",
        ++(parsed_.resume ? counts.converted : counts.failed);
      else if (there) note = "would be replaced", ++counts.converted;
      else ++counts.converted;
      const auto at = size_t(&job - jobs_.data());
      if (const std::string large = too_large(at); !large.empty()) note += (note.empty() ? "" : "; ") + large;
      log.planned(job, shown(file), estimates_[at], note);
    }
    if (!parsed_.json)
      fmt::print("{} inputs: {} would be converted, {} skipped, {} would fail; nothing was written\n", counts.inputs,
                 counts.converted, counts.skipped, counts.failed);
    return counts.failed == 0 ? kExitDone : kExitFailed;
  }

  int do_jobs() {
    if (makes_folders_ || !parsed_.to.empty()) {
      if (auto made = root_.empty() ? Result<void>() : deferred_sync_.make_folders(root_); !made) {
        say_error("", made.error());
        return kExitFailed;
      }
    }
    if (auto free = check_places().and_then([&] { return begin_manifest(parsed_.manifest, parsed_.part); }); !free) {
      say_error("", free.error());
      return exit_code_of(free.error());
    }
    if (const uint64_t own = memory_in_use(); own >= parsed_.memory_bytes) {
      say_error(
          "",
          Error{
              ErrorCode::out_of_memory,
              fmt::format(
                  "--memory is {}, and the program itself holds {} before it reads anything: give --memory {}M or more",
                  memory_text(parsed_.memory_bytes), memory_text(own), (own >> 20) + 20)});
      return kExitFailed;
    }
    std::vector<uint64_t> work;
    for (const BatchItem& e : estimates_) work.push_back(e.work);
    BatchLog log(parsed_.json, !parsed_.report.empty(), work);
    // A single file's writer waits for the disk itself. Several files are synced together.
    const bool one_file = jobs_.size() == 1 && !parsed_.options.steps.splits() && parsed_.options.lod_levels == 0;
    std::unique_ptr<ResumeManifest> manifest;
    if (parsed_.resume) {
      manifest = std::make_unique<ResumeManifest>(root_, resume_suffix());
      for (const fs::path& output : manifest->unsynced()) deferred_sync_.add(output);
    }
    if (manifest && manifest->has_old())
      say_warning(shown(root_ / ".quarry-resume"),
                  "was begun by Quarry 0.1.1 or older, which did not remember all "
                  "that an output depends on (textures, headers, logs): what it lists is converted once more");
    const std::string text = options_text();
    const bool lists = !parsed_.manifest.empty();
    OutputNames names;
    std::vector<Conversion> done(jobs_.size());
    std::vector<uint8_t> skipped(jobs_.size()), begun(jobs_.size());
    std::vector<ManifestEntry> entries(jobs_.size());
    BatchCounts counts;
    counts.inputs = jobs_.size();
    int last_code = kExitDone;

    const auto run = [&](size_t i, const ItemContext& context) -> Result<void> {
      const ConversionJob& job = jobs_[i];
      done[i] = {};
      ManifestEntry& entry = entries[i] = {};
      std::string note = begun[i]++ ? std::string() : too_large(i);
      const fs::path file = *job.file();
      std::string hash;
      const int64_t begin = file_clock_now();
      ConversionOptions options = parsed_.options;
      if (!one_file) options.deferred_sync = &deferred_sync_;
      options.in_regions = context.save_memory;
      if (manifest || lists) {
        QRY_TRY_ASSIGN(const auto hashed, content_hash(job.inputs, text, context.cancel, &entry.inputs));
        hash = hashed;
      }
      if (manifest) {
        if (is_unchanged(*manifest, job, hash, context.cancel)) {
          const std::vector<FileChecksum> known = manifest->checksums(job_name(job));
          if (lists) {
            QRY_TRY_ASSIGN(auto now, checksums(manifest->outputs(job_name(job)), context.cancel));
            entry.outputs = std::move(now);
          }
          if (!lists || known.empty() || known == entry.outputs) {
            skipped[i] = true;
            return {};
          }
          note = "the bytes of its output are not those that were written, though size and time are: converted again";
        }
        options.same_is_fine = !options.overwrite;
        const auto before = manifest->outputs(job_name(job));
        options.overwrite =
            options.overwrite ||
            (!before.empty() && std::ranges::all_of(before, [&](const fs::path& f) { return manifest->wrote(f); }));
      }
      log.started(job, context.threads, context.save_memory, note);
      if (makes_folders_ || !parsed_.to.empty())
        QRY_TRY(deferred_sync_.make_folders(file.has_parent_path() ? file.parent_path() : fs::path(".")));
      Progress progress;
      progress.cancel = context.cancel;
      if (jobs_.size() == 1) progress = log.progress_of_one(shown(file), context.cancel);
      QRY_TRY(convert(job, options, names, progress, done[i]));
      if (lists) {
        QRY_TRY_ASSIGN(auto now, checksums(done[i].outputs, context.cancel));
        entry.outputs = std::move(now);
      }
      if (!manifest) return {};
      return manifest->record(job_name(job), hash, done[i].outputs,
                              dependencies_now(folder_of(job), done[i].accessed_files, begin, context.cancel),
                              entry.outputs);
    };
    const auto ended = [&](size_t i, const Result<void>& result) {
      if (result && skipped[i]) {
        ++counts.skipped;
        log.skipped(i, jobs_[i], *jobs_[i].file(), "unchanged");
      } else if (result) {
        ++counts.converted;
        log.finished(i, jobs_[i], done[i]);
      } else if (result.error().code == ErrorCode::cancelled) {
        ++counts.not_started;
      } else {
        ++counts.failed;
        entries[i].error = code_name(result.error().code);
        counts.failed_names.push_back(shown(jobs_[i].inputs[0].file));
        last_code = done[i].salvaged && parsed_.options.strict ? int(kExitSomeFailed) : exit_code_of(result.error());
        Error error = result.error();
        if (error.code == ErrorCode::out_of_memory)
          if (const std::string whole = why_whole(jobs_[i], parsed_.options); !whole.empty())
            error.message += "; it cannot be converted region by region: " + whole;
        log.failed(i, jobs_[i], error, done[i]);
        return parsed_.keep_going;
      }
      return true;
    };
    BatchOptions batch;
    batch.threads = parsed_.jobs > 0 ? uint32_t(parsed_.jobs) : thread_count();
    batch.in_order = batch.threads == 1;
    batch.memory_bytes = parsed_.memory_bytes;
    batch.cancel = &interrupt_flag();
    run_batch(estimates_, batch, run, ended);
    // Exit code 0 means that everything is on disk, and the manifest promises only what is.
    auto settled = deferred_sync_.settle();
    if (manifest)
      if (auto noted = manifest->settled(settled.has_value()); !noted && settled) settled = noted;

    counts.not_started = counts.inputs - counts.converted - counts.failed - counts.skipped;
    std::string stopped;
    int code = kExitDone;
    if (interrupt_flag().load())
      stopped = "interrupted; every file that is there is whole, and --resume goes on where this one ended",
      code = kExitCancelled;
    else if (counts.failed > 0) {
      if (counts.not_started > 0) stopped = "stopped there (--keep-going goes on)";
      code = jobs_.size() == 1                                             ? last_code
             : parsed_.keep_going && counts.converted + counts.skipped > 0 ? int(kExitSomeFailed)
                                                                           : int(kExitFailed);
    }
    if (!settled) {
      if (code == kExitDone) code = kExitFailed;
      stopped += (stopped.empty() ? "" : "; ") + settled.error().message;
      if (jobs_.size() == 1) say_error("", settled.error());
    }
    // A manifest tells of all jobs, or there is none. It tells of failures if the user wants to go on after them.
    if (lists && settled && counts.not_started == 0 && (counts.failed == 0 || parsed_.keep_going) &&
        !interrupt_flag().load() && !finish_manifest(entries))
      code = code == kExitDone ? int(kExitFailed) : code;
    log.summary(counts, stopped, code);
    if (!parsed_.report.empty())
      if (auto written = write_report(parsed_.report, report_text(log.report())); !written) {
        say_error("", written.error());
        return code == kExitDone ? int(kExitFailed) : code;
      }
    return code;
  }

  // Writes the manifest, or this shard's part, and joins the parts if they are all there. Returns false if it cannot be
  // written. That parts do not fit together is only a warning here: shards that run again replace theirs one by one.
  bool finish_manifest(std::vector<ManifestEntry>& entries) const {
    for (size_t i = 0; i < jobs_.size(); ++i) {
      entries[i].index = jobs_[i].values.index;
      if (entries[i].error.empty()) continue;
      entries[i].inputs.clear();
      for (const Input& input : jobs_[i].inputs) entries[i].inputs.push_back({input.relative.generic_string(), 0, ""});
    }
    const ManifestHead head{QRY_VERSION, portable_options_text(), names_.hex(), all_jobs_, parsed_.part};
    if (auto written = write_manifest(parsed_.manifest, head, entries); !written) {
      say_error("", written.error());
      return false;
    }
    if (parsed_.part.count == 1) return true;
    if (const auto joined = join_manifest(parsed_.manifest); !joined)
      say_warning(parsed_.manifest, "is not joined: " + joined.error().message);
    else if (joined->missing.empty() && !parsed_.json)
      fmt::print("{}: joined from {} parts\n", parsed_.manifest, joined->shards);
    return true;
  }

  // The text of a report. Its first line marks it as one that may be replaced.
  static std::string report_text(const nlohmann::json& report) {
    const std::string text = report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
    return kReportHead + std::string("\"convert\",") + text.substr(1) + "\n";
  }

  // Checks before any work that report and manifest can be written, and to places that nothing else uses.
  Result<void> check_places() const {
    std::vector<fs::path> used;
    if (parsed_.report.empty() && parsed_.manifest.empty()) return {};
    for (const ConversionJob& job : jobs_) {
      for (const Input& input : job.inputs) used.push_back(input.file);
      const auto file = job.file();
      if (!file) continue;
      used.push_back(*file);
      if (fs::path sidecar = io::sidecar_of(*file); !sidecar.empty()) used.push_back(std::move(sidecar));
    }
    if (parsed_.resume) used.push_back(ResumeManifest::file_in(root_, resume_suffix()));
    if (!parsed_.manifest.empty()) {
      for (const fs::path& file : {fs::path(parsed_.manifest), manifest_part(parsed_.manifest, parsed_.part)}) {
        QRY_TRY(check_apart(file, used, "--manifest"));
        if (!parsed_.report.empty()) QRY_TRY(check_apart(file, std::array{fs::path(parsed_.report)}, "--manifest"));
      }
      QRY_TRY(check_manifest(parsed_.manifest, parsed_.part));
    }
    return parsed_.report.empty() ? Result<void>() : check_report(parsed_.report, used);
  }

  const Arguments& arguments_;
  ConvertArguments& parsed_;
  std::unique_ptr<MemoryBudget> budget_;  // shared by all jobs
  std::vector<ConversionJob> jobs_;
  std::vector<BatchItem> estimates_;
  bool makes_folders_ = false;  // the folders of a template
  io::DeferredSync deferred_sync_;
  fs::path root_;                // of the outputs; what --resume remembers is there
  Checksum names_;               // of all inputs of all shards
  size_t all_jobs_ = 0;          // of all shards
  std::string output_template_;  // below root_
};

}  // namespace

int run_convert(const CommandArguments& words) {
  ConvertArguments parsed;
  Arguments arguments("convert", "Turn meshes, .vox and other files into worlds, and back.",
                      "  quarry convert bunny.obj -o bunny.quarry --resolution 512\n"
                      "  quarry convert castle.vox -o castle.quarry\n"
                      "  quarry convert models/*.vox -o worlds --to quarry --keep-going\n"
                      "  quarry convert world.quarry -o world.ply\n"
                      "  quarry convert 'in/**/*.vox' @more.txt -o 'out/{dir}/{stem}.glb' --resume --report "
                      "done.json\n"
                      "  quarry convert house.vox garden.vox --merge --lod 1 -o both.quarry\n"
                      "  quarry convert castle.vox --split models -o 'parts/{part}.vox'\n");
  add_options(arguments, parsed);
  if (const auto code = arguments.parse(words)) return *code;
  if (parsed.list) {
    list_formats();
    return kExitDone;
  }
  return ConvertCommand(arguments, parsed).run();
}

}  // namespace quarry::app
