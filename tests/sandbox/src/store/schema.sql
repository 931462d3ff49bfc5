-- Schema version 1. Times are seconds since 1970, except push_at, which is in milliseconds.
-- domain_key is the canonical form of domain (lower-case A-labels), by which domains are compared.
CREATE TABLE account (id INTEGER PRIMARY KEY);
CREATE TABLE api_key (key TEXT PRIMARY KEY, account INTEGER NOT NULL REFERENCES account);
CREATE TABLE package (
    id INTEGER PRIMARY KEY,
    account INTEGER NOT NULL REFERENCES account,
    expires_at INTEGER NOT NULL,
    traffic_limit INTEGER NOT NULL,
    traffic_used INTEGER NOT NULL
);
CREATE TABLE cert (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    account INTEGER NOT NULL REFERENCES account,
    domain TEXT NOT NULL,
    domain_key TEXT NOT NULL,
    name TEXT NOT NULL,
    type TEXT NOT NULL,
    cert_pem TEXT NOT NULL,
    key_pem TEXT NOT NULL
);
CREATE INDEX cert_by_domain ON cert (account, domain_key);
CREATE TABLE site (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    account INTEGER NOT NULL REFERENCES account,
    domain TEXT NOT NULL,
    domain_key TEXT NOT NULL UNIQUE,
    enabled INTEGER NOT NULL,
    disabled_reason TEXT NOT NULL DEFAULT '',  -- empty unless the system disabled the site
    cert_id INTEGER REFERENCES cert,
    package_id INTEGER REFERENCES package,
    settings TEXT NOT NULL,                    -- JSON object of the other writable fields
    push_at INTEGER,                           -- when the pending push is due; NULL: config_synced
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
CREATE INDEX site_by_cert ON site (cert_id);
-- The state of the edge: each enabled site as of its last push.
CREATE TABLE edge (
    site INTEGER PRIMARY KEY REFERENCES site ON DELETE CASCADE,
    domain_key TEXT NOT NULL,
    cert_id INTEGER,
    cert_pem TEXT NOT NULL,
    key_pem TEXT NOT NULL,
    settings TEXT NOT NULL
);
-- IDs that the service assigns start above these.
INSERT INTO sqlite_sequence (name, seq) VALUES ('cert', 1000), ('site', 99);
