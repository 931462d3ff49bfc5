#!/usr/bin/env sh
# Deploy hook for acme.sh: `acme.sh --deploy -d example.com --deploy-hook edgecert`.
#
# Copy it into ~/.acme.sh/deploy/. acme.sh remembers it and calls it at every renewal. Settings come from edgecert's
# configuration file or environment; set EDGECERT_BIN where edgecert is not in the PATH of cron.

# domain key cert ca fullchain pfx
edgecert_deploy() {
  # Handed over as acme.sh's own variables, because edgecert knows when the full chain is an earlier one.
  Le_Domain="$1" CERT_KEY_PATH="$2" CERT_PATH="$3" CA_CERT_PATH="$4" CERT_FULLCHAIN_PATH="$5" \
    "${EDGECERT_BIN:-edgecert}" deploy
}
