//! The Debian package on a host with systemd, in a container: installed, upgraded, removed and purged. Its README is
//! followed in `shipped_readme.rs`.

use crate::container::{END, run_with_files};

use super::package;

const SCRIPT: &str = r#"set -euxo pipefail
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
timer=edgecert-sync.timer service=edgecert-sync.service
install_package() { dpkg --force-confold --install "$1" </dev/null; }
expect() { [[ $(systemctl is-enabled $timer) == "$1" && $(systemctl is-active $timer) == "$2" ]]; }

install_package /test/PACKAGE
expect disabled inactive
modes=$(stat -c '%a %U' /etc/edgecert /etc/edgecert/config.toml /var/lib/edgecert | paste -sd,)
[[ $modes == '755 root,644 root,700 root' ]]
dpkg --verify edgecert

# A later version has another timer and another configuration file.
dpkg-deb --raw-extract /test/PACKAGE later
sed -i 's/^Version: .*/Version: 9.0-1/' later/DEBIAN/control
sed -i 's/^OnCalendar=.*/OnCalendar=yearly/' later/usr/lib/systemd/system/$timer
echo '# later' >> later/etc/edgecert/config.toml
dpkg-deb --build later later.deb

# What the administrator has changed is kept, and a timer that is disabled is not started.
echo '# own' >> /etc/edgecert/config.toml
chmod 750 /var/lib/edgecert /etc/edgecert
touch /etc/edgecert/api-key /var/lib/edgecert/kept.json
install_package later.deb
[[ $(dpkg-query --show --showformat='${Version}' edgecert) == 9.0-1 ]]
expect disabled inactive
[[ $(tail -1 /etc/edgecert/config.toml) == '# own' && -e /etc/edgecert/config.toml.dpkg-dist ]]
[[ $(stat -c %a /var/lib/edgecert /etc/edgecert | sort -u) == 750 ]]

# A timer that is enabled runs with the units of the installed version.
install_package /test/PACKAGE
systemctl enable --now $timer
install_package later.deb
expect enabled active
[[ $(systemctl show --property=TimersCalendar --value $timer) == *'-01-01 00:00:00'* ]]

# It stops with the package, and starts with it.
dpkg --remove edgecert
[[ $(tail -1 /etc/edgecert/config.toml) == '# own' && -e /etc/edgecert/api-key && -e /var/lib/edgecert/kept.json ]]
[[ $(systemctl is-active $timer) == inactive ]]
install_package /test/PACKAGE
expect enabled active

# Purging ends a run, and empties a mount point.
mkdir -p /run/systemd/system/$service.d
printf '[Service]\nExecStart=\nExecStart=sleep infinity\nLoadCredential=\n' > /run/systemd/system/$service.d/slow.conf
mount -t tmpfs tmpfs /var/lib/edgecert
touch /var/lib/edgecert/state.json
systemctl daemon-reload
systemctl start --no-block $service
[[ $(systemctl show --property=ActiveState --value $service) == activating ]]
dpkg --purge edgecert
[[ $(systemctl show --property=ActiveState --value $service) == inactive ]]
[[ ! -e /etc/edgecert && -z $(ls -A /var/lib/edgecert) ]]
left=$(find / -xdev -name '*edgecert*' -not -path '/test/*' -not -path '/root/*' -not -path '/proc/*' -not -path '/run/*' -not -path /var/lib/edgecert)
[[ -z $left ]] || { echo "$left"; false; }
set +x
"#;

#[test]
fn deb_restarts_enabled_timer() {
    let file = package(".deb");
    let script = SCRIPT.replace("PACKAGE", file.file_name().unwrap().to_str().unwrap());
    run_with_files(&["coreutils"], &[file], &format!("{script}echo '{END}'"));
}
