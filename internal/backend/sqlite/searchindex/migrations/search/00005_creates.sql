-- +goose Up

-- Up to where creates of counted codes were read.
ALTER TABLE state ADD COLUMN creates TEXT NOT NULL DEFAULT '';
