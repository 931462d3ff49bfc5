//! Apache with `mod_md`, which has its certificates issued by Pebble, and `hooks/mod_md/edgecert-mod-md` as its message
//! command.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use crate::harness::{Sandbox, require_root, sandbox};

use super::{Client, Pebble, certificates, served_record};

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
        let message = client
            .script("message", &format!("echo \"$2\" >>{home}messages\nexec sh {} \"$@\"\n", hook.display()));
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
        let program = client.path("edgecert");
        let apache = Self { client: client.env("EDGECERT_BIN", program), _ca: ca };
        apache.control("start");
        apache
    }

    fn control(&self, command: &str) {
        let configuration = self.client.path_text("apache.conf");
        self.client.run(["-f", &configuration, "-k", command]).succeeds();
    }

    /// Waits until `mod_md` has sent this message.
    #[track_caller]
    fn wait_for(&self, message: &str) {
        for _ in 0..MAX_ATTEMPTS {
            if self.client.read("messages").lines().any(|line| line == message) {
                return;
            }
            sleep(RETRY_DELAY);
        }
        panic!("no message {message}: {}", self.client.read("log"));
    }
}

impl Drop for Apache {
    fn drop(&mut self) {
        self.control("stop");
    }
}

#[test]
fn apache_deploys_what_it_installs() {
    for (keys, cert, ports) in [
        ("secp256r1", "pubcert.secp256r1.pem", [18_080, 18_443]),
        ("rsa2048", "pubcert.pem", [18_081, 18_444]),
    ] {
        let service = sandbox(&["a.example"]);
        let apache = Apache::deploying_to(&service, keys, ports);
        apache.wait_for("renewed");
        assert_eq!(service.requests().len(), 0, "the staged key is encrypted");
        apache.control("graceful");
        apache.wait_for("installed");
        for _ in 0..MAX_ATTEMPTS {
            if service.edge().iter().any(|site| !site["cert_id"].is_null()) {
                break;
            }
            sleep(RETRY_DELAY);
        }
        let chain = certificates(&apache.client.read(&format!("md/domains/a.example/{cert}")));
        assert_eq!(
            served_record(&service, &["a.example"]).chain,
            chain,
            "{keys}: {}",
            apache.client.read("log")
        );
    }
}

const MAX_ATTEMPTS: u32 = 3_000;
const RETRY_DELAY: Duration = Duration::from_millis(10);
