#!/usr/bin/env sh
# Deploy hook for acme.sh: `acme.sh --deploy -d example.com --deploy-hook edgecert`.
#
# Copy it into ~/.acme.sh/deploy/. acme.sh remembers it and calls it at every renewal. Settings come from edgecert's
# configuration file or environment; set EDGECERT_BIN where edgecert is not in the PATH of cron.

# domain key cert ca fullchain pfx
edgecert_deploy() {
  _edgecert_key="$2"
  _edgecert_fullchain="$5"
  "${EDGECERT_BIN:-edgecert}" deploy --cert "$_edgecert_fullchain" --key "$_edgecert_key"
}
