-- +goose Up

-- Where a follower of creates stands, whose seq is beyond all changes; NULL = it follows changes.
ALTER TABLE log_followers ADD COLUMN position text;
