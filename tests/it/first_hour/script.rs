//! Script of the test: the commands of the documents in the order in which a reader runs them, and checks between them.

use std::path::Path;

use crate::container::END;
use crate::readme::{README, REFERENCE, SANDBOX, attach_command, blocks};

/// How edgecert is installed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Installation {
    /// Compiled in a clone.
    Clone,
    Deb,
    /// From the archive with the static binary.
    Archive,
}

/// The script, and what it takes from the documents.
pub(super) struct Script {
    pub(super) text: String,
    /// Debian packages that the documents install.
    pub(super) packages: Vec<String>,
    /// Commands that were replaced, each with the reason.
    pub(super) substitutions: Vec<String>,
}

impl Script {
    /// Takes every command of the documents for an installation, except for cron, of which a host with systemd has no
    /// need. The packages do not contain the document on the sandbox.
    pub(super) fn from_documents(installation: Installation, documents: &Path) -> Self {
        let [readme, reference] =
            [README, REFERENCE].map(|document| documents.join(document).to_str().unwrap().to_owned());
        let [try_it, package, archive, clone, key, deploy, package_timer, timer, _cron, doctor, monitoring] =
            blocks(&readme, "sh").try_into().expect(README);
        let [serve, certbot, renewal] = blocks(SANDBOX, "sh").try_into().expect(SANDBOX);
        let [configuration] = blocks(&readme, "toml").try_into().expect(README);
        let mut script = Self { text: PRELUDE.to_owned(), packages: Vec::new(), substitutions: Vec::new() };

        if installation == Installation::Clone {
            let clone = script.replace(&clone, "apt-get update\n", "", "the container has no network");
            let clone = script.replace(&clone, "build-essential ", "", "nothing is compiled");
            let rustup = line_with(&clone, "sh.rustup.rs");
            let clone = script.replace(&clone, &rustup, RUSTUP, "cargo copies the programs under test");
            script.add(&clone);
            let tests = line_with(&try_it, "tests/run");
            let rehearsal = script.replace(&try_it, &tests, "", "the tests include this one");
            script.add(&rehearsal);
        } else {
            // There is no clone, but the sandbox has to come from one.
            script.add(&format!("{RUSTUP}. ~/.cargo/env\nrm -r hooks\ncd \"$(mktemp -d)\""));
            script.add("cp /test/edgecert[-_]*.* .");
            script.add(if installation == Installation::Deb { &package } else { &archive });
        }
        script.add(&format!("{{\n{key}}} <<< a-key"));
        script.add(&format!("cat > /etc/edgecert/config.toml << 'END'\n{configuration}END"));

        script.add(&serve);
        script.add(&certbot);
        let deploy = script.replace(
            &deploy,
            "check --lineage",
            "check --allow-untrusted --lineage",
            "Pebble is a test CA, and this command reads no configuration",
        );
        script.add(&deploy);
        script.add(&attach_command(&readme, "certbot, every certificate"));
        let start = line_with(&renewal, "systemctl start certbot.service");
        let proof = script.replace(&renewal, &start, "", "certbot.timer starts it a second later");
        script.add(TIMER_ELAPSES);
        script.add(&format!("{{\n{proof}}} > /test/fingerprints"));
        script.add(FINGERPRINTS);

        script.add(if installation == Installation::Deb { &package_timer } else { &timer });
        let drop_in =
            blocks(&reference, "sh").into_iter().find(|block| block.contains("edgecert-metrics.conf"));
        script.add(&drop_in.expect(REFERENCE));
        script.add(METRICS);
        script.add(JOURNAL);
        script.add(&monitoring);
        script.add(&doctor);
        script.add(DOCTOR);
        script.add(&format!("set +x\necho '{END}'"));
        script
    }

    fn add(&mut self, commands: &str) {
        for line in commands.lines().filter(|line| line.contains("apt-get install")) {
            let words = line.split(' ').skip_while(|word| *word != "install").skip(1);
            self.packages.extend(words.filter(|word| !word.starts_with(['-', '.'])).map(str::to_owned));
        }
        self.text.push_str(commands);
        self.text.push('\n');
    }

    /// Replaces a part of a block, which must be there.
    fn replace(&mut self, block: &str, part: &str, replacement: &str, reason: &str) -> String {
        assert!(block.contains(part), "{part} is missing in: {block}");
        self.substitutions.push(format!("`{}`: {reason}", part.trim()));
        block.replace(part, replacement)
    }
}

fn line_with(block: &str, part: &str) -> String {
    block.split_inclusive('\n').find(|line| line.contains(part)).expect(part).to_owned()
}

const PRELUDE: &str = r#"set -euxo pipefail
trap 'echo "test: error: this command failed: $BASH_COMMAND"' ERR
fail() {
    trap - ERR
    echo "test: error: $*"
    exit 1
}
# Stands for cargo: copies the programs under test instead of compiling them.
cat > /test/cargo << 'END'
#!/bin/sh -eu
root=$HOME/.cargo path=. command=$1
shift
while [ $# -gt 0 ]; do
    case $1 in
    --root) root=$2 && shift 2 ;;
    --path) path=$2 && shift 2 ;;
    --locked | --workspace) shift ;;
    *) echo "cargo: unexpected argument $1" && exit 2 ;;
    esac
done
case $command,$path in
build,.) set -- edgecert edgecert-sandbox && to=target/debug ;;
install,.) set -- edgecert && to=$root/bin ;;
install,tests/sandbox) set -- edgecert-sandbox && to=$root/bin ;;
*) echo "cargo: unexpected command $command" && exit 2 ;;
esac
mkdir -p "$to"
for program; do cp "/test/$program" "$to/"; done
END
"#;

const RUSTUP: &str = r#"install -D -m 755 /test/cargo ~/.cargo/bin/cargo
echo 'export PATH="$HOME/.cargo/bin:$PATH"' > ~/.cargo/env
"#;

/// Makes certbot.timer elapse after a second instead of at noon or midnight, and waits until its service has run.
const TIMER_ELAPSES: &str = r#"journalctl --quiet --sync
journalctl --quiet --lines=0 --cursor-file=/test/cursor
before=$(sha256sum /etc/letsencrypt/live/example.com/fullchain.pem)
soon=/run/systemd/system/certbot.timer.d/soon.conf
mkdir -p "${soon%/*}"
printf '[Timer]\nOnActiveSec=1s\nAccuracySec=1ms\nRandomizedDelaySec=0\n' > $soon
systemctl daemon-reload
systemctl restart certbot.timer
grep --max-count=1 -E 'Finished|Failed' <(journalctl --follow --unit=certbot.service)
rm $soon
systemctl daemon-reload
[[ $before != "$(sha256sum /etc/letsencrypt/live/example.com/fullchain.pem)" ]] || fail "certbot.timer renewed nothing""#;

/// Compares the fingerprints that the proof has printed.
const FINGERPRINTS: &str = r#"if [[ $(wc -l < /test/fingerprints) != 2 || $(sort -u /test/fingerprints | wc -l) != 1 ]]; then
    hook=/etc/letsencrypt/renewal-hooks/deploy/edgecert
    fail "certbot.timer has renewed the certificate, but the edge does not serve it; the hook:" \
        "$(ls -l --dereference $hook 2>&1)" "$(grep -i hook /var/log/letsencrypt/letsencrypt.log)"
fi"#;

/// Syncs with a wrong key and with the right one; each run writes the metrics file from within the unit's sandbox.
const METRICS: &str = r#"metrics=/var/lib/prometheus/node-exporter/edgecert.prom
# As the package prometheus-node-exporter does.
mkdir -p "${metrics%/*}"
cp -p /etc/edgecert/api-key /test/api-key
echo wrong > /etc/edgecert/api-key
! systemctl start edgecert-sync.service
grep -x 'edgecert_last_sync_exit_code 77' $metrics
cp -p /test/api-key /etc/edgecert/api-key
systemctl start edgecert-sync.service
grep -x 'edgecert_last_sync_exit_code 0' $metrics
[[ $(stat -c %a $metrics) == 644 ]] || fail "the node exporter cannot read the metrics file"
"#;

/// Finds the entries that the hook and the sandboxed sync have sent to the journal since the timer was started. It does
/// not ask for their units, which journald reads from /proc, where a sender that has exited is missing; and journalctl
/// selects nothing, because with several fields it misses entries now and then.
const JOURNAL: &str = r#"journalctl --sync
journalctl --quiet --after-cursor="$(< /test/cursor)" --output=json > /test/journal
logged() { python3 - "$@" << 'END' || fail "the journal lacks an entry with $*:" "$(< /test/journal)"; }
import json, sys
wanted = dict(field.split("=") for field in sys.argv[1:])
entries = map(json.loads, open("/test/journal"))
sys.exit(not any(wanted.items() <= entry.items() for entry in entries))
END
logged MESSAGE_ID=d71c5ee529494199959a913ba18ea538 EDGECERT_COMMAND=deploy EDGECERT_OUTCOME=served
logged MESSAGE_ID=66902d5ca8aa4438b09432730e44f534 EDGECERT_COMMAND=sync EDGECERT_EXIT_CODE=77
"#;

const DOCTOR: &str = r#"[[ $(systemctl show --property=ExecMainStatus --value edgecert-sync.service) == 0 ]]
[[ -n $(systemctl show --property=ExecMainExitTimestamp --value edgecert-sync.service) ]]
systemctl is-enabled certbot.timer edgecert-sync.timer
systemctl is-active certbot.timer edgecert-sync.timer
edgecert doctor --json > /test/doctor
python3 - << 'END'
import json
for finding in json.load(open("/test/doctor"))["findings"]:
    assert finding["status"] == "ok" or "a test server" in finding["detail"], finding
END"#;
