-- +goose Up

-- What happened, beside what a cache needs of it. kind NULL = an older release wrote the entry.
ALTER TABLE changes ADD COLUMN kind TEXT;
ALTER TABLE changes ADD COLUMN id BLOB;
ALTER TABLE changes ADD COLUMN workspace TEXT;
ALTER TABLE changes ADD COLUMN principal TEXT; -- who did it: a key's id, or another actor
ALTER TABLE changes ADD COLUMN at INTEGER;     -- Unix milliseconds
ALTER TABLE changes ADD COLUMN region TEXT;
ALTER TABLE changes ADD COLUMN fields TEXT;    -- names and old values of changed fields, JSON; NULL = none
ALTER TABLE changes ADD COLUMN keys TEXT;      -- of an entry that is no write of a link: domain, code, domain, code, ... as JSON

-- Old values go with their link, whichever release deletes it.
CREATE INDEX changes_fields ON changes (domain, code) WHERE fields IS NOT NULL;

-- +goose StatementBegin
CREATE TRIGGER links_forget_fields AFTER UPDATE OF status ON links WHEN new.status = 3
BEGIN
    UPDATE changes SET fields = NULL WHERE domain = new.domain AND code = new.code AND fields IS NOT NULL;
END;
-- +goose StatementEnd

-- Whoever takes the last click says so.
-- +goose StatementBegin
CREATE TRIGGER links_exhausted AFTER UPDATE OF spent ON links
WHEN old.spent < new.spent AND new.max_clicks > 0 AND new.spent >= new.max_clicks
BEGIN
    INSERT INTO changes (domain, code, version, kind, id, workspace, principal, at, region)
    VALUES (new.domain, new.code, new.version, 'exhausted', new.id, (SELECT name FROM workspaces WHERE n = new.workspace), '',
        CAST(unixepoch('subsec') * 1000 AS INTEGER), '');
END;
-- +goose StatementEnd
