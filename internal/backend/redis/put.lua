-- Keeps an entry unless a newer version is there, or the same one and this is only a mark.
-- KEYS[1] the link; ARGV: the entry, its time to live in milliseconds, 1 for a mark.
local held = redis.call('GETRANGE', KEYS[1], 0, 10)
if #held == 11 and string.byte(held, 1) == string.byte(ARGV[1], 1) then
  local old, new = struct.unpack('>I8', held, 4), struct.unpack('>I8', ARGV[1], 4)
  if old > new or (old == new and ARGV[3] == '1') then
    return 0
  end
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
