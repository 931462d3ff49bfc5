#!/usr/bin/python
"""Ansible module for a certificate at the edge: `edgecert deploy --json`, or `edgecert plan --json` in check mode."""

import json
import os

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: edgecert_certificate
short_description: Deploy a certificate to the edge
description:
  - Deploys a certificate to the sites that it covers, and waits until the edge serves it.
  - Changes nothing if every site serves the certificate already.
  - In check mode, reads the service and reports what would change.
options:
  lineage:
    description: Directory of an ACME client. Either this, or I(cert) and I(key).
    type: path
  cert:
    description: File with the certificate and its chain.
    type: path
  key:
    description: File with the private key.
    type: path
  domains:
    description: Sites to deploy to; every site that the certificate covers if omitted.
    type: list
    elements: str
  config:
    description: Configuration file of edgecert; C(/etc/edgecert/config.toml) if omitted.
    type: path
  base_url:
    description: Base URL of the service, if the configuration has none.
    type: str
  api_key:
    description: API key, if the configuration names no file that holds it. Passed as a variable, not as an argument.
    type: str
  settings:
    description:
      - Other settings by their keys in the configuration file, such as C(wait) or C(allow_untrusted).
      - They apply to this run only, and override the file.
    type: dict
    default: {}
  overrides:
    description: Guards to override.
    type: list
    elements: str
    choices: [allow-shrink, allow-older, replace-lets, allow-partial]
    default: []
  force:
    description: Upload even if every site serves the certificate already.
    type: bool
    default: false
  executable:
    description: Program to run; C(edgecert) in C(PATH), C(/usr/local/bin) or C(/usr/bin) if omitted.
    type: path
notes:
  - A temporary failure (exit code 75) fails the task, although C(edgecert sync) will retry it.
  - Run it as the user whose timer runs C(edgecert sync); they share a state directory.
author: The edgecert developers
"""

EXAMPLES = r"""
- name: Deploy the certificate of example.com
  edgecert_certificate:
    lineage: /etc/letsencrypt/live/example.com
"""

RETURN = r"""
report:
  description: The JSON report of edgecert.
  returned: always, unless edgecert printed none
  type: dict
"""

ARGUMENTS = {
    "lineage": {"type": "path"},
    "cert": {"type": "path"},
    "key": {"type": "path", "no_log": False},
    "domains": {"type": "list", "elements": "str"},
    "config": {"type": "path"},
    "base_url": {"type": "str"},
    "api_key": {"type": "str", "no_log": True},
    "settings": {"type": "dict", "default": {}},
    "overrides": {
        "type": "list",
        "elements": "str",
        "choices": ["allow-shrink", "allow-older", "replace-lets", "allow-partial"],
        "default": [],
    },
    "force": {"type": "bool", "default": False},
    "executable": {"type": "path"},
}

CHANGES = ("create", "replace", "bind", "upload")
FILE_ARGUMENTS = ("lineage", "cert", "key", "config")


def command_line(program, parameters, command):
    """Arguments for `deploy` or `plan`."""
    arguments = [program, command, "--json"]
    for name in FILE_ARGUMENTS:
        if parameters[name]:
            arguments += ["--" + name, parameters[name]]
    for domain in parameters["domains"] or []:
        arguments += ["--domain", domain]
    arguments += ["--" + guard for guard in parameters["overrides"]]
    if parameters["force"]:
        arguments.append("--force")
    return arguments


def environment(parameters):
    """Settings as variables, because the arguments of a process are public."""
    settings = dict(parameters["settings"])
    settings.update({name: parameters[name] for name in ("base_url", "api_key")})
    return {"EDGECERT_" + name.upper(): text(value) for name, value in settings.items() if value not in (None, "")}


def text(value):
    """A setting as edgecert reads it from a variable."""
    return ",".join(value) if isinstance(value, list) else str(value)


def run(module, program, command):
    """Runs a command and returns its report; ends the task if there is none."""
    code, output, messages = module.run_command(
        command_line(program, module.params, command), environ_update=environment(module.params)
    )
    try:
        report = json.loads(output)
    except ValueError:
        module.fail_json(msg=messages.strip() or "edgecert printed no report", rc=code)
    report["messages"] = messages.splitlines()
    return report


def state(plan, after):
    """One line for each site that a plan changes: the leaf before or after."""
    served = {site["domain"]: site["leaf"] for site in plan["serving"]}
    lines = []
    for step in plan["plan"]:
        if step["step"] not in CHANGES:
            continue
        for site in step["sites"]:
            before = "another certificate" if served.get(site) == "other" else "unknown"
            lines.append("{}: {}\n".format(site, plan["certificate"]["fingerprint"] if after else before))
    return "".join(lines)


def main():
    """Runs the module."""
    module = AnsibleModule(
        argument_spec=ARGUMENTS,
        required_one_of=[("lineage", "cert")],
        required_together=[("cert", "key")],
        mutually_exclusive=[("lineage", "cert")],
        supports_check_mode=True,
    )
    if "api_key" in module.params["settings"]:
        module.fail_json(msg="settings: api_key is an argument of its own, which Ansible does not log")
    program = module.params["executable"] or module.get_bin_path("edgecert", opt_dirs=["/usr/local/bin", "/usr/bin"])
    if not program or not os.access(program, os.X_OK):
        program = program or "edgecert"
        # A role that installs it has changed nothing yet.
        if module.check_mode:
            module.warn("{} is not installed, so what would change is unknown".format(program))
            module.exit_json(changed=True)
        module.fail_json(msg="{} is not installed, or cannot be run".format(program))
    result = {}
    if module._diff or module.check_mode:
        report = run(module, program, "plan")
        if report["ok"] and module._diff:
            result["diff"] = {"before": state(report, False), "after": state(report, True)}
    if not module.check_mode:
        report = run(module, program, "deploy")
    result.update(changed=report["changed"], report=report)
    if not report["ok"]:
        hints = [line for line in report["messages"] if line.startswith("edgecert: hint: ")]
        module.fail_json(msg="\n".join([report["error"]] + hints), rc=report["exit_code"], **result)
    for warning in report["warnings"]:
        module.warn(warning)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
