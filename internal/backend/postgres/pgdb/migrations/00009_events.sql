-- +goose Up

-- What happened, beside what a cache needs of it. kind NULL = an older release wrote the entry.
ALTER TABLE changes ADD COLUMN kind text;
ALTER TABLE changes ADD COLUMN id uuid;
ALTER TABLE changes ADD COLUMN workspace text;
ALTER TABLE changes ADD COLUMN principal text; -- who did it: a key's id, or another actor
ALTER TABLE changes ADD COLUMN at bigint;      -- Unix milliseconds
ALTER TABLE changes ADD COLUMN region text;
ALTER TABLE changes ADD COLUMN fields text;    -- names and old values of changed fields, JSON; NULL = none
ALTER TABLE changes ADD COLUMN keys text;      -- of an entry that is no write of a link: domain, code, domain, code, ... as JSON

-- Old values go with their link, whichever release deletes it.
CREATE INDEX changes_fields ON changes (domain, code) WHERE fields IS NOT NULL;

-- Both functions have the rights of their owner: a role that may change links need not have any of
-- the log's. Rows of the log are locked in its order, as by those who trim it.
-- +goose StatementBegin
CREATE FUNCTION links_forget_fields() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE changes SET fields = NULL WHERE seq IN (
        SELECT seq FROM changes WHERE domain = NEW.domain AND code = NEW.code AND fields IS NOT NULL ORDER BY seq FOR UPDATE);
    RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER links_forget_fields AFTER UPDATE ON links FOR EACH ROW
    WHEN (NEW.status = 3 AND OLD.status <> 3) EXECUTE FUNCTION links_forget_fields();

-- Whoever takes the last click says so.
-- +goose StatementBegin
CREATE FUNCTION links_exhausted() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    WITH head AS (UPDATE change_head SET seq = seq + 1 WHERE n = 1 RETURNING seq)
    INSERT INTO changes (seq, domain, code, version, kind, id, workspace, principal, at, region)
    SELECT seq, NEW.domain, NEW.code, NEW.version, 'exhausted', NEW.id, NEW.workspace, '',
        (extract(epoch FROM clock_timestamp()) * 1000)::bigint, '' FROM head;
    RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER links_exhausted AFTER UPDATE ON links FOR EACH ROW
    WHEN (OLD.spent < NEW.spent AND NEW.max_clicks > 0 AND NEW.spent >= NEW.max_clicks) EXECUTE FUNCTION links_exhausted();
