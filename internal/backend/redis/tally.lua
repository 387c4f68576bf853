-- Adds how many links a creator has created in some minutes, and returns all minutes after one.
-- KEYS: the creator. ARGV: the minute; how long the counts are kept, in milliseconds; then pairs of
-- a minute and a count. The counts are "MINUTE:COUNT MINUTE:COUNT …".
-- Returns pairs of a minute and a count.
local sums = {}
for minute, n in string.gmatch(redis.call('GET', KEYS[1]) or '', '(%d+):(%d+)') do
  if tonumber(minute) > tonumber(ARGV[1]) then
    sums[minute] = tonumber(n)
  end
end
for i = 3, #ARGV, 2 do
  sums[ARGV[i]] = (sums[ARGV[i]] or 0) + ARGV[i + 1]
end
local answer, texts = {}, {}
for minute, n in pairs(sums) do
  answer[#answer + 1], answer[#answer + 2] = tonumber(minute), n
  texts[#texts + 1] = minute .. ':' .. string.format('%.0f', n)
end
redis.call('SET', KEYS[1], table.concat(texts, ' '), 'PX', ARGV[2])
return answer
