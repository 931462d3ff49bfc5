#!/usr/bin/env bash
# Boots a bare Debian 12 with systemd, and runs the script on standard input in it. Prints the script's output and exits
# with its exit code.
#
# usage: boot.sh PACKAGES HOOKS FILE...
#
# PACKAGES are installed beforehand, because the container has no network but loopback. HOOKS is copied to ~/edgecert,
# FILEs to /test, and the programs among them must start. The caller runs this in mount and PID namespaces of its own: all files are in a temporary file
# system that ends with them, and so do all processes. Without output on standard output, the host permits no container.
set -euo pipefail
packages=$1 hooks=$2
shift 2

mount -t tmpfs -o mode=755 tmpfs /mnt
root=/mnt/root
mmdebstrap --quiet --mode=root --variant=minbase --skip=cleanup/apt --include=systemd,systemd-sysv,dbus bookworm "$root"
cp /etc/resolv.conf "$root/etc/resolv.conf"
# shellcheck disable=SC2086 # PACKAGES is a list.
chroot "$root" env DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends $packages >/dev/null ||
    { echo "test: error: cannot install $packages" && exit 1; }
# systemd-nspawn leaves files in /run if it is killed.
mount -t tmpfs -o mode=755 tmpfs /run

mkdir -p "$root/test" "$root/root/edgecert"
cp -r "$hooks" "$root/root/edgecert/hooks"
cp "$@" "$root/test/"
for file; do
    [[ ! -x $file ]] || chroot "$root" "/test/$(basename "$file")" --version >/dev/null
done
cat >"$root/test/script"
cat >"$root/etc/systemd/system/test.service" <<'UNIT'
[Service]
Type=exec
WorkingDirectory=/root/edgecert
Environment=HOME=/root
ExecStart=/bin/bash /test/script
ExecStopPost=/bin/sh -c 'case $$EXIT_CODE in exited) exec systemctl exit $$EXIT_STATUS ;; *) exec systemctl exit 1 ;; esac'
StandardInput=null
StandardOutput=append:/test/log
StandardError=inherit
UNIT
mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
ln -s ../test.service "$root/etc/systemd/system/multi-user.target.wants/"

status=0
timeout --kill-after=10 500 systemd-nspawn --quiet --directory="$root" --boot --register=no --keep-unit \
    --private-network --link-journal=no --resolv-conf=off --timezone=off --console=pipe </dev/null >&2 || status=$?
cat "$root/test/log"
exit "$status"
