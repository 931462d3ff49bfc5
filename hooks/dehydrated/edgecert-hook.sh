#!/bin/sh
# Hook for dehydrated that does more than deploy: copy it, add your own commands, and set in /etc/dehydrated/config:
#   HOOK=/etc/dehydrated/edgecert-hook.sh
# If you need nothing else, make edgecert itself the HOOK.
#
# HOOK takes the path of a program, without arguments. dehydrated uses the output of generate_csr as a CSR, ends its run
# if any operation fails (unless --keep-going is given), and does not repeat a failed deploy_cert; edgecert retries it at the
# next unchanged_cert, which dehydrated calls in every run.
set -eu
case ${1:-} in
    deploy_cert | unchanged_cert)
        PATH=$PATH:/usr/local/bin:/usr/bin
        if ! command -v "${EDGECERT_BIN:-edgecert}" >/dev/null; then
            echo "${0##*/}: found no ${EDGECERT_BIN:-edgecert} in $PATH" >&2
            exit 78
        fi
        "${EDGECERT_BIN:-edgecert}" "$@"
        ;;
    # deploy_challenge) ... ;;
esac
