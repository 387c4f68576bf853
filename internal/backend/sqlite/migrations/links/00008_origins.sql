-- +goose Up

-- CRC-32C of what a link keeps for good and checksum leaves out: key, workspace, id and
-- time of creation. NULL = an older release made the link, and nobody knows.
ALTER TABLE links ADD COLUMN origin INTEGER;
