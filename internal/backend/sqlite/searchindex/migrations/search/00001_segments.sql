-- +goose Up

-- What the index knows of the link store. One row.
CREATE TABLE state (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    after   BLOB    NOT NULL, -- every link up to this id was read
    changes INTEGER NOT NULL, -- and every change up to this one
    filled  INTEGER NOT NULL  -- 1 = the whole store was read once
) STRICT;

INSERT INTO state (one, after, changes, filled) VALUES (1, zeroblob(16), 0, 0);

-- A segment is a dictionary over up to 65,536 documents, numbered by their ids. It is
-- never changed but for gone; small ones are merged into bigger ones.
CREATE TABLE segments (
    n     INTEGER PRIMARY KEY, -- counts up
    place INTEGER NOT NULL, -- in the order in which the documents came
    docs  INTEGER NOT NULL,
    heads BLOB    NOT NULL, -- first term of each of its pages
    ids   BLOB    NOT NULL, -- first id of each of its chunks, then its last id
    gone  BLOB    NOT NULL  -- documents that were removed or replaced, one bit each; empty = none
) STRICT;

-- Terms with the documents that have them, sorted; n = segment << 20 | page. The
-- packed columns are described in searchpages.go.
CREATE TABLE pages (
    n    INTEGER PRIMARY KEY,
    data BLOB    NOT NULL
) STRICT;

-- Ids and keys of the documents; n = segment << 20 | chunk of 128 documents.
CREATE TABLE chunks (
    n    INTEGER PRIMARY KEY,
    data BLOB    NOT NULL
) STRICT;
