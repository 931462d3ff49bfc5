# Settings of dehydrated that make edgecert its hook. Copy this file to /etc/dehydrated/conf.d/edgecert.sh, or append the
# lines to the configuration file that you use. Check with `dehydrated --env | grep HOOK`.
#
# HOOK is the path of one program: arguments are not possible, so settings belong in /etc/edgecert/config.toml. dehydrated
# runs it for every operation; edgecert deploys at deploy_cert and retries at unchanged_cert, that is, in every run.
# If you need a hook that does more, use edgecert-hook.sh.
# shellcheck shell=bash disable=SC2034
HOOK=/usr/local/bin/edgecert
