-- +goose Up

-- Keys that were revoked while what they shared goes on. Of any other key that is not
-- in keys, the shares have ended.
CREATE TABLE kept_shares (
    key uuid PRIMARY KEY
);
