# shellcheck shell=sh
# Deploy hook for acme.sh. Copy it to ~/.acme.sh/deploy/ and run:
#   acme.sh --deploy -d example.com --deploy-hook edgecert
# acme.sh saves the hook and runs it after each renewal; --deploy-hook has no effect together with --issue. Add --ecc
# for an ECC certificate that has an RSA sibling: of the two, the one issued last is served.
#
# Or use a reload command instead, with the full path, because cron may not find edgecert:
#   acme.sh --install-cert -d example.com --reloadcmd "$(command -v edgecert)"
#
# A failed hook is not repeated: enable the timer of `edgecert sync`.
#
# edgecert reads its settings from its configuration file or the environment. EDGECERT_BIN names another program,
# EDGECERT_CONFIG another configuration file; acme.sh saves both for the domain.

# Arguments: domain key cert ca fullchain pfx
edgecert_deploy() {
  _getdeployconf EDGECERT_BIN
  _getdeployconf EDGECERT_CONFIG
  if [ "$EDGECERT_BIN" ]; then _savedeployconf EDGECERT_BIN "$EDGECERT_BIN"; fi
  if [ "$EDGECERT_CONFIG" ]; then _savedeployconf EDGECERT_CONFIG "$EDGECERT_CONFIG"; fi
  (
    PATH=$PATH:/usr/local/bin:/usr/bin
    if ! command -v "${EDGECERT_BIN:-edgecert}" >/dev/null; then
      echo "edgecert_deploy: found no ${EDGECERT_BIN:-edgecert} in $PATH" >&2
      exit 78
    fi
    # Passed as the variables of a reload command: edgecert then detects a full chain left over from an earlier
    # certificate.
    EDGECERT_CONFIG="$EDGECERT_CONFIG" Le_Domain="$1" CERT_KEY_PATH="$2" CERT_PATH="$3" CA_CERT_PATH="$4" \
      CERT_FULLCHAIN_PATH="$5" "${EDGECERT_BIN:-edgecert}" deploy
  )
}
