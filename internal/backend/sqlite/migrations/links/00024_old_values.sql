-- +goose Up

-- The entry of a create names fields and has no old values: nothing of it goes with its link. Its place in the
-- index was at random, which cost each create of a chosen code one more page of the log, and one when it was trimmed.
DROP INDEX changes_fields;
CREATE INDEX changes_old_values ON changes (domain, code) WHERE fields IS NOT NULL AND kind <> 'created';

DROP TRIGGER links_forget_fields;
-- +goose StatementBegin
CREATE TRIGGER links_forget_fields AFTER UPDATE OF status ON links WHEN new.status = 3
BEGIN
    UPDATE changes SET fields = NULL
    WHERE domain = new.domain AND code = new.code AND fields IS NOT NULL AND kind <> 'created';
END;
-- +goose StatementEnd
