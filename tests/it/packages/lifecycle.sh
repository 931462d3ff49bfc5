#!/usr/bin/env bash
# Installs, uses, upgrades and purges the Debian package $1 in a new Debian 12 with certbot. File descriptor 9 is the
# network namespace of the host, for the packages; everything else happens in the network of the test, with the ACME
# server $2, whose CA is $3, the service $4 with the API key $5, and its edge $6. Prints `begun` when the root directory
# is ready, and `complete` at the end.
#
# The caller runs this in mount and PID namespaces of its own: all files are in a temporary file system that ends with
# them, and so do all processes.
set -euo pipefail
package=$1 acme=$2 acme_ca=$3 service=$4 api_key=$5 edge=$6

mount -t tmpfs -o mode=755 tmpfs /mnt
root=/mnt/root
nsenter --net=/proc/self/fd/9 mmdebstrap --quiet --mode=root --variant=minbase --include=certbot bookworm "$root" >&2
exec 9<&-
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
mkdir "$root/walk"
cp "$package" "$root/walk/edgecert.deb"
cp "$acme_ca" "$root/walk/acme.pem"
echo begun

inside() {
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 \
        REQUESTS_CA_BUNDLE=/walk/acme.pem chroot "$root" "$@" </dev/null
}
# What exists, but for what certbot and dpkg keep of themselves.
files() {
    inside find / -xdev \( -path /walk -o -path /proc -o -path /dev -o -path /etc/letsencrypt -o -path /var/lib/letsencrypt \
        -o -path /var/lib/dpkg -o -path /var/log -o -path /var/cache -o -path /tmp -o -name __pycache__ \) -prune -o -print | sort
}
# Fails unless the file $1 has the mode and owner $2.
expect_mode() {
    local found
    found=$(inside stat -c '%a %U' "$1")
    [[ $found == "$2" ]] || { echo "error: $1 has mode and owner $found, not $2" && exit 1; }
}
certbot() {
    inside certbot "$@" --non-interactive --agree-tos --register-unsafely-without-email --server "$acme"
}
trap 'echo "error: this failed: $BASH_COMMAND"' ERR

files >"$root/walk/before"
inside dpkg --install /walk/edgecert.deb
expect_mode /etc/edgecert '755 root'
expect_mode /etc/edgecert/config.toml '644 root'
expect_mode /var/lib/edgecert '700 root'
[[ ! -e $root/etc/systemd/system/timers.target.wants/edgecert-sync.timer ]]
inside dpkg --verify edgecert

# The administrator edits the configuration, attaches the hook and enables the timer.
cat >>"$root/etc/edgecert/config.toml" <<END
base_url = "$service"
api_key_file = "/etc/edgecert/api-key"
edge_address = "$edge"
allow_untrusted = true
END
inside install -m 600 /dev/null /etc/edgecert/api-key
echo "$api_key" >"$root/etc/edgecert/api-key"
certbot certonly --manual --preferred-challenges dns --manual-auth-hook true --cert-name shop -d a.example
inside ln -s /usr/bin/edgecert /etc/letsencrypt/renewal-hooks/deploy/
unit=/usr/lib/systemd/system/edgecert-sync
inside mkdir -p /etc/systemd/system/timers.target.wants
inside ln -s $unit.timer /etc/systemd/system/timers.target.wants/

inside certbot renew --force-renewal --no-random-sleep-on-renew
# Nothing is wrong but that no timer has run sync.
inside edgecert doctor >"$root/walk/doctor"
cat "$root/walk/doctor"
grep -q '^  ! timer .* no .edgecert sync. is on record' "$root/walk/doctor"
inside edgecert status
command=$(sed -n 's/^ExecStart=//p' "$root$unit.service")
[[ $command == 'edgecert sync' ]]
# shellcheck disable=SC2086 # The unit's words.
inside $command </dev/null
inside edgecert doctor | grep '^  \* timer '
cat "$root/etc/letsencrypt/live/shop/cert.pem"

# A later version with the same content.
inside dpkg-deb --raw-extract /walk/edgecert.deb /walk/later
sed -i 's/^Version: .*/Version: 9.0-1/' "$root/walk/later/DEBIAN/control"
inside dpkg-deb --build /walk/later /walk/later.deb >/dev/null
sha256sum "$root"/etc/edgecert/* >"$root/walk/kept"
inside dpkg --install /walk/later.deb
inside dpkg --status edgecert | grep -q '^Version: 9.0-1$'
sha256sum --quiet --check "$root/walk/kept"
[[ -L $root/etc/systemd/system/timers.target.wants/edgecert-sync.timer ]]
inside edgecert status --check

inside dpkg --remove edgecert
sha256sum --quiet --check "$root/walk/kept"
inside dpkg --purge edgecert
inside rmdir --ignore-fail-on-non-empty /etc/systemd/system/timers.target.wants
files >"$root/walk/after"
diff "$root/walk/before" "$root/walk/after" || { echo "error: purging leaves these files" && exit 1; }
echo complete
