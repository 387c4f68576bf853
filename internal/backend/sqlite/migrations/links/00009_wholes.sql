-- +goose Up

-- CRC-32C of a row: all its columns and its number. NULL = an older release wrote it last,
-- which knows nothing of this one: then the trigger takes away what does not hold any more.
ALTER TABLE links ADD COLUMN whole INTEGER;

-- +goose StatementBegin
CREATE TRIGGER links_whole AFTER UPDATE ON links WHEN old.whole IS NOT NULL AND new.whole = old.whole
BEGIN
    UPDATE links SET whole = NULL WHERE n = new.n;
END;
-- +goose StatementEnd
