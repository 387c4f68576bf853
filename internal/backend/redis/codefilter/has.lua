-- Says of each code whether the bitmap holds it. KEYS: the bitmap. ARGV: how many bits a code has; then
-- the bits of one code after the other. Returns 1 or 0 for each code.
local size, answer = tonumber(ARGV[1]), {}
for first = 2, #ARGV, size do
  local held = 1
  for i = first, first + size - 1 do
    if redis.call('GETBIT', KEYS[1], ARGV[i]) == 0 then
      held = 0
      break
    end
  end
  answer[#answer + 1] = held
end
return answer
