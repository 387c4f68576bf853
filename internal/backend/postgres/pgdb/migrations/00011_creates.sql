-- +goose NO TRANSACTION
-- +goose Up

-- In which transaction a link was created: what became visible is told by it, against the oldest
-- that is open. NULL = before this release. A default of its own statement, so that no row is
-- written anew; whatever release creates, has it.
ALTER TABLE links ADD COLUMN IF NOT EXISTS made xid8;
ALTER TABLE links ALTER COLUMN made SET DEFAULT pg_current_xact_id();

-- One entry a transaction and page: creates append to it. Nobody waits while it is built; what an
-- interrupted start has left of it is of no use.
DROP INDEX CONCURRENTLY IF EXISTS links_made;
CREATE INDEX CONCURRENTLY IF NOT EXISTS links_made ON links (made) WHERE minted AND made IS NOT NULL;
