-- Rows as a curt of schema 1 left them in curt.db.
INSERT INTO settings (name, value) VALUES ('code_key', x'ad1eb2f862d0706a5c15b1fde329c84fd93c370b42bb78ebe9ccb20a5121be5285626bfa');
INSERT INTO workspaces (n, name) VALUES (2, 'anonymous');
INSERT INTO workspaces (n, name) VALUES (1, 'default');
INSERT INTO workspaces (n, name) VALUES (4, 'other');
INSERT INTO workspaces (n, name) VALUES (3, 'web');
INSERT INTO leases (counter, next) VALUES ('codes-7', 10000);
INSERT INTO links (n, workspace, id, domain, code, minted, destination, digest, status, safety, redirect, starts, expires, created, updated, max_clicks, spent, fallback, forward_query, no_index, cacheable, created_by, title, tags, version, checksum)
    VALUES (-9223372036854775807, 1, x'01a1ff45ef0f76a1a718a45a31daf463', '', 'spring-sale', 0, 'https://example.com/shape/1?x=1', -6284058576962922482, 1, 1, 302, 0, 0, 1795284135695, 1795284135695, 0, 0, '', 0, 1, 0, 'admin', 'an alias', '', 1, -1105368653);
INSERT INTO links (n, workspace, id, domain, code, minted, destination, digest, status, safety, redirect, starts, expires, created, updated, max_clicks, spent, fallback, forward_query, no_index, cacheable, created_by, title, tags, version, checksum)
    VALUES (-9223372036854775806, 1, x'01a1ff45ef107d96804ea5cfc7f76e4e', '', 'Spring-Sale', 0, 'https://example.com/shape/2?x=1', 3771967454764690064, 1, 1, 302, 0, 0, 1795284135696, 1795284135696, 0, 0, '', 0, 1, 0, 'admin', 'another case', '', 1, 265095577);
INSERT INTO links (n, workspace, id, domain, code, minted, destination, digest, status, safety, redirect, starts, expires, created, updated, max_clicks, spent, fallback, forward_query, no_index, cacheable, created_by, title, tags, version, checksum)
    VALUES (-9223372036854775805, 1, x'01a1ff45ef157a4b995d9907d3133645', 'second.example', 'spring-sale', 0, 'https://example.com/shape/4?x=1', -2259381345317446421, 1, 1, 302, 0, 0, 1795284135701, 1795284135701, 0, 0, '', 0, 1, 0, 'admin', 'an alias there', '', 1, 1615418929);
INSERT INTO links (n, workspace, id, domain, code, minted, destination, digest, status, safety, redirect, starts, expires, created, updated, max_clicks, spent, fallback, forward_query, no_index, cacheable, created_by, title, tags, version, checksum)
    VALUES (-9223372036854775804, 1, x'01a1ff45ef35795f99080ce7f2b71626', '', 'gone-for-good', 0, '', 0, 3, 1, 302, 0, 0, 1795284135733, 1795284135754, 0, 0, '', 0, 0, 0, '', '', '', 2, 2129524189);
INSERT INTO links (n, workspace, id, domain, code, minted, destination, digest, status, safety, redirect, starts, expires, created, updated, max_clicks, spent, fallback, forward_query, no_index, cacheable, created_by, title, tags, version, checksum)
    VALUES (3458764513820540929, 1, x'01a1ff45ef117ed5a675e33dcbf1d27a', 'second.example', 'kk0JnXf', 1, 'https://example.com/shape/3?x=1', 2206764675514290999, 1, 1, 302, 0, 0, 1795284135697, 1795284135697, 0, 0, '', 0, 1, 0, 'admin', 'on the second domain', '', 1, 1410280669);
INSERT INTO links (n, workspace, id, domain, code, minted, destination, digest, status, safety, redirect, starts, expires, created, updated, max_clicks, spent, fallback, forward_query, no_index, cacheable, created_by, title, tags, version, checksum)
    VALUES (3458764513820540932, 1, x'01a1ff45ef257ddfaa3939d20792a6e4', '', 'e3JFPhZ', 1, 'https://example.com/shape/7?x=1', 6898597288654552396, 1, 1, 308, 0, 0, 1795284135717, 1795284135717, 0, 0, '', 1, 1, 0, 'admin', '308 with a query', '', 1, 828206038);
INSERT INTO links (n, workspace, id, domain, code, minted, destination, digest, status, safety, redirect, starts, expires, created, updated, max_clicks, spent, fallback, forward_query, no_index, cacheable, created_by, title, tags, version, checksum)
    VALUES (3458764513820540938, 1, x'01a1ff45ef2b78f3af49f84c87acf3f9', '', 'SVHRAVI', 1, 'https://example.com/shape/13?x=1', -5029476470574813086, 1, 1, 302, 0, 1795284136723, 1795284135723, 1795284135723, 0, 0, 'https://example.com/over', 0, 1, 0, 'admin', 'over, with a fallback', '', 1, 1911904430);
INSERT INTO links (n, workspace, id, domain, code, minted, destination, digest, status, safety, redirect, starts, expires, created, updated, max_clicks, spent, fallback, forward_query, no_index, cacheable, created_by, title, tags, version, checksum)
    VALUES (3458764513820540939, 1, x'01a1ff45ef2c76ac9fcfe3ce1d3b5c1c', '', 'Ldqx7P0', 1, 'https://example.com/shape/14?x=1', 1022626690285897380, 1, 1, 302, 0, 0, 1795284135724, 1795284135724, 3, 1, '', 0, 1, 0, 'admin', 'three clicks', '', 1, 1015841783);
INSERT INTO links (n, workspace, id, domain, code, minted, destination, digest, status, safety, redirect, starts, expires, created, updated, max_clicks, spent, fallback, forward_query, no_index, cacheable, created_by, title, tags, version, checksum)
    VALUES (3458764513820540942, 1, x'01a1ff45ef2f748fbcecc5a8daed82d7', '', 'huu80jA', 1, 'https://example.com/shape/17?x=1', 7350302721749326419, 1, 1, 302, 0, 0, 1795284135727, 1795284135727, 0, 0, '', 0, 1, 0, 'admin', 'tagged', '1:a5:ä ö3:x:y4:2025', 1, 1953029687);
INSERT INTO links (n, workspace, id, domain, code, minted, destination, digest, status, safety, redirect, starts, expires, created, updated, max_clicks, spent, fallback, forward_query, no_index, cacheable, created_by, title, tags, version, checksum)
    VALUES (3458764513820540943, 1, x'01a1ff45ef30730d820e69face301193', '', 'sDhqPjL', 1, 'https://xn--mnchen-3ya.example/stra%C3%9Fe?q=%C3%BC#frag', 103894501681981198, 1, 1, 302, 0, 0, 1795284135728, 1795284135728, 0, 0, '', 0, 1, 0, 'admin', 'Grüße, 世界 🚀 <b>"''&', '', 1, -331236313);
INSERT INTO links (n, workspace, id, domain, code, minted, destination, digest, status, safety, redirect, starts, expires, created, updated, max_clicks, spent, fallback, forward_query, no_index, cacheable, created_by, title, tags, version, checksum)
    VALUES (3458764513820540947, 1, x'01a1ff45ef347a5c9e8a251089df5b62', '', 'ev5atcs', 1, '', 0, 3, 1, 302, 0, 0, 1795284135732, 1795284135752, 0, 0, '', 0, 0, 0, '', '', '', 2, -453627272);
INSERT INTO links (n, workspace, id, domain, code, minted, destination, digest, status, safety, redirect, starts, expires, created, updated, max_clicks, spent, fallback, forward_query, no_index, cacheable, created_by, title, tags, version, checksum)
    VALUES (3458764513820540948, 1, x'01a1ff45ef367a6a9f4f13e0ebbd636c', '', 'ThAybxX', 1, 'https://example.com/changed/2', -8986634516118606099, 1, 1, 302, 0, 0, 1795284135734, 1795284135757, 0, 0, '', 0, 1, 0, 'admin', 'changed', '7:changed', 4, 918580539);
INSERT INTO links (n, workspace, id, domain, code, minted, destination, digest, status, safety, redirect, starts, expires, created, updated, max_clicks, spent, fallback, forward_query, no_index, cacheable, created_by, title, tags, version, checksum)
    VALUES (3458764513820540956, 1, x'01a1ff45ef38731ca0dd9062c6cb476e', '', 'tS4HssU', 1, 'https://site7.example/page/7', 2069899036477932803, 1, 1, 302, 0, 0, 1795284135736, 1795284135736, 0, 0, '', 0, 1, 0, 'admin', 'number 7', '4:tag0', 1, -1043047238);
INSERT INTO aliases (domain, code, n) VALUES ('', 'Spring-Sale', -9223372036854775806);
INSERT INTO aliases (domain, code, n) VALUES ('', 'gone-for-good', -9223372036854775804);
INSERT INTO aliases (domain, code, n) VALUES ('', 'spring-sale', -9223372036854775807);
INSERT INTO aliases (domain, code, n) VALUES ('second.example', 'spring-sale', -9223372036854775805);
INSERT INTO changes (seq, domain, code, version) VALUES (1, '', 'spring-sale', 1);
INSERT INTO changes (seq, domain, code, version) VALUES (2, '', 'Spring-Sale', 1);
INSERT INTO changes (seq, domain, code, version) VALUES (3, 'second.example', 'spring-sale', 1);
INSERT INTO changes (seq, domain, code, version) VALUES (4, '', 'gone-for-good', 1);
INSERT INTO changes (seq, domain, code, version) VALUES (7, '', 'ev5atcs', 2);
INSERT INTO changes (seq, domain, code, version) VALUES (8, '', 'gone-for-good', 2);
INSERT INTO changes (seq, domain, code, version) VALUES (9, '', 'ThAybxX', 2);
INSERT INTO changes (seq, domain, code, version) VALUES (10, '', 'ThAybxX', 3);
INSERT INTO changes (seq, domain, code, version) VALUES (11, '', 'ThAybxX', 4);
