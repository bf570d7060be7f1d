#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes down everything that a build shows to the outside, one line per thing, so that two builds can be compared with compare.sh.
#
#   make.sh BUILD_DIR OUT_DIR [DATA_DIR]
#
# BUILD_DIR has bin/quarry and its readers, lib/libquarry.so, include/quarry/quarry.h and .spv files. OUT_DIR gets
#   texts.txt     help, manual, completion, doctor, lists of formats, scenes and benchmarks
#   outputs.txt   files that convert and generate write, what info, diff and validate say of them
#   messages.txt  wrong uses and broken files
#   pictures.txt  what render and the editor's window show on the software device
#   spirv.txt     compiled shaders
#   abi.txt       exported symbols, soname, sizes of the public structures, the header without comments
#   texts/        each command's words, exit code and whole text, for a diff
# and of one command: `run NAME exit=CODE text=SHA256`, of one file: `file NAME/PATH SHA256 BYTES`.
#
# Both manifests are to be made on the same machine, and of builds with the same options: libraries of the system, its software Vulkan
# driver and the choice of CUDA show in them.
#
# Not compared byte for byte, because it differs from run to run:
#   .vdb     version 0.2 wrote a random UUID into bytes 21 to 56 of the header: they are left out
#   .quarry  as convert writes it, it is compared whole; what the editor leaves has a random `log_number`: dumped without that row
#   .quarry-resume  has times and device numbers: not compared
#   texts    seconds, progress in percent, temporary names, paths, amounts of memory and the machine's names become words
# shellcheck disable=SC2028,SC2129  # printf's escapes are for the C program
set -uo pipefail
export LC_ALL=C

if [ $# -lt 2 ] || [ $# -gt 3 ]; then
  echo "usage: $0 BUILD_DIR OUT_DIR [DATA_DIR]" >&2
  exit 2
fi
build=$(realpath -e "$1") || exit 2
data=$(realpath -e "${3:-${QUARRY_TEST_DATA:-$(dirname "$0")/../../../shared/data}}") || exit 2
mkdir -p "$2" || exit 2
out=$(realpath -e "$2")
quarry=$build/bin/quarry
library=$build/lib/libquarry.so
header=$build/include/quarry/quarry.h
for needed in "$quarry" "$build/bin/quarry-mesh-reader" "$build/bin/quarry-vdb" "$library" "$header"; do
  [ -e "$needed" ] || { echo "$0: $needed is not there" >&2; exit 2; }
done

rm -rf "$out/texts" "$out"/{texts,outputs,messages,pictures,spirv,abi}.txt
mkdir -p "$out/texts"
tmp=$(mktemp -d "${TMPDIR:-/tmp}/quarry-manifest.XXXXXX") || exit 2
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM

# The same surroundings for every run: no display, no cache or recovery file of the user, a fixed number of threads.
unset DISPLAY WAYLAND_DISPLAY QUARRY_MESH_READER QUARRY_FONT QUARRY_EDITOR_LOG
export HOME=$tmp/home XDG_CACHE_HOME=$tmp/home/cache XDG_STATE_HOME=$tmp/home/state QUARRY_THREADS=2
mkdir -p "$HOME" "$XDG_CACHE_HOME" "$XDG_STATE_HOME"
[ -e /usr/share/vulkan/icd.d/lvp_icd.x86_64.json ] && export VK_ICD_FILENAMES=/usr/share/vulkan/icd.d/lvp_icd.x86_64.json

# What differs from run to run, machine to machine and version to version. Progress lines ("FILE: read, 45%", "3 of 14 files, ... left")
# come only in slow runs.
normalise() {
  tr '\r' '\n' |
    sed -E -e "s#${tmp}/?[a-z]*#TMP#g; s#${build}#BUILD#g; s#${data}#DATA#g" \
      -e '/^quarry: .*, [0-9]+%$/d; /^quarry: [0-9]+ of [0-9]+ files, .* a second/d' \
      -e 's/\b0\.(1\.2|2\.0)\b/VERSION/g' \
      -e 's/"seconds": ?[0-9.e+-]+/"seconds": TIME/g; s/\b[0-9]+(\.[0-9]+)? (s|ms|min)\b/TIME/g' \
      -e 's/\([0-9.,]+ a second\)/(RATE)/g' \
      -e 's/\.new-[A-Za-z0-9_-]+/.new-NAME/g; s/\.set-[A-Za-z0-9_-]+/.set-NAME/g'
}

# Lanes run at the same time: each has a folder of its own, in which files are named in the same way by every run.
lane() {
  section=$1
  work=$tmp/$1
  mkdir -p "$work"
  cd "$work" || exit 2
  ln -s "$data" data
  list=$out/$section.txt
  : >"$list"
}

# run NAME WORDS...: one command, with its text; what it wrote into the folder o is listed by `files`.
run() {
  local name=$1 code
  shift
  timeout 120 nice -n 5 "$@" >"$work/.out" 2>"$work/.err" </dev/null
  code=$?
  mkdir -p "$out/texts/$section/$(dirname "$name")"
  {
    echo "\$ ${*/#$build/BUILD}" | normalise
    echo "exit $code"
    echo "--- stdout"
    normalise <"$work/.out"
    echo "--- stderr"
    normalise <"$work/.err"
  } >"$out/texts/$section/$name.txt"
  echo "run $name exit=$code text=$(sha256sum <"$out/texts/$section/$name.txt" | cut -d' ' -f1)" >>"$list"
}

bytes_of() {
  case $1 in
    *.vdb) head -c 21 "$1"; tail -c +58 "$1" ;;
    *.json | *.nhdr) normalise <"$1" ;;
    *) cat "$1" ;;
  esac
}

# files NAME [FOLDER]: each file of the folder o, which is then emptied unless one is named.
files() {
  local name=$1 folder=${2:-o} path
  [ -d "$folder" ] || { echo "file $name none" >>"$list"; return; }
  while IFS= read -r path; do
    echo "file $name/$path $(bytes_of "$folder/$path" | sha256sum | cut -d' ' -f1) $(bytes_of "$folder/$path" | wc -c)" >>"$list"
  done < <(cd "$folder" && find . -type f ! -name .quarry-resume | sed 's#^\./##' | sort)
  [ $# -gt 1 ] || rm -rf o
}

# Files that no one else's collection has: small ones of the formats that the data folder lacks.
make_small_files() {
  mkdir -p small
  printf '0 0 0 255 0 0\n1 0 0 0 255 0\n0 1 0 0 0 255\n3 2 1 10 20 30\n' >small/points.xyz
  printf '0 0 0\n1 0.5 0\n0 1 2\n' >small/points.asc
  printf 'ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\nproperty uchar red\nproperty uchar green\nproperty uchar blue\nend_header\n0 0 0 255 0 0\n4 0 0 0 255 0\n0 4 2 0 0 255\n' >small/points.ply
  printf 'v 0 0 0\nv 4 0 0\nv 0 2 0\nv 0 0 3\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n' >small/tetrahedron.obj
  head -c 24 /dev/zero | tr '\0' '\3' >small/bare.raw
  cat >small/triangle.dae <<'DAE'
<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1"><asset><up_axis>Y_UP</up_axis></asset>
<library_geometries><geometry id="g"><mesh><source id="p"><float_array id="a" count="9">0 0 0 4 0 0 0 4 1</float_array>
<technique_common><accessor source="#a" count="3" stride="3"><param name="X" type="float"/><param name="Y" type="float"/><param name="Z" type="float"/></accessor></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices><triangles count="1"><input semantic="VERTEX" source="#v" offset="0"/><p>0 1 2</p></triangles></mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="s"><node id="n"><instance_geometry url="#g"/></node></visual_scene></library_visual_scenes><scene><instance_visual_scene url="#s"/></scene></COLLADA>
DAE
}

texts() {
  lane texts
  run help "$quarry" --help
  run help_short "$quarry" -h
  run version "$quarry" --version
  run nothing "$quarry"
  local c
  for c in edit convert render info diff validate generate doctor bench completion man; do
    run "help_$c" "$quarry" "$c" --help
  done
  for c in bash zsh fish; do run "completion_$c" "$quarry" completion "$c"; done
  for c in hashgrid render; do run "help_bench_$c" "$quarry" bench "$c" --help; done
  run man "$quarry" man
  run formats "$quarry" convert --list-formats
  run scenes "$quarry" generate --list
  run benchmarks "$quarry" bench --list
  # The machine's names and amounts are cut out before the text counts.
  local kind
  for kind in "" --json; do
    "$quarry" doctor $kind >.raw 2>&1 </dev/null
    echo "exit $?" >>.raw
    sed -E -e 's/(machine +|"text": ")[^"]* threads? for Quarry, [0-9.]+ [KMGT]iB of memory[^"]*/\1MACHINE/' -e 's/[0-9.]+ [KMGT]iB/MEMORY/g' .raw >".doctor$kind"
    run "doctor$kind" cat ".doctor$kind"
  done
}

spirv() {
  lane spirv
  local file
  while IFS= read -r file; do
    echo "file $(basename "$file") $(sha256sum <"$file" | cut -d' ' -f1) $(wc -c <"$file")" >>"$list"
  done < <(find "$build" -name '*.spv' | sort)
  [ -s "$list" ] || echo "none" >>"$list"
}

abi() {
  lane abi
  local texts=$out/texts/abi
  mkdir -p "$texts"
  nm -D --defined-only "$library" | awk '{print "symbol", $2, $3}' | sort >>"$list"
  readelf -d "$library" | sed -nE 's/.*\((SONAME|NEEDED)\).*\[(.*)\]/\1 \2/p' | sort >>"$list"
  readelf -d "$quarry" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]/quarry NEEDED \1/p' | sort >>"$list"
  # The compiler's own stripping of comments and, with it, white space; macros stay as they are written.
  gcc -x c -fpreprocessed -dD -E -P "$header" 2>/dev/null | sed -E -e 's/(#define QRY_VERSION_(MAJOR|MINOR|PATCH)).*/\1 VERSION/' -e 's/[ \t]+/ /g; s/ $//' -e '/^$/d' >"$texts/quarry.h"
  echo "header quarry.h without comments and version $(sha256sum <"$texts/quarry.h" | cut -d' ' -f1)" >>"$list"
  grep -oE '^typedef struct (qry_[a-z0-9_]+) \{' "$texts/quarry.h" | awk '{print $3}' | sort -u >structs
  {
    echo '#include <quarry/quarry.h>'
    echo '#include <stdio.h>'
    echo 'int main(void) {'
    while read -r s; do echo "  printf(\"sizeof $s %zu align %zu\\n\", sizeof($s), _Alignof($s));"; done <structs
    # Fields: the names at the end of each declaration between the structure's braces.
    awk '/^typedef struct qry_[a-z0-9_]+ \{/ {s=$3; next} /^\}/ {s=""} s && /;/ {print s, $0}' "$texts/quarry.h" | while read -r s line; do
      case $line in
        *'('*) sed -E 's/^.*\(QRY_CALL \*([a-z_0-9]+)\).*/\1/; s/^.*\(QRY_CALL\* ?([a-z_0-9]+)\).*/\1/' <<<"$line" ;;
        *) tr ',' '\n' <<<"${line%;*}" | sed -E 's/\[[^]]*\]//g; s/.*[ *]([A-Za-z_0-9]+) *$/\1/; s/ //g' ;;
      esac | while read -r field; do echo "  printf(\"offsetof $s.$field %zu size %zu\\n\", offsetof($s, $field), sizeof((($s*)0)->$field));"; done
    done
    grep -oE '\bQRY_[A-Z0-9_]+ = -?[0-9a-fx]+' "$texts/quarry.h" | awk '{print $1}' | sort -u | while read -r e; do echo "  printf(\"constant $e %lld\\n\", (long long)$e);"; done
    echo '  printf("constant QRY_ABI_VERSION %u, the library says %u\n", QRY_ABI_VERSION, qry_abi_version());'
    echo '  const qry_requirements* r = qry_get_requirements();'
    echo '  printf("requirement api %u\n", r->api_version);'
    echo '  for (uint32_t i = 0; i < r->required_feature_count; ++i) printf("requirement feature %s.%s\n", r->required_feature_structs[i], r->required_features[i]);'
    echo '  for (uint32_t i = 0; i < r->required_extension_count; ++i) printf("requirement extension %s\n", r->required_extensions[i]);'
    echo '  for (uint32_t i = 0; i < r->optional_extension_count; ++i) printf("optional extension %s\n", r->optional_extensions[i]);'
    echo '  for (int i = -20; i < 5; ++i) printf("result %d %s\n", i, qry_result_name(i));'
    echo '}'
  } >"$texts/facts.c"
  if gcc -std=c11 -I"$build/include" "$texts/facts.c" -o facts -L"$(dirname "$library")" -lquarry -Wl,-rpath,"$(dirname "$library")" 2>"$texts/facts.log"; then
    ./facts | sort >>"$list"
  else
    echo "facts.c does not compile: see texts/abi/facts.log" >>"$list"
  fi
}

# Every file that can be read, as convert and info are to see it. Words after the name are options of reading.
readable() {
  local f
  for f in data/vox/*.vox data/vox/mmmm/*.vox; do echo "$f"; done
  for f in data/mesh/*.{stl,ply,3mf,off,obj} data/gltf/*.glb; do echo "$f --resolution 128"; done
  for f in data/vdb/*.vdb data/other/*.{binvox,qb,qbcl,schem,litematic}; do echo "$f"; done
  for f in data/other/*heightmap*.png; do echo "$f --map-height 64"; done
  for f in data/points/*.las; do echo "$f --resolution 128"; done
  echo "small/points.xyz --resolution 16"
  echo "small/points.asc --resolution 16 --up z"
  echo "small/points.ply --resolution 16"
  echo "small/tetrahedron.obj --resolution 32"
  echo "small/triangle.dae --resolution 16"
  echo "small/bare.raw --raw-size 4x3x2"
}

outputs() {
  lane outputs
  make_small_files
  local file words name format
  # Each input by itself into a world, which is kept: the worlds are what the writers get.
  mkdir worlds
  while read -r file words; do
    name=${file#data/}
    # shellcheck disable=SC2086
    run "info/$name" "$quarry" info --json "$file" $words
    mkdir -p "worlds/$(dirname "$name")"
    # shellcheck disable=SC2086
    run "read/$name" "$quarry" convert "$file" -o "worlds/$name.quarry" $words
    progress
  done < <(readable)
  files worlds worlds
  # shellcheck disable=SC2046
  run validate_all "$quarry" validate $(readable | awk '$1 ~ /vox|other|gltf/ {print $1}')
  run validate_json "$quarry" validate --json data/vox/robo.vox data/mesh/spot.obj
  run info_text_vox "$quarry" info data/vox/test_groups.vox
  run info_text_mesh "$quarry" info data/mesh/spot.obj --resolution 64
  run info_text_quarry "$quarry" info worlds/other/test.litematic.quarry
  run info_json_quarry "$quarry" info --json worlds/vox/study.vox.quarry

  # The writers: all .vox files, and a world of each other kind, in one batch for each format.
  local others=(worlds/mesh/spot.obj.quarry worlds/gltf/Duck.glb.quarry worlds/vdb/two_grids.vdb.quarry worlds/other/{8a85.binvox,chr_knight.qb,chr_knight.qbcl,smallhouse1.schem,test.litematic,test-colored-heightmap.png}.quarry
    worlds/points/autzen_trim.las.quarry worlds/small/{points.xyz,bare.raw,tetrahedron.obj}.quarry)
  for format in quarry vox binvox raw nrrd png obj gltf glb ply vdb nvdb; do
    case $format in
      # A process of its own for each: fewer of them.
      vdb | nvdb) run "write/$format" "$quarry" convert data/vox/[a-m]*.vox "${others[@]:0:6}" -o o --to "$format" -j 1 --keep-going ;;
      *)
        run "write/$format" "$quarry" convert data/vox data/vox/mmmm "${others[@]}" -o 'o/{dir}/{stem}.'$format -j 1 --keep-going
        ;;
    esac
    files "write/$format"
    progress
  done
  # Straight from meshes, points and grids, without the detour of a world.
  for format in vox glb obj ply binvox nrrd png vdb; do
    mkdir -p o
    run "direct/mesh.$format" "$quarry" convert data/gltf/BoxTextured.glb -o o/a.$format --resolution 48
    files "direct/mesh.$format"
  done
  # Writing and reading again.
  mkdir -p again
  for format in quarry vox binvox raw nrrd nvdb vdb glb gltf obj ply png; do
    run "again/write.$format" "$quarry" convert data/vox/robo.vox -o again/a.$format
    case $format in
      obj | gltf | glb | ply) words="--surface none --solid winding --voxel-size 1" ;;
      *) words= ;;
    esac
    # shellcheck disable=SC2086
    run "again/info.$format" "$quarry" info --json again/a.$format $words
    # shellcheck disable=SC2086
    run "again/diff.$format" "$quarry" diff --shape data/vox/robo.vox again/a.$format $words
    progress
  done

  # Scenes.
  local scene
  for scene in "terrain 512" "terrain 128" "city 456" "city 200" "menger 243" "menger 80" "spheres 128" "spheres 33"; do
    # shellcheck disable=SC2086
    set -- $scene
    mkdir -p o
    run "generate/$1-$2" "$quarry" generate "$1" --size "$2" -o "o/$1-$2.quarry"
    files "generate/$1-$2"
    progress
  done
  mkdir -p o
  run generate/seed "$quarry" generate terrain --size 96 --seed 7 -o o/terrain.vox
  run generate/default "$quarry" generate spheres -o o/spheres.ply
  run generate/city_seed "$quarry" generate city --size 128 --seed 9 -o o/city.glb
  files generate/others

  # Options of reading.
  option() {
    mkdir -p o
    run "option/$1" "$quarry" convert "${@:2}"
    files "option/$1"
    progress
  }
  option resolution data/mesh/ballA.off -o o/a.vox --resolution 40
  option voxel_size data/mesh/20mm-xyz-cube.stl -o o/a.vox --voxel-size 0.5
  option surface_6 data/mesh/spot.obj -o o/a.vox --resolution 96 --surface 6
  option surface_none data/mesh/spot.obj -o o/a.vox --resolution 96 --surface none --solid parity
  option solid_winding data/mesh/bunny.ply -o o/a.vox --resolution 64 --solid winding
  option solid_parity data/mesh/bunny.ply -o o/a.vox --resolution 64 --solid parity
  option executor_host data/mesh/dragon_vrip_res4.ply -o o/a.vox --resolution 64 --executor host
  option up_z data/mesh/spot.obj -o o/a.vox --resolution 32 --up z
  option memory_limit data/mesh/stanford-bunny.obj -o o/a.vox --resolution 32 --memory-limit 512
  option time_limit data/mesh/spot.obj -o o/a.vox --resolution 32 --time-limit 60
  option map_height data/other/test-heightmap.png -o o/a.vox --map-height 20
  option color_map data/other/test-heightmap.png -o o/a.vox --map-height 20 --color-map data/other/test-colored-heightmap.png
  option raw_size small/bare.raw -o o/a.vox --raw-size 2x3x4
  option salvage data/broken-vox/knight_trunc_50.vox -o o/a.vox --salvage
  option salvage_strict data/broken-vox/knight_trunc_50.vox -o o/a.vox --salvage --strict
  # Steps.
  option crop data/vox/monu9.vox -o o/a.vox --crop -10,0,-10,9,20,9
  local turn
  for turn in y90 x-90 z180; do option "turn_$turn" data/vox/robo.vox -o o/a.quarry --turn $turn; done
  for turn in x y z; do option "mirror_$turn" data/vox/robo.vox -o o/a.quarry --mirror $turn; done
  option scale_up data/vox/robo.vox -o o/a.quarry --scale 3
  option scale_down data/vox/monu9.vox -o o/a.quarry --scale 1/3
  option lod data/vox/monu9.vox -o o/a.quarry --lod 2
  option hollow data/vox/test_meta_chunk.vox -o o/a.quarry --hollow 2
  option fill data/mesh/ballA.off -o o/a.quarry --resolution 48 --fill auto
  option fill_material data/mesh/ballA.off -o o/a.quarry --resolution 48 --fill 9
  option materials data/vox/study.vox -o o/a.quarry --materials 8
  option several_steps data/vox/monu9.vox -o o/a.glb --crop -20,0,-20,19,40,19 --turn y90 --scale 2 --hollow 1 --mirror x --materials 4
  option merge data/vox/robo.vox data/vox/chr_knight.vox data/vox/test_groups.vox -o o/a.quarry --merge
  option merge_vox data/vox/robo.vox data/vox/chr_knight.vox -o o/a.vox --merge --lod 1
  option union data/vox/robo.vox data/vox/chr_knight.vox -o o/a.quarry --union
  option intersection data/vox/robo.vox data/vox/chr_knight.vox -o o/a.quarry --intersection
  option difference data/vox/robo.vox data/vox/chr_knight.vox -o o/a.quarry --difference
  for turn in models instances layers colours regions:32; do option "split_${turn%:*}" data/vox/test_groups.vox -o 'o/{stem}-{part}.vox' --split "$turn"; done
  # Writing and batches.
  option lod_levels data/vox/monu9.vox -o o/a.glb --lod-levels 3
  option picture_top data/vox/monu9.vox -o o/a.png --picture top
  option picture_height data/vox/monu9.vox -o o/a.png --picture height
  option slices data/vox/robo.vox -o o/layers --slices
  option strict_refuses data/vox/robo.vox -o o/a.ply --strict
  option strict_keeps data/vox/robo.vox -o o/a.vox --strict
  option shard data/vox/mmmm -o o --to glb --shard 2/3 -j 1
  option manifest data/vox/mmmm -o o --to glb --shard 1/2 -j 1 --manifest o/done.json
  option dry_run data/vox/mmmm -o o --to glb --dry-run -j 1
  option memory data/mesh/stanford-bunny.obj -o o/a.quarry --resolution 512 --memory 160M
  option json data/vox/robo.vox data/mesh/spot.obj -o o --to glb --resolution 32 -j 1 --json
  option report data/vox/robo.vox data/broken-vox/empty.vox -o o --to glb --keep-going -j 1 --report o/report.json
  option keep_going data/vox/robo.vox data/broken-vox/*.vox -o o --to ply --keep-going -j 1
  option template 'data/vox/**/*bot*.vox' data/vox/robo.vox -o 'o/{dir}/{index}-{stem}.{ext}.ply' -j 1
  printf 'data/vox/robo.vox\ndata/vox/crabby.vox\n' >list.txt
  option list @list.txt -o o --to vox -j 1
  option side_by_side data/vox/mmmm -o o --to obj -j 2 --json --report o/report.json >/dev/null
  # Two threads tell of files in the order in which they are done.
  sed -i '\#^run option/side_by_side #d; \#^file option/side_by_side/report.json #d' "$list"
  rm -f "$out/texts/outputs/option/side_by_side.txt"
  mkdir -p kept
  run option/resume_first "$quarry" convert data/vox/robo.vox data/vox/crabby.vox -o kept --to glb --resume -j 1
  run option/resume_again "$quarry" convert data/vox/robo.vox data/vox/crabby.vox data/vox/axes.vox -o kept --to glb --resume -j 1
  run option/overwrite "$quarry" convert data/vox/axes.vox -o kept/robo.glb --overwrite
  files option/resume kept

  run diff/equal "$quarry" diff data/vox/robo.vox again/a.quarry
  run diff/different "$quarry" diff data/vox/robo.vox data/vox/chr_knight.vox
  run diff/json "$quarry" diff --json data/vox/robo.vox data/vox/chr_knight.vox
  run diff/hidden "$quarry" diff --hidden --json data/vox/cloud.vox worlds/vox/cloud.vox.quarry
  run diff/shape "$quarry" diff --shape data/vox/robo.vox again/a.binvox
}

messages() {
  lane messages
  make_small_files
  local q=$quarry f s
  "$q" generate spheres --size 32 -o s.quarry >/dev/null 2>&1
  cp s.quarry there.quarry
  printf 'precious' >there.vox
  : >empty.vox
  printf 'VOX ' >header.vox
  printf 'this is no database' >text.quarry
  printf 'hello' >notes.txt
  mkdir folder.vox folder
  head -c 20000 s.quarry >cut.quarry
  # Bytes in the middle of a page: a damage that the checksums find.
  cp s.quarry damaged.quarry
  printf '\377\377\377\377\377\377\377\377' | dd of=damaged.quarry bs=1 seek=$(($(wc -c <s.quarry) - 700)) conv=notrunc 2>/dev/null
  mkfifo pipe.vox
  # Words on the command line.
  run unknown_command "$q" rendr
  run unknown_option "$q" --versoin
  run unknown_option_of_command "$q" render a.vox -o a.png --sise 3x3
  run far_command "$q" xyzzy
  run view "$q" render a.vox -o a.png --view normal
  run sharing "$q" render a.vox -o a.png --sharing zerocopy
  run size "$q" render a.vox -o a.png --size 0x4
  run camera "$q" render a.vox -o a.png --camera 1,2
  run picture_format "$q" render a.vox -o a.jpg
  run exr_without_paths "$q" render s.quarry -o a.exr
  run spp "$q" render s.quarry -o a.png --spp none
  run sky "$q" render s.quarry -o a.png --sky red
  run sun "$q" render s.quarry -o a.png --sun 1
  run background "$q" render s.quarry -o a.png --background blue
  run tone "$q" render s.quarry -o a.png --tone soft
  run device "$q" render s.quarry -o a.png --device "no such device"
  run scene_camera "$q" render s.quarry -o a.png --scene-camera 5
  run render_to_nowhere "$q" render s.quarry -o nowhere/a.png --size 8x8
  run render_without_output "$q" render s.quarry
  run render_absent "$q" render absent.quarry -o a.png
  run output_format "$q" convert s.quarry -o a.quary
  run output_without_extension "$q" convert s.quarry -o a
  run not_written "$q" convert s.quarry -o a.stl
  run to_format "$q" convert s.quarry -o d --to vxo
  run several_inputs "$q" convert a.vox b.vox -o c.quarry
  run same_output "$q" convert x/a.vox y/a.obj -o d --to quarry
  run no_inputs "$q" convert -o d --to quarry
  run no_output "$q" convert s.quarry
  run pattern_of_none "$q" convert 'none*.vox' -o d --to glb
  run list_absent "$q" convert @none.txt -o d --to glb
  run resolution "$q" convert small/tetrahedron.obj -o b.quarry --resolution many
  run resolution_zero "$q" convert small/tetrahedron.obj -o b.quarry --resolution 0
  run voxel_size "$q" convert small/tetrahedron.obj -o b.quarry --voxel-size -1
  run surface "$q" convert small/tetrahedron.obj -o b.quarry --surface 18
  run surface_none_alone "$q" convert small/tetrahedron.obj -o b.quarry --surface none
  run solid "$q" convert small/tetrahedron.obj -o b.quarry --solid full
  run executor "$q" convert small/tetrahedron.obj -o b.quarry --executor gpu
  run executor_cuda "$q" convert small/tetrahedron.obj -o b.quarry --executor cuda
  run up "$q" convert small/tetrahedron.obj -o b.quarry --up x
  run raw_size "$q" convert small/bare.raw -o b.quarry --raw-size 3x4
  run raw_size_missing "$q" convert small/bare.raw -o b.quarry
  run raw_size_wrong "$q" convert small/bare.raw -o b.quarry --raw-size 9x9x9
  for s in "crop 1,2,3" "turn y45" "mirror w" "scale 0" "lod x" "hollow 0" "fill 300" "materials 0" "split modls" "lod-levels 0" "picture side" "shard 4/3" "memory much" "jobs 0" "map-height 0"; do
    # shellcheck disable=SC2086
    run "option_${s%% *}" "$q" convert s.quarry -o b.quarry --$s
  done
  run merge_and_union "$q" convert s.quarry there.quarry -o b.quarry --merge --union
  run picture_of_mesh "$q" convert s.quarry -o b.ply --picture height
  run split_without_part "$q" convert s.quarry -o b.vox --split colours
  run template_field "$q" convert s.quarry -o 'o/{name}.vox'
  run reader_memory "$q" convert data/mesh/stanford-bunny.obj -o b.quarry --memory-limit 1
  run color_map_absent "$q" convert data/other/test-heightmap.png -o b.quarry --color-map none.png
  run generate_unknown "$q" generate terain -o t.quarry
  run generate_size "$q" generate terrain -o t.quarry --size 1
  run generate_without_output "$q" generate terrain
  run generate_nothing "$q" generate
  run generate_there "$q" generate spheres --size 32 -o there.quarry
  run bench_unknown "$q" bench hashgird
  run completion_unknown "$q" completion tcsh
  run completion_nothing "$q" completion
  run info_two "$q" info a.vox b.vox
  run info_nothing "$q" info
  run edit_size "$q" edit --size 10x10
  run edit_without_display "$q" edit s.quarry
  run edit_script_absent "$q" edit s.quarry --script none.txt
  run diff_nothing "$q" diff
  run diff_one "$q" diff s.quarry
  run diff_absent "$q" diff s.quarry absent.quarry
  run validate_nothing "$q" validate
  run validate_some "$q" validate s.quarry header.vox
  run validate_strict "$q" validate --strict data/broken-vox/xyzi_oob.vox
  run doctor_words "$q" doctor now
  # Files that are not what they should be.
  for f in absent.vox empty.vox header.vox text.quarry notes.txt folder.vox cut.quarry damaged.quarry; do
    run "input_$f" "$q" convert "$f" -o out.quarry
  done
  run input_pipe timeout 20 "$q" convert pipe.vox -o out.quarry
  run input_null "$q" info /dev/null
  run salvage_damaged "$q" convert --salvage damaged.quarry -o salvaged.quarry
  run salvage_cut "$q" convert --salvage cut.quarry -o salvaged2.quarry
  for f in data/broken-vox/*.vox data/broken-mesh/crash.ply data/broken-mesh/empty.obj data/broken-mesh/*/*.gl*; do
    s=$(basename "$f")
    run "broken/$s" "$q" convert "$f" -o "out-$s.quarry" --resolution 32
    run "broken/validate_$s" "$q" validate "$f" --resolution 32
    run "broken/salvage_$s" "$q" convert --salvage "$f" -o "salvaged-$s.quarry" --resolution 32
  done
  # Places that cannot be written.
  run out_there "$q" convert s.quarry -o there.quarry
  run out_there_broken "$q" convert header.vox -o there.vox --overwrite
  run out_same "$q" convert there.quarry -o there.quarry --overwrite
  run out_nowhere "$q" convert s.quarry -o nowhere/out.quarry
  run out_folder "$q" convert s.quarry -o folder.vox --overwrite
  run out_device "$q" convert s.quarry -o /dev/null --overwrite
  run out_device_to "$q" convert s.quarry -o /dev/null --to vox
  run out_full_report "$q" convert s.quarry -o r.vox --report /dev/full
  ln -s /dev/null null.vox
  run out_device_link "$q" convert s.quarry -o null.vox --overwrite
  run out_pipe timeout 20 "$q" convert s.quarry -o pipe.vox --overwrite
  ln -s circle.vox circle.vox
  run out_circle "$q" convert s.quarry -o circle.vox --overwrite
  run out_picture_device "$q" render s.quarry -o /dev/null --size 8x8
  run out_long_name "$q" convert s.quarry -o "$(printf 'n%.0s' {1..260}).vox"
  run stdout_full bash -c "\"$q\" man >/dev/full"
  # What is left: files that a failed command should not have made show here.
  find . -mindepth 1 -maxdepth 2 ! -path './data*' ! -name '.out' ! -name '.err' | sort | sed 's#^\./#left #' | normalise >>"$list"
}

pictures() {
  lane pictures
  local q=$quarry scene view
  "$q" generate spheres --size 32 -o spheres.quarry >/dev/null 2>&1
  "$q" generate city --size 128 -o city.quarry >/dev/null 2>&1
  picture() {
    mkdir -p o
    run "$1" "$q" render "${@:2}"
    files "$1"
    progress
  }
  for scene in spheres city; do
    for view in shaded albedo normals depth bricks probe_depth steps material load; do
      picture "$scene/$view" $scene.quarry -o o/a.png --size 160x120 --view $view
    done
    picture "$scene/paths" $scene.quarry -o o/a.png --size 160x120 --spp 3
    picture "$scene/paths_exr" $scene.quarry -o o/a.exr --size 160x120 --spp 2 --layers
  done
  picture options/camera spheres.quarry -o o/a.png --size 160x120 --camera 40,30,60 --target 0,5,0 --fov 60 --samples 1 --shadow-rays 2 --ambient-rays 2 --ambient-reach 20 --seed 5
  picture options/sun spheres.quarry -o o/a.png --size 160x120 --sun 200,-20 --sun-strength 2 --sun-size 3 --sky-strength 2 --exposure 3 --tone linear --azimuth 100 --elevation 40
  picture options/sky spheres.quarry -o o/a.png --size 160x120 --sky '#405060' --background none --ground --fog 60 --fog-height 10 --outline -4,0,-4,4,8,4
  picture options/lens spheres.quarry -o o/a.png --size 160x120 --spp 2 --bounces 2 --clamp 4 --aperture 2 --focus 40 --seed 3 --background '#102030' --ground
  picture options/exr spheres.quarry -o o/a.exr --size 64x48 --spp 2
  picture options/staged spheres.quarry -o o/a.png --size 160x120 --sharing staged
  picture options/turntable spheres.quarry -o 'o/{stem}-{part}.png' --size 64x48 --turntable 3
  picture options/batch spheres.quarry data/vox/robo.vox -o o --to png --size 64x48
  picture options/json spheres.quarry -o o/a.png --size 64x48 --json
  picture options/validation spheres.quarry -o o/a.png --size 64x48 --validation
  picture inputs/vox data/vox/study.vox -o o/a.png --size 160x120
  picture inputs/mesh data/mesh/spot.obj -o o/a.png --size 160x120 --resolution 96

  # The editor's window, each time after enough frames that a slow machine shows it in all its pixels. The random number of the log in the worlds that it had open is left out.
  if command -v xvfb-run >/dev/null && command -v sqlite3 >/dev/null; then
    cp spheres.quarry world.quarry
    mkdir -p o
    cat >tour.txt <<'TOUR'
camera 30 20
sphere add 0 20 0 6 3
box remove -4 0 -4 4 4 4 1
line add -10 5 0 10 5 0 2 5
undo
redo
view normals
wait 60
screenshot o/normals.png
view shaded
tool paint sphere 3
material 7
click 300 200
key CTRL+Z
key CTRL+SHIFT+Z
save o/copy.quarry
save o/copy.vox
wait 60
screenshot o/window.png
quit
TOUR
    run editor xvfb-run -a "$q" edit world.quarry --script tour.txt --size 640x400 --screenshot o/last.png
    for scene in world.quarry o/copy.quarry; do
      echo "file editor/$scene $(sqlite3 "$scene" .dump | grep -v log_number | sha256sum | cut -d' ' -f1) without log_number" >>"$list"
    done
    rm -f o/copy.quarry*
    files editor
  fi
}

steps=0
progress() {
  steps=$((steps + 1))
  [ $((steps % 25)) -ne 0 ] || echo "  $section: $(wc -l <"$list") entries, $SECONDS s"
}

echo "manifest of $build"
texts && spirv && abi
echo "  texts, spirv, abi: done, $SECONDS s"
# Two lanes at once: both wait for the disk and for other processes now and then.
(outputs) &
first=$!
(messages && pictures) &
second=$!
wait $first $second

for list in texts outputs messages pictures spirv abi; do
  sort -o "$out/$list.txt" "$out/$list.txt"
  echo "  $list: $(wc -l <"$out/$list.txt") entries"
done
echo "$(cat "$out"/{texts,outputs,messages,pictures,spirv,abi}.txt | wc -l) entries in $out, $SECONDS s"
