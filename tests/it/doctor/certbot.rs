//! `doctor` reports pre and post hooks of certbot, and heeds what certbot's configuration turns off.

use std::fs;
use std::os::unix::fs::symlink;

use super::{Certbot, assert_only_fault, faults, on_good_host};
use crate::harness::sandbox;

/// Writes a renewal file with these parameters.
fn configure(certbot: &Certbot, version: &str, parameters: &str) {
    let record = format!("version = {version}\n[renewalparams]\nserver = x\n{parameters}\n");
    certbot.write("renewal/a.example.conf", &record, 0o644);
}

#[test]
fn post_hook_is_a_fault() {
    let (service, certbot) = (sandbox(&["a.example"]), Certbot::with_lineages(&[&["a.example"]]));
    let program = certbot.path("bin/edgecert").display().to_string();
    let reconfigure = "run `certbot reconfigure --cert-name a.example --";
    let deploy = format!("renew_hook = {program}\n");
    let rows = [
        (
            "2.8.0",
            format!("post_hook = {program}"),
            4,
            format!("{reconfigure}post-hook '' --deploy-hook edgecert`"),
        ),
        ("2.8.0", format!("post_hook = {program} deploy"), 4, "--deploy-hook edgecert`".into()),
        ("2.8.0", format!("post_hook = \"{program}\""), 4, "--deploy-hook edgecert`".into()),
        (
            "2.8.0",
            format!("pre_hook = {program}"),
            4,
            format!("{reconfigure}pre-hook '' --deploy-hook edgecert`"),
        ),
        (
            "2.8.0",
            format!("renew_hook = /bin/true\npost_hook = {program}"),
            5,
            "--post-hook '' --deploy-hook 'HOOK; edgecert'`, with the current hook in place of HOOK".into(),
        ),
        ("2.8.0", format!("{deploy}post_hook = {program}"), 5, format!("{reconfigure}post-hook ''`")),
        (
            "2.8.0",
            format!("post_hook = systemctl reload nginx; {program}"),
            4,
            "move edgecert from `post_hook` to `renew_hook` there".into(),
        ),
        (
            "2.1.0",
            format!("post_hook = {program}"),
            4,
            "move edgecert from `post_hook` to `renew_hook` there".into(),
        ),
        (
            "2.1.0",
            format!("{deploy}post_hook = {program}"),
            5,
            "remove edgecert from `post_hook` there".into(),
        ),
    ];
    for (version, parameters, line, remedy) in rows {
        configure(&certbot, version, &parameters);
        let kind = if parameters.contains("pre_hook") { "pre" } else { "post" };
        let place = format!("{}:{line}", certbot.path("renewal/a.example.conf").display());
        let begins = format!("fail hook: {place} runs edgecert as a {kind} hook, ");
        assert_only_fault(&on_good_host(&service, &certbot).exits_with(78), &begins, &remedy);
    }
}

#[test]
fn post_hook_may_sync_or_name_lineage() {
    let (service, certbot) = (sandbox(&["a.example"]), Certbot::with_lineages(&[&["a.example"]]));
    let program = certbot.path("bin/edgecert").display().to_string();
    let live = certbot.live("a.example").display().to_string();
    for command in [format!("{program} sync"), format!("{program} --lineage {live}")] {
        configure(&certbot, "5.8.0", &format!("post_hook = {command}"));
        assert_eq!(faults(&on_good_host(&service, &certbot).succeeds()), [""; 0], "{command}");
    }
    // These deploy nothing after the renewal.
    for parameters in [
        format!("pre_hook = {program} sync"),
        format!("post_hook = {program} status"),
        format!("post_hook = {program} --lineage {}", certbot.live("b.example").display()),
        "post_hook = /bin/true".into(),
    ] {
        configure(&certbot, "5.8.0", &parameters);
        let output = on_good_host(&service, &certbot).exits_with(78);
        assert_only_fault(
            &output,
            "fail hook: ",
            "certbot reconfigure --cert-name a.example --deploy-hook edgecert",
        );
    }
}

#[test]
fn post_hook_is_found_in_every_place() {
    let (service, certbot) =
        (sandbox(&["a.example", "b.example"]), Certbot::with_lineages(&[&["a.example"], &["b.example"]]));
    let program = certbot.path("bin/edgecert");
    let call = || super::doctor(&service, &certbot.entries(&["a.example", "b.example"], ""));
    // Reported once for both lineages, although they also have a deploy hook.
    let place = format!("fail hook: {}:2 runs edgecert as a post hook, ", certbot.path("cli.ini").display());
    for name in ["post-hook = ", "post-hook: ", "post-hook ", "--post-hook="] {
        certbot.write("cli.ini", &format!("# all\n{name}{}\n", program.display()), 0o644);
        assert_only_fault(&call().exits_with(78), &place, "remove edgecert from `post-hook` there");
    }
    fs::remove_file(certbot.path("cli.ini")).unwrap();

    fs::create_dir_all(certbot.path("renewal-hooks/post")).unwrap();
    fs::create_dir_all(certbot.path("renewal-hooks/deploy")).unwrap();
    let link = certbot.path("renewal-hooks/post/edgecert");
    symlink(&program, &link).unwrap();
    let place = format!("fail hook: {} runs edgecert as a post hook, ", link.display());
    assert_only_fault(&call().exits_with(78), &place, &format!("run `rm {}`", link.display()));
    fs::remove_file(&link).unwrap();
    certbot.write("renewal-hooks/post/edgecert", &format!("#!/bin/sh\n{}\n", program.display()), 0o755);
    assert_only_fault(&call().exits_with(78), &place, "remove edgecert from it");
    fs::remove_file(&link).unwrap();
    symlink(&program, &link).unwrap();
    for name in ["a.example", "b.example"] {
        certbot.attach(name, "/bin/true");
    }
    let output = call().exits_with(78);
    let command = format!("mv {} {}", link.display(), certbot.path("renewal-hooks/deploy/").display());
    assert_only_fault(&output, &place, &command);
    // The remedy works.
    fs::rename(&link, certbot.path("renewal-hooks/deploy/edgecert")).unwrap();
    assert_eq!(faults(&call().succeeds()), [""; 0]);
}

#[test]
fn directory_hooks_may_be_off() {
    let (service, certbot) = (sandbox(&["a.example"]), Certbot::with_lineages(&[&["a.example"]]));
    let program = certbot.path("bin/edgecert");
    certbot.attach("a.example", "/bin/true");
    for directory in ["post", "deploy"] {
        fs::create_dir_all(certbot.path("renewal-hooks").join(directory)).unwrap();
    }
    symlink(&program, certbot.path("renewal-hooks/deploy/edgecert")).unwrap();
    let call = || on_good_host(&service, &certbot);
    for value in ["false", "no"] {
        certbot.write("cli.ini", &format!("no-directory-hooks = {value}\n"), 0o644);
        assert_eq!(faults(&call().succeeds()), [""; 0], "{value}");
    }
    for line in ["no-directory-hooks = True", "no-directory-hooks: yes", "no-directory-hooks"] {
        certbot.write("cli.ini", &format!("{line}\n"), 0o644);
        let remedy = format!("remove `no-directory-hooks` from {}", certbot.path("cli.ini").display());
        assert_only_fault(&call().exits_with(78), "fail hook: ", &remedy);
    }
    fs::rename(certbot.path("renewal-hooks/deploy/edgecert"), certbot.path("renewal-hooks/post/edgecert"))
        .unwrap();
    certbot.attach("a.example", &program);
    assert_eq!(faults(&call().succeeds()), [""; 0], "the post hook is off, too");
}

#[test]
fn excluded_lineage_is_not_renewed() {
    let (service, certbot) = (sandbox(&["a.example"]), Certbot::with_lineages(&[&["a.example"]]));
    let program = certbot.path("bin/edgecert");
    for (value, is_excluded) in [("False", true), ("no", true), ("True", false)] {
        configure(&certbot, "5.8.0", &format!("renew_hook = {}\nautorenew = {value}", program.display()));
        let output = on_good_host(&service, &certbot).succeeds();
        if is_excluded {
            let place = certbot.path("renewal/a.example.conf");
            let begins = format!("warn renewal: {}:5 excludes a.example from renewal", place.display());
            assert_only_fault(&output, &begins, "set `autorenew = True` there");
        } else {
            assert_eq!(faults(&output), [""; 0], "{value}");
        }
    }
}
