-- Bits 0 and 1 of a bitmap say that it has all codes, and that somebody adds them. KEYS: the bitmap. ARGV: its
-- last bit; what to do. begin: returns 1 where codes are missing. end: it has all codes, unless it was
-- lost since begin. Returns 1 where codes are missing.
if redis.call('GETBIT', KEYS[1], 0) == 1 then
  return 0
end
if ARGV[2] == 'begin' then
  redis.call('SETBIT', KEYS[1], ARGV[1], 0)
  redis.call('SETBIT', KEYS[1], 1, 1)
elseif ARGV[2] == 'end' and redis.call('GETBIT', KEYS[1], 1) == 1 then
  redis.call('SETBIT', KEYS[1], 0, 1)
  return 0
end
return 1
