-- Spends charges of buckets, all or none, by GCRA as ratelimit.Take has it, in microseconds.
-- KEYS: the bucket of each charge. ARGV: the time, empty for the server's own; how much
-- longer than needed a bucket is kept, in milliseconds; then for each charge the interval
-- of a cell, the burst and the cost. A negative cost gives cells back.
-- A bucket is "FULL SEEN": when it is full again, and the time of the last charge, before
-- which no charge is: time that goes back stands still.
-- Returns for each charge: allowed, remaining, retry after, reset after.
local now = tonumber(ARGV[1])
if not now then
  local t = redis.call('TIME')
  now = t[1] * 1000000 + t[2]
end
local full, after = {}, {}
for _, key in ipairs(KEYS) do
  if not full[key] then
    local held = redis.call('GET', key)
    local f, seen
    if held then
      f, seen = string.match(held, '^(%d+) (%d+)$')
    end
    full[key] = tonumber(f) or 0
    now = math.max(now, tonumber(seen) or 0)
  end
end
local function take(f, interval, burst, cost)
  local size, start = interval * burst, math.max(f, now)
  local allowed, retry = 0, start - now
  if cost <= burst then
    local a = math.max(start + interval * cost, now)
    retry = a - now - size
    if retry <= 0 then
      allowed, retry, f, start = 1, 0, a, a
    end
  end
  return f, allowed, math.floor(math.max(size - (start - now), 0) / interval), retry, start - now
end
local answer, refused = {}, false
for i, key in ipairs(KEYS) do
  local interval, burst, cost = tonumber(ARGV[3 * i]), tonumber(ARGV[3 * i + 1]), tonumber(ARGV[3 * i + 2])
  local f, allowed, remaining, retry, reset = take(after[key] or full[key], interval, burst, cost)
  after[key] = f
  refused = refused or allowed == 0
  answer[4 * i - 3], answer[4 * i - 2], answer[4 * i - 1], answer[4 * i] = allowed, remaining, retry, reset
end
if refused then
  for i, key in ipairs(KEYS) do
    if answer[4 * i - 3] == 1 then -- but not spent
      local _, _, remaining, _, reset = take(full[key], tonumber(ARGV[3 * i]), tonumber(ARGV[3 * i + 1]), 0)
      answer[4 * i - 2], answer[4 * i] = remaining, reset
    end
  end
  return answer
end
for key, f in pairs(after) do
  if f > now then
    local keep = math.ceil((f - now) / 1000) + tonumber(ARGV[2])
    redis.call('SET', key, string.format('%.0f %.0f', f, now), 'PX', string.format('%.0f', keep))
  elseif full[key] > now then
    redis.call('DEL', key)
  end
end
return answer
