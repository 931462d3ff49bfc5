#!/usr/bin/env bash
# Does with openssl, jq and curl what a default deploy does: checks the files, lists, uploads for each site that the
# leaf covers, reads it again, and compares what the edge serves. Usage: script.sh LIVE_DIRECTORY BASE_URL EDGE BUNDLE
set -euo pipefail
live=$1 base_url=$2 edge=$3 bundle=$4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

request() {
    curl --disable --silent --show-error --fail --cacert "$bundle" \
        --header "Authorization: Bearer $EDGECERT_API_KEY" --header 'Accept: application/json' "$@"
}

# The checks: dates, names, key, chain.
openssl x509 -in "$live/fullchain.pem" -noout -checkend 0 >/dev/null
names=$(openssl x509 -in "$live/fullchain.pem" -noout -ext subjectAltName | grep -o 'DNS:[^,]*' | cut -c 5-)
leaf_key=$(openssl x509 -in "$live/fullchain.pem" -noout -pubkey)
[[ $leaf_key == "$(openssl pkey -in "$live/privkey.pem" -pubout)" ]]
openssl verify -CAfile "$bundle" -untrusted "$live/fullchain.pem" "$live/fullchain.pem" >/dev/null
fingerprint=$(openssl x509 -in "$live/fullchain.pem" -noout -fingerprint -sha256)

# The plan: the sites whose domain is one of the names, and the records that they are bound to.
request "$base_url/api/me/sites" >"$scratch/sites.json"
request "$base_url/api/certs" >"$scratch/certs.json"
sites=$(jq -r --arg names "$names" '.sites[] | select(.domain as $domain | $names | split("\n") | index($domain)) | "\(.id) \(.cert_id) \(.domain)"' "$scratch/sites.json")
[[ $sites ]]

while read -r id cert_id domain; do
    jq -e --argjson id "$cert_id" '.certs[] | select(.id == $id and .type != "lets")' "$scratch/certs.json" >/dev/null
    jq -n --arg domain "$domain" --rawfile cert "$live/fullchain.pem" --rawfile key "$live/privkey.pem" \
        '{domain: $domain, cert_pem: $cert, key_pem: $key}' >"$scratch/body.json"
    request --header 'Content-Type: application/json' --data-binary "@$scratch/body.json" \
        "$base_url/api/certs/upload" >"$scratch/uploaded.json"
    [[ $(jq -r 'select(.ok).id' "$scratch/uploaded.json") == "$cert_id" ]]
    request "$base_url/api/sites/$id" >"$scratch/site.json"
    jq -e --argjson id "$cert_id" '.config_synced and .cert_id == $id' "$scratch/site.json" >/dev/null
    served=$(openssl s_client -connect "$edge" -servername "$domain" </dev/null 2>/dev/null |
        openssl x509 -noout -fingerprint -sha256)
    [[ $served == "$fingerprint" ]]
done <<<"$sites"
