-- Adds what one server has granted of a bucket, also beyond its limit, by GCRA in microseconds.
-- KEYS: the bucket. ARGV: by how much later it is full; in how much time an empty bucket fills;
-- how much longer than needed it is kept, in milliseconds.
-- A bucket is "FULL SEEN", as for spend.lua. Returns in how much time it is full, at most twice what
-- an empty one takes.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local f, seen = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+) (%d+)$')
now = math.max(now, tonumber(seen) or 0)
local full = math.min(math.max(tonumber(f) or 0, now), now + 2 * ARGV[2]) + ARGV[1]
if full > now then
  local keep = math.ceil((full - now) / 1000) + ARGV[3]
  redis.call('SET', KEYS[1], string.format('%.0f %.0f', full, now), 'PX', string.format('%.0f', keep))
end
return string.format('%.0f', math.min(full - now, 2 * ARGV[2]))
