#!/bin/sh
# Hook for dehydrated that does more than deploy: copy it, add your own commands, and set in /etc/dehydrated/config:
#   HOOK=/etc/dehydrated/edgecert-hook.sh
# If you need nothing else, set HOOK=/usr/local/bin/edgecert instead.
#
# dehydrated uses the output of generate_csr as a CSR, ends its run if any operation fails, and does not repeat a failed
# deploy_cert; edgecert retries it at the next unchanged_cert.
set -eu
case ${1:-} in
    deploy_cert | unchanged_cert) "${EDGECERT_BIN:-/usr/local/bin/edgecert}" "$@" ;;
    # deploy_challenge) ... ;;
esac
