-- +goose Up

-- Where a follower of creates stands, whose seq is beyond all changes; NULL = it follows changes.
ALTER TABLE log_followers ADD COLUMN position TEXT;

-- When a transaction stored its links, in Unix milliseconds; NULL = by the release before.
ALTER TABLE creates ADD COLUMN at INTEGER;
