//! The role on a host with systemd, in a container: it starts the timer, and leaves alone what it has set up.

use crate::container::{END, run_in_container};
use crate::harness::API_KEY;

/// `play CHANGED [ARGUMENT]…` runs the role, which must change as many things.
const SCRIPT: &str = r#"set -euxo pipefail
cd /root/edgecert
export LC_ALL=C.UTF-8 ANSIBLE_ROLES_PATH=hooks/ansible/roles
cat > play.yml << 'END'
- hosts: localhost
  connection: local
  roles:
    - role: edgecert
      vars:
        edgecert_program: /test/edgecert
        edgecert_base_url: https://api.example.net
        edgecert_api_key: API_KEY
        edgecert_lineages: [{path: /etc/letsencrypt/live/*}]
END
play() {
    local changed=$1
    shift
    ansible-playbook --inventory localhost, "$@" play.yml | tee /test/play
    grep -E "^localhost .* changed=$changed .* failed=0 " /test/play
    ! grep API_KEY /test/play
}
units=/etc/systemd/system

play 5 --check
[[ ! -e /usr/local/bin/edgecert && ! -e $units/edgecert-sync.timer ]]
play 6
[[ ! -e /etc/cron.d/edgecert-sync ]]
[[ $(systemctl is-enabled edgecert-sync.timer) == enabled ]]
[[ $(systemctl is-active edgecert-sync.timer) == active ]]
systemctl list-timers | grep edgecert-sync.service
systemd-analyze verify edgecert-sync.service edgecert-sync.timer
play 0
play 0 --check

# What somebody has changed is set up again, and systemd reads it.
sed -i 's/^OnCalendar=.*/OnCalendar=yearly/' $units/edgecert-sync.timer
systemctl daemon-reload
systemctl stop edgecert-sync.timer
play 2
cmp hooks/systemd/edgecert-sync.timer $units/edgecert-sync.timer
[[ $(systemctl show --property=NeedDaemonReload --value edgecert-sync.timer) == no ]]
[[ $(systemctl show --property=TimersCalendar --value edgecert-sync.timer) != *yearly* ]]
[[ $(systemctl is-active edgecert-sync.timer) == active ]]
play 0

# The program and the units of a package are elsewhere.
systemctl disable --now edgecert-sync.timer
mv /usr/local/bin/edgecert /usr/bin/
mv $units/edgecert-sync.* /usr/lib/systemd/system/
systemctl daemon-reload
packaged='{"edgecert_program": ""}'
play 1 --extra-vars "$packaged"
systemd-analyze verify edgecert-sync.service
[[ $(systemctl is-enabled edgecert-sync.timer) == enabled ]]
[[ $(systemctl is-active edgecert-sync.timer) == active ]]
[[ $(systemctl show --property=FragmentPath --value edgecert-sync.timer) != /etc/* ]]
play 0 --extra-vars "$packaged"
set +x
"#;

#[test]
fn role_starts_timer_of_systemd() {
    let script = SCRIPT.replace("API_KEY", API_KEY);
    run_in_container(&["ansible-core"], &format!("{script}echo '{END}'"));
}
