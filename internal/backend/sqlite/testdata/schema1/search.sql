-- Rows as a curt of schema 1 left them in search.db.
UPDATE state SET after = x'01a1ff4306837c9a947f634b2bb219db', changes = 11, filled = 1;
INSERT INTO segments (n, place, docs, heads, ids, gone) VALUES (1, 1, 1, x'00', x'00', x'');
INSERT INTO pages (n, data) VALUES (1048576, x'00');
INSERT INTO chunks (n, data) VALUES (1048576, x'00');
