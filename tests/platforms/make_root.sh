#!/usr/bin/env bash
# make_root.sh SUITE FOLDER: makes a minimal root of a Debian release. The root contains what the tests of the packages
# need, but no compiler. If the root exists, the script does nothing. The script must run as the user root. It uses the
# mirror from which this machine gets its packages.
#
# The root needs mounts. The script makes them in its own mount namespace. So the kernel removes the mounts when the
# script ends, even if the script is killed.
set -euo pipefail
if [ "${3:-}" != inside ]; then
  exec unshare --mount --propagation private "$0" "$1" "$2" inside
fi
suite=$1
root=$2
[ ! -e "$root.done" ] || exit 0

# The first archive that contains Debian itself, not only updates of Debian, or packages of another vendor.
# shellcheck disable=SC2016  # apt-get replaces the words in $().
mirror=$(apt-get indextargets --format '$(ORIGIN) $(LABEL) $(COMPONENT) $(REPO_URI) $(CODENAME)' 'Created-By: Packages' |
  awk '$1 == "Debian" && $2 == "Debian" && $3 == "main" && $5 !~ /-/ { print $4; exit }')
[ -n "$mirror" ] || { echo "make_root.sh: error: apt knows no archive of Debian" >&2; exit 1; }

if [ ! -e "$root.made" ]; then
  rm -rf --one-file-system "$root"
  mkdir -p "$root"
  debootstrap --variant=minbase "$suite" "$root" "$mirror"
  touch "$root.made"
fi
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t sysfs -o ro sysfs "$root/sys"
cp /etc/resolv.conf "$root/etc/resolv.conf"
# numpy with a BLAS that uses libgomp, gcore (in gdb), and programs that unpack and install packages.
needed=(python3-minimal python3-numpy python3-pip python3-venv libgomp1 libopenblas0-openmp libstdc++6 gdb zstd)
# The package lists of an old release are no longer renewed, so apt must accept lists that have expired.
chroot "$root" apt-get -o Acquire::Check-Valid-Until=false update -q
chroot "$root" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${needed[@]}"
touch "$root.done"
