# Renews certificates with Posh-ACME, and deploys those that were renewed. Copy it to /usr/local/bin, and add to
# /etc/cron.d/posh-acme, on one line:
#   17 3 * * * root pwsh -NoProfile -File /usr/local/bin/edgecert-posh-acme.ps1
#
# Posh-ACME returns a certificate only when it is renewed. A deployment that fails is not repeated: enable the timer of
# `edgecert sync`. The exit code is that of the last failure.
$ErrorActionPreference = 'Stop'
Import-Module Posh-ACME

$code = 0
foreach ($certificate in Submit-Renewal -AllAccounts -WarningAction SilentlyContinue) {
    & /usr/local/bin/edgecert --cert $certificate.FullChainFile --key $certificate.KeyFile
    if ($LASTEXITCODE -ne 0) { $code = $LASTEXITCODE }
}
exit $code
