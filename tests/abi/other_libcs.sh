#!/usr/bin/env bash
# other_libcs.sh FOLDER ABI_TESTS: compares the layouts of abi/ with the debug information of glibc in four Debian
# releases. The script downloads the packages libc6 and libc6-dbg of each release, and unpacks them into FOLDER. An
# earlier run may already have done so. The packages come from the Debian mirror that apt uses on this machine. If apt
# has no such mirror, or the mirror lacks the packages, the exit status is 77.
set -euo pipefail
folder=$1
tests=$2

# Finds the first archive of a Debian release in apt's lists. Archives of updates and of other vendors do not count.
# shellcheck disable=SC2016  # apt-get replaces what stands in $().
mirror=$(apt-get indextargets --format '$(ORIGIN) $(LABEL) $(COMPONENT) $(REPO_URI) $(CODENAME)' 'Created-By: Packages' |
  awk '$1 == "Debian" && $2 == "Debian" && $3 == "main" && $5 !~ /-/ { print $4; exit }')
[ -n "$mirror" ] || { echo "skipped: apt knows no archive of Debian"; exit 77; }

unpack() {
  local suite=$1 place=$folder/$1 package
  [ ! -e "$place.done" ] || return 0
  rm -rf "$place"
  mkdir -p "$place/apt/parts" "$place/apt/lists/partial"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$place/apt/parts/debian.list"
  local apt=(apt-get -q -o APT::Sandbox::User=root -o Acquire::Check-Valid-Until=false -o Dir::Etc::SourceList=/dev/null
    -o "Dir::Etc::SourceParts=$place/apt/parts" -o "Dir::State::Lists=$place/apt/lists" -o Dir::State::status=/dev/null)
  "${apt[@]}" update || return 1
  (cd "$place" && "${apt[@]}" download libc6 libc6-dbg) || return 1
  for package in "$place"/*.deb; do dpkg-deb -x "$package" "$place"; done
  rm -rf "$place/apt" "$place"/*.deb
  touch "$place.done"
}

mkdir -p "$folder"
status=0
for suite in bullseye bookworm trixie sid; do
  echo "== $suite"
  unpack "$suite" || { echo "skipped: the packages of $suite cannot be downloaded from $mirror"; exit 77; }
  FORKSIGHT_LIBC_ROOT=$folder/$suite "$tests" --gtest_filter='LibcDwarf.*' || status=1
done
exit "$status"
