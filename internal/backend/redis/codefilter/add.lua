-- Adds codes to a bitmap. KEYS: the bitmap. ARGV: its last bit; then the bits of the codes.
-- A new bitmap gets its size at once: it would be copied each time that it grows.
if redis.call('STRLEN', KEYS[1]) * 8 <= tonumber(ARGV[1]) then
  redis.call('SETBIT', KEYS[1], ARGV[1], 0)
end
for i = 2, #ARGV do
  redis.call('SETBIT', KEYS[1], ARGV[i], 1)
end
return 1
