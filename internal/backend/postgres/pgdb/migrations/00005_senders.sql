-- +goose Up

-- The servers whose clicks are counted elsewhere and that may hold some, by the names of their
-- data folders, written down before their first click. A row goes when all clicks of its
-- instance are counted; one that an operator gave up stays, and holds up nobody. Times of
-- clicks are Unix milliseconds.
CREATE TABLE click_senders (
    folder    text   COLLATE "C" PRIMARY KEY,
    host      text   NOT NULL,
    instance  bigint NOT NULL, -- the bits of an unsigned number
    began     bigint NOT NULL, -- no click of it that is still to come is older
    forgotten timestamptz
);
