# Renews certificates with Posh-ACME, and deploys those that were renewed. Copy it to /usr/local/bin, and add to
# /etc/cron.d/posh-acme, on one line:
#   17 3 * * * root pwsh -NoProfile -File /usr/local/bin/edgecert-posh-acme.ps1
#
# Posh-ACME returns a certificate only when it is renewed. A deployment that fails is not repeated: enable the timer of
# `edgecert sync`. The exit code is that of the last failure.
$env:PATH += ':/usr/local/bin:/usr/bin'
$edgecert = if ($env:EDGECERT_BIN) { $env:EDGECERT_BIN } else { 'edgecert' }
if (-not (Get-Command $edgecert -CommandType Application -ErrorAction Ignore)) {
    [Console]::Error.WriteLine("edgecert-posh-acme: found no $edgecert in $env:PATH")
    exit 78
}
Import-Module Posh-ACME -ErrorAction Stop
# PowerShell 7.4 and later could otherwise end the script when edgecert fails.
$PSNativeCommandUseErrorActionPreference = $false

$code = 0
# The pipeline deploys each certificate before the next one is renewed.
Submit-Renewal -AllAccounts -WarningAction SilentlyContinue -ErrorVariable failures | ForEach-Object {
    & $edgecert --cert $_.FullChainFile --key $_.KeyFile
    if ($LASTEXITCODE -ne 0) { $code = $LASTEXITCODE }
}
if ($code -eq 0 -and $failures) { $code = 1 }
exit $code
