-- +goose Up

-- The owner's fields that no index needs, as a versioned JSON object, and the bits of those
-- among them that change the answer: a release that does not know a bit answers 503 for the
-- link. extra_sum is CRC-32C over both and the row's number and id; NULL = there are none.
ALTER TABLE links ADD COLUMN needs INTEGER NOT NULL DEFAULT 0;
ALTER TABLE links ADD COLUMN extra TEXT NOT NULL DEFAULT '';
ALTER TABLE links ADD COLUMN extra_sum INTEGER;

-- What an older release deletes has to go as well.
-- +goose StatementBegin
CREATE TRIGGER links_extra AFTER UPDATE ON links WHEN new.status = 3 AND new.extra <> ''
BEGIN
    UPDATE links SET needs = 0, extra = '', extra_sum = NULL WHERE n = new.n;
END;
-- +goose StatementEnd
