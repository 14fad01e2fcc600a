#!/usr/bin/env bash
# enter.sh [--network | --beside PID] ROOT FOLDER COMMAND...: runs a command as the user root in a root folder that
# make_root.sh made. FOLDER is mounted at /mnt of the root folder. Changes outside FOLDER are kept in memory, and are
# lost at the end. Without --network, the command has no network.
#
# Mounts and processes are in namespaces of their own. So the kernel removes the mounts and processes when the command
# ends, even if the command is killed. With --beside, the command runs in the pid namespace of process PID, like a
# container for debugging, and uses the caller's network.
set -euo pipefail
if [ "$1" = --beside ]; then
  pid=$2
  shift 2
  mkdir -p "$1.mount"
  exec nsenter --target "$pid" --pid unshare --mount --propagation private "$0" inside "$@"
fi
if [ "$1" != inside ]; then
  network=(--net)
  [ "$1" != --network ] || { network=(); shift; }
  mkdir -p "$1.mount"
  exec unshare --mount --propagation private --pid --fork --kill-child "${network[@]}" "$0" inside "$@"
fi
root=$2
folder=$3
shift 3
place=$root.mount
mount -t tmpfs -o size=4g tmpfs "$place"
mkdir "$place/changed" "$place/work" "$place/root"
mount -t overlay -o "lowerdir=$root,upperdir=$place/changed,workdir=$place/work" overlay "$place/root"
mount -t proc proc "$place/root/proc"
mount --rbind /dev "$place/root/dev"
mount -t tmpfs tmpfs "$place/root/dev/shm"
mount -t sysfs -o ro sysfs "$place/root/sys"
mount --bind "$folder" "$place/root/mnt"
# The shell does not exec the command, because the shell must stay and reap processes whose parents have ended.
status=0
env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 chroot "$place/root" "$@" || status=$?
exit "$status"
