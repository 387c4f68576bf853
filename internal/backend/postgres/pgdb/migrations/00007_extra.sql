-- +goose Up

-- The owner's fields that no index needs, as a versioned JSON object, and the bits of those
-- among them that change the answer: a release that does not know a bit answers 503 for the
-- link.
ALTER TABLE links ADD COLUMN needs bigint NOT NULL DEFAULT 0;
ALTER TABLE links ADD COLUMN extra text NOT NULL DEFAULT '';

-- What an older release deletes has to go as well.
-- +goose StatementBegin
CREATE FUNCTION links_forget_extra() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.needs := 0;
    NEW.extra := '';
    RETURN NEW;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER links_extra BEFORE UPDATE ON links FOR EACH ROW
    WHEN (NEW.status = 3 AND NEW.extra <> '') EXECUTE FUNCTION links_forget_extra();
