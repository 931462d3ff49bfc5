"""Validates the Kubernetes objects on standard input against the three newest versions of its schemas, strictly, and
prints them as JSON. Kinds of other API groups than Kubernetes' own are only parsed."""

import json
import sys

import yaml
from kubernetes_validate import validate
from kubernetes_validate.utils import all_versions, major_minor

OTHER_GROUPS = ("kustomize.config.k8s.io/", "monitoring.coreos.com/")

versions = sorted({tuple(map(int, major_minor(version).split("."))) for version in all_versions()})[-3:]
objects = [item for item in yaml.safe_load_all(sys.stdin) if item]
for item in objects:
    if not item["apiVersion"].startswith(OTHER_GROUPS):
        for major, minor in versions:
            validate(item, f"{major}.{minor}", strict=True)
json.dump(objects, sys.stdout)
