//! Apache with `mod_md`, which has its certificates issued by Pebble, and `hooks/mod_md/edgecert-mod-md` as its message
//! command.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::harness::{Sandbox, poll, require_root, sandbox, sync};

use super::{Client, Pebble, certificates, fail_uploads, served_record};

const MODULES: [&str; 6] = ["mpm_event", "authz_core", "socache_shmcb", "ssl", "unixd", "md"];

/// A running Apache, stopped on drop.
struct Apache {
    client: Client,
    _ca: Pebble,
}

impl Apache {
    fn deploying_to(service: &Sandbox, keys: &str, [http, https]: [u16; 2]) -> Self {
        require_root();
        let ca = Pebble::start();
        let client = Client::new("apache2", "apache2-bin").deploying_to(service);
        // The children of Apache run as another user.
        fs::set_permissions(client.path("."), Permissions::from_mode(0o755)).unwrap();
        fs::copy(ca.ca_file(), client.path("ca.pem")).unwrap();
        let home = client.path_text("");
        let hook = Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks/mod_md/edgecert-mod-md");
        let message = client.script(
            "message",
            &format!(
                "sh {} \"$@\" || code=$?\necho \"$2 ${{code:-0}}\" >>{home}messages\nexit ${{code:-0}}\n",
                hook.display()
            ),
        );
        for file in ["messages", "message"] {
            if file == "messages" {
                client.write(file, "");
            }
            fs::set_permissions(client.path(file), Permissions::from_mode(0o777)).unwrap();
        }
        let load = |name: &&str| {
            let file = format!("/usr/lib/apache2/modules/mod_{name}.so");
            Path::new(&file).exists().then(|| format!("LoadModule {name}_module {file}\n"))
        };
        let modules: String = MODULES.iter().filter_map(load).collect();
        let directory = ca.directory();
        client.write("apache.conf", &format!(
            "ServerRoot {home}\nPidFile {home}pid\nDefaultRuntimeDir {home}\nMutex file:{home}\n{modules}\
             User www-data\nGroup www-data\nErrorLog {home}log\nListen 127.0.0.1:{https}\nServerName a.example\n\
             MDStoreDir {home}md\nMDCertificateAuthority {directory}\nMDCACertificateFile {home}ca.pem\n\
             MDCertificateAgreement accepted\nMDContactEmail ops@a.example\nMDPortMap http:{http} https:{https}\n\
             MDCAChallenges http-01\nMDPrivateKeys {keys}\nMDMessageCmd {message} {home}md\nMDomain a.example\n\
             Listen 127.0.0.1:{http}\n\
             <VirtualHost 127.0.0.1:{https}>\nServerName a.example\nSSLEngine on\n</VirtualHost>\n"
        ));
        let program = client.hook();
        let apache = Self { client: client.env("EDGECERT_BIN", program), _ca: ca };
        apache.control("start");
        apache
    }

    fn control(&self, command: &str) {
        let configuration = self.client.path_text("apache.conf");
        self.client.run(["-f", &configuration, "-k", command]).succeeds();
    }

    /// Waits until the message command has ended as often for this message.
    #[track_caller]
    fn wait_for(&self, message: &str, times: usize) {
        let count = || self.client.read("messages").lines().filter(|line| line.starts_with(message)).count();
        let has_ended = poll(|| (count() == times).then_some(())).is_some();
        assert!(
            has_ended,
            "no message {message} {times}: {}\n{}",
            self.client.read("messages"),
            self.client.read("log")
        );
    }

    /// Has the certificate renewed after it was lost, and installed. Apache must not run meanwhile: it reads the files
    /// of the certificate after it has sent `installed`.
    fn renew(&self, times: usize) {
        self.control("stop");
        poll(|| (!self.client.path("pid").exists()).then_some(()));
        fs::remove_dir_all(self.client.path("md/domains/a.example")).unwrap();
        // It still has its ports for a moment.
        let configuration = self.client.path_text("apache.conf");
        poll(|| (self.client.run(["-f", &configuration, "-k", "start"]).code == 0).then_some(()));
        self.install(times);
    }

    /// Waits for a certificate, and reloads Apache, which then uses it.
    fn install(&self, times: usize) {
        self.wait_for("renewed", times);
        self.control("graceful");
        self.wait_for("installed", times);
    }

    /// The certificates in this file of the store.
    fn chain(&self, file: &str) -> Vec<String> {
        certificates(&self.client.read(&format!("md/domains/a.example/{file}")))
    }
}

impl Drop for Apache {
    fn drop(&mut self) {
        self.control("stop");
    }
}

#[test]
fn apache_deploys_what_it_installs() {
    for (keys, file, ports) in [
        ("secp256r1", "pubcert.secp256r1.pem", [18_080, 18_443]),
        // Of both, the script deploys one.
        ("secp256r1 rsa2048", "pubcert.pem", [18_082, 18_445]),
    ] {
        let service = sandbox(&["a.example"]);
        let apache = Apache::deploying_to(&service, keys, ports);
        apache.wait_for("renewed", 1);
        assert_eq!(service.requests().len(), 0, "the staged key is encrypted");
        apache.install(1);
        let first = served_record(&service, &["a.example"]);
        assert_eq!(first.chain, apache.chain(file), "{keys}: {}", apache.client.read("log"));

        apache.renew(2);
        let renewed = served_record(&service, &["a.example"]);
        assert_eq!(renewed.chain, apache.chain(file), "{keys}: {}", apache.client.read("log"));
        let messages = apache.client.read("messages");
        assert!(messages.lines().all(|message| message.ends_with(" 0")), "{messages}");
        assert_eq!(renewed.id, first.id, "the record is replaced in place");
        assert_ne!(renewed.chain, first.chain);
    }
}

#[test]
fn sync_finishes_what_apache_could_not_deploy() {
    let service = sandbox(&["a.example"]);
    let apache = Apache::deploying_to(&service, "rsa2048", [18_083, 18_446]);
    apache.install(1);
    let first = served_record(&service, &["a.example"]);
    fail_uploads(&service);
    apache.renew(2);
    assert!(apache.client.read("messages").ends_with("installed 75\n"), "{}", apache.client.read("messages"));
    assert_eq!(served_record(&service, &["a.example"]), first);
    service.clear_faults();
    sync(&service, &apache.client.path("state")).env("EDGECERT_ALLOW_UNTRUSTED", "true").succeeds();
    assert_eq!(served_record(&service, &["a.example"]).chain, apache.chain("pubcert.pem"));
}
