#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares two manifests of make.sh: 0 equal, 1 different, with the first lines that differ, 2 wrong usage.
#
#   compare.sh OUT_A OUT_B [LINES]
set -uo pipefail
export LC_ALL=C
if [ $# -lt 2 ] || [ ! -d "$1" ] || [ ! -d "$2" ]; then
  echo "usage: $0 OUT_A OUT_B [LINES]" >&2
  exit 2
fi
a=$1 b=$2 most=${3:-20} different=0
for list in texts outputs messages pictures spirv abi; do
  if [ ! -e "$a/$list.txt" ] || [ ! -e "$b/$list.txt" ]; then
    echo "$list.txt is not in both"
    different=1
    continue
  fi
  if ! cmp -s "$a/$list.txt" "$b/$list.txt"; then
    different=1
    echo "== $list: $(diff "$a/$list.txt" "$b/$list.txt" | grep -c '^[<>]') lines differ"
    diff "$a/$list.txt" "$b/$list.txt" | grep '^[<>]' | head -n "$most"
  fi
done
# The words behind the checksums.
if [ $different = 1 ]; then
  echo "== texts that differ, the first of them whole"
  diff -rq "$a/texts" "$b/texts" | head -n "$most"
  diff -ru "$a/texts" "$b/texts" | head -n $((most * 3))
else
  echo "equal: $(cat "$a"/{texts,outputs,messages,pictures,spirv,abi}.txt | wc -l) entries"
fi
exit $different
